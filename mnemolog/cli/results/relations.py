"""How relations between entities are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_line, print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import counted, moment

if TYPE_CHECKING:
    from mnemolog.projections.lists.entity_graph import EntityGraph, Neighbour
    from mnemolog.projections.lists.relations import EntityRelation


def show_relations(found: "Sequence[EntityRelation]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no relations hold: check the scope, or ask for --all")
        return
    print_entries(counted(len(found), "relation"), [_entry(one, ids) for one in found])


def show_neighbours(found: "Sequence[Neighbour]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no neighbours: no relation of it holds")
        return
    entries = [
        Entry(str(one.entity.entity_id)[:8], f"{one.entity.name}: {one.entity.type}", [*map(in_words, one.path)])
        for one in found
    ]
    print_entries(counted(len(found), "neighbour"), entries)


def show_graph(found: "EntityGraph", _: ShortIds = WHOLE_IDS) -> None:
    """As it is, to be piped into a file."""
    for line in found.mermaid.splitlines():
        print_line(line)


def in_words(one: "EntityRelation") -> str:
    """A relation in a few words: `Alice: spouse Ana`."""
    return f"{one.subject}: {one.predicate.replace('_', ' ')} {one.object}"


def _entry(one: "EntityRelation", ids: ShortIds) -> Entry:
    since = f"since {moment(one.since)}" if one.since else ""
    until = f"until {moment(one.until)}" if one.until else ""
    state = "" if one.is_active else "holds no longer"
    contested = "another one holds as well" if one.is_contested else ""
    told = ", ".join(filter(None, [one.strength, state, since, until, contested]))
    return Entry(ids(one.evidence[0]) if one.evidence else "", in_words(one), [told])
