"""How facts, contexts, entities and relations are shown to people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mnemolog.cli.output import print_line, print_note, print_text, program_name
from mnemolog.cli.tables import WHOLE_IDS, Entry, ShortIds, age, counted, moment, owner_of, print_entries, scope_options

if TYPE_CHECKING:
    from mnemolog.client.search import SearchResult
    from mnemolog.projections.queries.pending import ConflictingFact, PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.results import Fact, Profile
    from mnemolog.projections.search.search import Score
    from mnemolog.projections.search.turn_search import TurnHit, TurnScore


def span(start: datetime | None, end: datetime | None) -> str:
    """From when to when."""
    return f"from {moment(start)}" + (f" to {moment(end)}" if end else "") if start else "never"


def state_of(fact: "Fact") -> str:
    """Its status where it is not simply active, and the other flags that warn of it."""
    flags = [fact.status.replace("_", " ")] if fact.status != "active" else []
    flags += ["begins later"] if fact.begins_later else []
    flags += ["conflict unresolved"] if fact.unresolved else []
    return ", ".join(flags)


def show_facts(found: "Sequence[Fact]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no facts: check the scope and the tenant; `mnemolog add TEXT --user USER` makes some")
        return
    owners = {owner_of(fact) for fact in found}
    title = counted(len(found), "fact") + (f" of {min(owners)}" if len(owners) == 1 else "")
    print_entries(
        title,
        [Entry(ids(fact.fact_id), fact.text, list(_fact_details(fact, with_owner=len(owners) > 1))) for fact in found],
    )


def _fact_details(fact: "Fact", *, with_owner: bool) -> Iterator[str]:
    if with_owner:
        yield owner_of(fact)
    yield ", ".join(filter(None, (state_of(fact), f"true {span(fact.true_from, fact.true_to)}")))
    named = f"{fact.key} = {fact.value}" if fact.key and fact.value else fact.key
    yield ", ".join(filter(None, (named, fact.category, f"confidence {fact.confidence:.2f}")))


def show_search(found: "SearchResult", ids: ShortIds = WHOLE_IDS) -> None:
    if not found.hits and not found.turns:
        print_text(found.notice or "no facts found: `mnemolog facts` lists all of them")
        return
    how = "by meaning and words" if found.mode == "hybrid" else "by words alone"
    hits = [
        Entry(
            ids(hit.fact.fact_id),
            hit.fact.text,
            [_rank(hit.score.total, hit.score.similarity), *_parts(hit.score, found), _when(hit.fact)],
        )
        for hit in found.hits
    ]
    if hits:
        print_entries(f"{counted(len(hits), 'fact')}, found {how}", hits)
    if found.turns:
        turns = [Entry(turn.turn_id, turn.excerpt, list(_turn_details(turn, found))) for turn in found.turns]
        print_entries(f"{counted(len(turns), 'turn')}, found by words", turns)
    if found.explained:
        _show_left_out({reason: others.facts for reason, others in found.left_out.items()}, "fact")
        _show_left_out(found.left_out_turns, "turn")
    if found.notice:
        print_note(f"note: {found.notice}")


def _parts(score: "Score | TurnScore", found: "SearchResult") -> list[str]:
    """What each signal gives to a score, where that was asked for."""
    parts = {name.removesuffix("_part"): value for name, value in asdict(score).items() if name.endswith("_part")}
    shown = ", ".join(f"{name} {value:.3f}" for name, value in parts.items() if value)
    return [f"of it {shown}"] if found.explained and shown else []


def _show_left_out(counts: Mapping[Any, int], what: str) -> None:
    for reason, number in counts.items():
        print_text(f"no hits: {counted(number, what)}, {reason.replace('_', ' ')}")


def _turn_details(turn: "TurnHit", found: "SearchResult") -> Iterator[str]:
    yield _rank(turn.score.total, None)
    yield from _parts(turn.score, found)
    said = f"said by {turn.speaker}, " if turn.speaker else ""
    yield f"{said}{moment(turn.occurred_at)}, {counted(len(turn.fact_ids), 'fact')}"


def _rank(total: float, similarity: float | None) -> str:
    return f"score {total:.3f}" + (f", similarity {similarity:.2f}" if similarity is not None else "")


def _when(fact: "Fact") -> str:
    return ", ".join(filter(None, (state_of(fact), f"true {span(fact.true_from, fact.true_to)}")))


def show_profile(known: "Profile", ids: ShortIds = WHOLE_IDS) -> None:
    from mnemolog.projections.queries.facts import PROFILE_SECTIONS  # noqa: PLC0415 - its drivers are loaded by now

    sections = {section: found for section in PROFILE_SECTIONS if (found := getattr(known, section))}
    if not sections:
        print_text("nothing is known of this scope: check it, or tell something with `mnemolog add TEXT --user USER`")
        return
    print_text(f"profile {'published' if known.published_at else 'as of'} {moment(known.updated_at)}")
    for section, found in sections.items():
        print_entries(section.replace("_", " "), [_profile_entry(one, ids) for one in found])


def _profile_entry(entry: dict[str, Any], ids: ShortIds) -> Entry:
    name = ids(UUID(entry["fact_id"])) if entry.get("fact_id") else ""
    since = f"since {moment(datetime.fromisoformat(entry['at']))}" if entry.get("at") else ""
    sure = f"confidence {entry['confidence']:.2f}" if entry.get("confidence") is not None else ""
    words = ", ".join(filter(None, (entry.get("event"), since, sure)))
    return Entry(name, entry.get("text") or "", [words])


def _said(fact: "Fact") -> str:
    return f'said: "{fact.excerpt}"' if fact.excerpt else "imported: no turn says it"


def show_pending(found: "Sequence[PendingFact | PendingMerge]", ids: ShortIds = WHOLE_IDS) -> None:
    from mnemolog.projections.queries.pending import PendingFact  # noqa: PLC0415 - its drivers are loaded by now

    if not found:
        print_text("nothing is pending: no overwrite or merge waits for a confirmation")
        return
    facts = [one for one in found if isinstance(one, PendingFact)]
    merges = [one for one in found if not isinstance(one, PendingFact)]
    if facts:
        entries = [Entry(ids(one.fact.fact_id), one.fact.text, list(_pending_details(one, ids))) for one in facts]
        print_entries(counted(len(facts), "pending overwrite"), entries)
        _print_settling("confirm", "reject", facts[0].fact.fact_id, facts[0].fact, ids)
    if merges:
        print_entries(counted(len(merges), "pending merge"), [_merge_entry(one, ids) for one in merges])
        _print_settling("confirm", "reject", merges[0].event_id, merges[0], ids)


def _merge_entry(one: "PendingMerge", ids: ShortIds) -> Entry:
    words = f"{one.merged_name} may be {one.into_name}"
    return Entry(ids(one.event_id), words, [one.reason, f"waiting for {age(one.age)}"])


def _pending_details(one: "PendingFact", ids: ShortIds) -> Iterator[str]:
    yield _said(one.fact)
    yield from (f"would {one.action} {_known(old, ids)}" for old in one.challenged)
    yield from (f"would stand unresolved beside {_known(old, ids)}" for old in one.beside)
    yield f"held by the guard {one.guard}: {one.reason}"
    yield f"waiting for {age(one.age)}" + ("; only a person can confirm it" if one.needs_human else "")


def show_unresolved(found: "Sequence[UnresolvedFact]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("nothing is unresolved: every conflict was decided")
        return
    print_entries(
        counted(len(found), "unresolved fact"),
        [Entry(ids(one.fact.fact_id), one.fact.text, list(_unresolved_details(one, ids))) for one in found],
    )
    fact = found[0].fact
    print_line(f"settle one: {program_name()} resolve {ids(fact.fact_id)} keep_both {scope_options(fact)}")


def _unresolved_details(one: "UnresolvedFact", ids: ShortIds) -> Iterator[str]:
    yield _said(one.fact)
    yield from (f"beside {_known(old, ids)}" for old in one.beside)
    yield one.reason
    yield f"unresolved for {age(one.age)}"


def _known(old: "ConflictingFact", ids: ShortIds) -> str:
    return f"{ids(old.fact_id)} {old.text} (confidence {old.confidence:.2f})"


def _print_settling(yes: str, no: str, named: UUID, owned: object, ids: ShortIds) -> None:
    name, scope = ids(named), scope_options(owned)
    print_line(f"settle one: {program_name()} {yes} {name} {scope}")
    print_line(f"        or: {program_name()} {no} {name} {scope}")


if TYPE_CHECKING:
    from mnemolog.projections.context import Context

_REASONS: Final = {"budget": "for want of room", "doubtful": "because it is doubtful"}


def show_context(found: "Context", _: ShortIds = WHOLE_IDS) -> None:
    if found.text:
        print_line(found.text)
    note = f"{counted(len(found.facts), 'fact')}, {found.tokens} of {found.budget_tokens} tokens ({found.counted_by})"
    left_out = [f"{number} left out {_REASONS[reason]}" for reason, number in found.left_out_counts.items()]
    reasons = Counter(one.reason for one in found.left_out_summaries)
    without = [f"{counted(number, 'summary', 'summaries')} {_REASONS[one]}" for one, number in reasons.items()]
    print_note("; ".join(filter(None, (note, *left_out, *without, found.notice))))


if TYPE_CHECKING:
    from mnemolog.client.files import ImportReport
    from mnemolog.projections.queries.facts import IdCount


_MAX_SHOWN: Final = 10


def show_count(number: int, _: ShortIds = WHOLE_IDS) -> None:
    print_text(counted(number, "fact"))


def show_ids(found: "Sequence[IdCount]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("none: check the tenant; `mnemolog add TEXT --user USER` makes facts")
        return
    entries = [Entry(one.id, f"{counted(one.facts, 'fact')} in {counted(one.scopes, 'scope')}") for one in found]
    print_entries(f"{len(found)} listed", entries)


def show_exported(number: int, _: ShortIds = WHOLE_IDS) -> None:
    print_note(f"{counted(number, 'fact')} written")


def show_import(report: "ImportReport") -> None:
    print_line(f"{counted(report.read, 'line')} read, {counted(report.sent, 'fact')} sent")
    if report.not_active:
        print_line(f"{counted(report.not_active, 'fact')} passed over, not active")
    if report.added or report.known:
        print_line(f"{report.added} added, {report.known} known already")
    damaged = [f"line {number}: {what}" for number, what in report.damaged.items()][:_MAX_SHOWN]
    rejected = [f"{command_id}: {what}" for command_id, what in report.rejected.items()][:_MAX_SHOWN]
    for note in (*damaged, *rejected):
        print_note(note)
    if hidden := report.damaged_count + report.rejected_count - len(damaged) - len(rejected):
        print_note(f"and {hidden} more")


if TYPE_CHECKING:
    from mnemolog.projections.queries.entities import EntityRelation
    from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour


def show_relations(found: "Sequence[EntityRelation]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no relations hold: check the scope, or ask for --all")
        return
    print_entries(counted(len(found), "relation"), [_relations_entry(one, ids) for one in found])


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


def _relations_entry(one: "EntityRelation", ids: ShortIds) -> Entry:
    since = f"since {moment(one.since)}" if one.since else ""
    until = f"until {moment(one.until)}" if one.until else ""
    state = "" if one.is_active else "holds no longer"
    contested = "another one holds as well" if one.is_contested else ""
    told = ", ".join(filter(None, [one.strength, state, since, until, contested]))
    return Entry(ids(one.evidence[0]) if one.evidence else "", in_words(one), [told])


if TYPE_CHECKING:
    from mnemolog.projections.queries.entities import Entity, EntityDetails, EntitySummary, MomentKind
    from mnemolog.projections.queries.trace import TracedName


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
