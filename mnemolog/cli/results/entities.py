"""How entities are shown."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_line, print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.relations import show_relations
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import counted, moment

if TYPE_CHECKING:
    from mnemolog.projections.lists.entities import Entity, EntityDetails
    from mnemolog.projections.lists.entity_summary import EntitySummary
    from mnemolog.projections.lists.entity_timeline import MomentKind
    from mnemolog.projections.queries.turns.traced_names import TracedName


def show_entities(found: "Sequence[Entity]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no entities: check the scope and the tenant; facts that are stored from now on name some")
        return
    print_entries(counted(len(found), "entity", "entities"), [_entry(one) for one in found])


def show_who(found: "Sequence[Entity]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        advice = """`mnemolog relations` lists who is what; ask as in "my wife" or "Tom's boss\""""
        print_text(f"nobody and nothing known is that: {advice}")
        return
    show_entities(found, ids)


def show_entity(found: "EntityDetails", ids: ShortIds = WHOLE_IDS) -> None:
    one = found.entity
    print_line(f"{one.name}, {'the user' if one.is_user else one.type} ({one.entity_id})")
    if found.summary is not None:
        _show_summary(found.summary)
    names = [Entry(moment(name.recorded_at), name.name, [_KINDS[name.kind]]) for name in found.names]
    print_entries(counted(len(names), "name"), names)
    facts = [Entry(ids(linked.fact.fact_id), linked.fact.text, [linked.role]) for linked in found.facts]
    print_entries(counted(len(facts), "fact"), facts)
    for key, value in found.profile.values.items():
        print_text(f"{key} = {value}")
    if found.relations:
        show_relations(found.relations, ids)
    ends = [Entry(moment(one.at), one.text, [_ENDS[one.change]]) for one in found.timeline if one.change in _ENDS]
    if ends:
        print_entries(counted(len(ends), "end"), ends)
    if found.twins:
        print_entries("may be the same as", [_entry(twin) for twin in found.twins])
    if found.history:
        said = [
            Entry(moment(one.decided_at), one.reason, [one.source_id, "undone" if one.undone else ""])
            for one in found.history
        ]
        print_entries(counted(len(said), "decision"), said)


def show_names(names: "Sequence[TracedName]") -> None:
    """The names that were read in a turn; the user, who needs none, is left out."""
    from mnemolog.texts import name_sentence  # noqa: PLC0415 - loads the results of queries

    rows = [Entry(str(one.entity_id or "-")[:8], _name_read(one), [name_sentence(one)]) for one in names if one.name]
    if rows:
        print_entries(f"{counted(len(rows), 'name')} read", rows)


def _name_read(one: "TracedName") -> str:
    return f"{one.name}: {one.entity}" if one.entity and one.entity != one.name else f"{one.name}"


def _show_summary(one: "EntitySummary") -> None:
    notes = [f"summary {one.version}", f"written by {one.model}", moment(one.written_at)]
    if one.left_out:
        notes.append(f"{counted(one.left_out, 'fact')} left out")
    if one.changed:
        notes.append(f"stale: {counted(one.changed, 'fact')} changed since")
    print_text(one.summary)
    print_text(f"({', '.join(notes)})")


_ENDS: "Mapping[MomentKind, str]" = {"ended": "ended", "withdrawn": "taken back", "relation_ended": "over"}
_KINDS = {"name": "", "tie": "what it is to somebody", "user": "the user"}


def _entry(one: "Entity") -> Entry:
    also = f"also {', '.join(one.aliases)}" if one.aliases else ""
    twins = f"{counted(len(one.possible_twins), 'possible twin')}" if one.possible_twins else ""
    waiting = f"{counted(len(one.pending_merges), 'pending merge')}" if one.pending_merges else ""
    kind = "the user" if one.is_user else one.type
    return Entry(str(one.entity_id)[:8], f"{one.name}: {kind}, in {counted(one.facts, 'fact')}", [also, twins, waiting])
