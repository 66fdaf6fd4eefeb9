"""What each step of the demonstration shows: a few lines of 80 columns, without ids."""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from mnemolog.cli.output import stdout, without_control_characters
from mnemolog.cli.show_facts import relation_words
from mnemolog.cli.tables import counted
from mnemolog.client.search import SearchResult
from mnemolog.client.turn_files import PublishReport
from mnemolog.projections.queries.audit import Audit
from mnemolog.projections.queries.diff import CHANGE_KINDS, Diff
from mnemolog.projections.queries.entities import Entity, EntityDetails, EntityRelation
from mnemolog.projections.queries.entity_graph import EntityGraph
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.facts import PROFILE_SECTIONS
from mnemolog.projections.queries.pending import PendingFact
from mnemolog.projections.queries.results import Profile, Result
from mnemolog.projections.rebuild.rebuild import RebuildReport
from mnemolog.streams.kafka.dead_letters import DeadLetter

COLUMNS: Final = 80
FACTS_OF_A_PERSON: Final = 3
CHANGES: Final = 8
EXCERPT_CHARACTERS: Final = 70


def show_heading(number: int, what: str, why: str) -> None:
    print_lines("")
    print_lines(f"{number}. {what}", indent=0, style="bold cyan")
    if why:
        print_lines(why, style="dim")


def show_published(report: PublishReport) -> None:
    print_lines(f"{counted(report.read, 'record')} sent, {report.acknowledged} acknowledged")


def show_ends(ends: Sequence[tuple[str | None, Result]]) -> None:
    """How many turns ended how, and the first facts of each person."""
    number = Counter(end.status for _, end in ends)
    facts: dict[str, list[str]] = defaultdict(list)
    for person, end in ends:
        if person:
            facts[person] += [one.text or "" for one in end.changes]
    print_lines(
        f"{counted(number['facts'], 'turn')} became facts, {number['no_facts']} had nothing to keep, "
        f"{number['failed']} was no valid record"
    )
    for person, texts in sorted(facts.items()):
        more = len(texts) - FACTS_OF_A_PERSON
        print_lines(f"{person}:")
        print_lines(*texts[:FACTS_OF_A_PERSON], *([f"and {more} more"] if more > 0 else []), indent=4)


def show_versions(history: History) -> None:
    for fact in history.versions:
        until = f" to {fact.true_to:%Y-%m-%d}" if fact.true_to else ""
        print_lines(f"{fact.text}  ({fact.status}, true from {fact.true_from:%Y-%m-%d}{until})")


def show_hits(found: SearchResult) -> None:
    for hit in found.hits:
        print_lines(f"{hit.score.total:.2f}  {hit.fact.text}")


def show_held(pending: PendingFact) -> None:
    known = ", ".join(one.text for one in pending.challenged)
    print_lines(f'"{pending.fact.excerpt}"', f"known: {known}", f"held back: {pending.reason}")


def show_explanation(explanation: Explanation) -> None:
    decision = explanation.decision
    print_lines(
        f'{explanation.fact.speaker or "it"} said: "{explanation.fact.excerpt}"',
        f"decided: {_plain(decision.event)}, because {decision.reason}",
    )


def show_believed(what: str, history: History) -> None:
    """Which versions of a fact are believed after `what`."""
    active = [fact.text for fact in history.versions if fact.status == "active"]
    print_lines(f"{what}: {' '.join(active) or 'nothing'} is believed")


def show_command(end: Result) -> None:
    for one in end.changes:
        print_lines(f"{_plain(one.event)}: {one.text}")


def show_changes(changes: Diff) -> None:
    """What changed known facts, and how many were only added."""
    found = [(kind, one) for kind in CHANGE_KINDS if kind != "added" for one in getattr(changes, kind)]
    for kind, one in found[:CHANGES]:
        old = f"  (before: {' '.join(known.text for known in one.old)})" if kind == "replaced" and one.old else ""
        print_lines(f"{kind}: {one.text}{old}")
    print_lines(f"and {counted(len(changes.added), 'fact')} added", style="dim")


def show_dead_letter(letter: DeadLetter) -> None:
    record = (letter.value or b"").decode(errors="replace")
    print_lines(f"{record[:EXCERPT_CHARACTERS]} ...", f"refused: {letter.detail}")


def show_profile(profile: Profile) -> None:
    for section in PROFILE_SECTIONS:
        texts = [str(entry.get("text")) for entry in getattr(profile, section)]
        if texts and section != "recent_changes":
            print_lines(f"{_plain(section)}:")
            print_lines(*texts, indent=4)


def show_entities(found: Sequence[Entity]) -> None:
    for one in found:
        also = f" (also {', '.join(one.aliases)})" if one.aliases else ""
        kind = "the user" if one.is_user else one.type
        print_lines(f"{one.name}{also}: {kind}, in {counted(one.facts, 'fact')}")


def show_entity(found: EntityDetails) -> None:
    print_lines(f"{' = '.join(name.name for name in found.names)}, in:")
    print_lines(*(linked.fact.text for linked in found.facts), indent=4)


def show_relations(found: Sequence[EntityRelation]) -> None:
    for one in found:
        until = f"  (until {one.until:%Y-%m-%d})" if one.until else ""
        print_lines(f"{relation_words(one)}{until}")


def show_graph(found: EntityGraph) -> None:
    print_lines(*found.mermaid.splitlines())


def show_rebuild(report: RebuildReport) -> None:
    rows = sum(one.rebuilt_rows for one in report.tables)
    equal = "all digests are equal" if report.equal else "digests differ"
    print_lines(f"{counted(len(report.tables), 'table')}, {counted(rows, 'row')}: {equal}")


def show_audit(report: Audit) -> None:
    ended = sum(report.ends.values())
    passed = "the audit passed" if report.ok else "the audit failed"
    print_lines(f"{counted(report.accepted, 'turn')} accepted = {ended} ended + {report.in_flight} in flight: {passed}")


def print_lines(*lines: str, indent: int = 2, style: str = "") -> None:
    """Write indented lines within 80 columns."""
    out = stdout()
    space = " " * indent
    for line in lines:
        text = textwrap.fill(without_control_characters(line), COLUMNS, initial_indent=space, subsequent_indent=space)
        out.print(Text(text, style=style), soft_wrap=True)


def _plain(name: str) -> str:
    return name.replace("_", " ")
