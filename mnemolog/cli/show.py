"""How results of the client are shown to people: facts, contexts, entities, ends of turns, decisions and figures."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from mnemolog.cli.output import print_line, print_note, print_text, program_name
from mnemolog.cli.tables import (
    WHOLE_IDS,
    Entry,
    ShortIds,
    age,
    age_of_milliseconds,
    cell,
    counted,
    moment,
    owner_of,
    print_entries,
    print_points,
    print_table,
    scope_options,
    turn_options,
)

if TYPE_CHECKING:
    from mnemolog.client.files import ImportReport
    from mnemolog.client.search import SearchResult
    from mnemolog.projections.context import Context
    from mnemolog.projections.queries.diff import Change, Diff
    from mnemolog.projections.queries.entities import Entity, EntityDetails, EntityRelation
    from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
    from mnemolog.projections.queries.explain import Explanation, History
    from mnemolog.projections.queries.facts import IdCount
    from mnemolog.projections.queries.pending import ConflictingFact, PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.quality import DecisionQuality
    from mnemolog.projections.queries.results import Fact, Profile, Result
    from mnemolog.projections.queries.trace import Trace, TracedCall, TracedDecision, TracedName
    from mnemolog.projections.queries.write_result import WhyNot
    from mnemolog.projections.search.search import Score
    from mnemolog.projections.search.turn_search import TurnScore

_LEFT_OUT: Final = {"budget": "for want of room", "doubtful": "because it is doubtful"}
_MAX_ERRORS_SHOWN: Final = 10
_NAME_KINDS: Final = {"name": "", "tie": "what it is to somebody", "user": "the user"}
_ENDINGS: Final[Mapping[str, str]] = {"ended": "ended", "withdrawn": "taken back", "relation_ended": "over"}
"""The changes in the life of an entity that `mnemolog entity` lists as ends."""
_STANDS_BESIDE = frozenset({"fact_extended", "facts_related", "fact_pending", "pending_rejected"})
"""Events whose fact does not take the place of the known one."""


def span(start: datetime | None, end: datetime | None) -> str:
    """From when to when."""
    return f"from {moment(start)}" + (f" to {moment(end)}" if end else "") if start else "never"


def show_facts(found: "Sequence[Fact]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no facts: check the scope and the tenant; `mnemolog add TEXT --user USER` makes some")
        return
    owners = {owner_of(fact) for fact in found}
    entries = []
    for fact in found:
        named = f"{fact.key} = {fact.value}" if fact.key and fact.value else fact.key
        details = [_state_and_time(fact), _joined(named, fact.category, f"confidence {fact.confidence:.2f}")]
        entries.append(Entry(ids(fact.fact_id), fact.text, [owner_of(fact), *details] if len(owners) > 1 else details))
    print_entries(counted(len(found), "fact") + (f" of {min(owners)}" if len(owners) == 1 else ""), entries)


def show_search(found: "SearchResult", ids: ShortIds = WHOLE_IDS) -> None:
    if not found.hits and not found.turns:
        print_text(found.notice or "no facts found: `mnemolog facts` lists all of them")
        return
    hits = [
        Entry(ids(hit.fact.fact_id), hit.fact.text, [*_scores(hit.score, found), _state_and_time(hit.fact)])
        for hit in found.hits
    ]
    if hits:
        how = "by meaning and words" if found.mode == "hybrid" else "by words alone"
        print_entries(f"{counted(len(hits), 'fact')}, found {how}", hits)
    turns = []
    for turn in found.turns:
        said = f"said by {turn.speaker}, " if turn.speaker else ""
        said += f"{moment(turn.occurred_at)}, {counted(len(turn.fact_ids), 'fact')}"
        turns.append(Entry(turn.turn_id, turn.excerpt, [*_scores(turn.score, found), said]))
    if turns:
        print_entries(f"{counted(len(turns), 'turn')}, found by words", turns)
    if found.explained:
        left_out: list[tuple[str, int, str]] = [
            (reason, others.facts, "fact") for reason, others in found.left_out.items()
        ]
        left_out += [(reason, number, "turn") for reason, number in found.left_out_turns.items()]
        for reason, number, what in left_out:
            print_text(f"no hits: {counted(number, what)}, {reason.replace('_', ' ')}")
    if found.notice:
        print_note(f"note: {found.notice}")


def _scores(score: "Score | TurnScore", found: "SearchResult") -> list[str]:
    """The score of a hit, and what each signal gives to it where that was asked for."""
    similarity = getattr(score, "similarity", None)
    total = f"score {score.total:.3f}" + (f", similarity {similarity:.2f}" if similarity is not None else "")
    parts = {name.removesuffix("_part"): value for name, value in asdict(score).items() if name.endswith("_part")}
    shown = ", ".join(f"{name} {value:.3f}" for name, value in parts.items() if value)
    return [total, f"of it {shown}"] if found.explained and shown else [total]


def _state_and_time(fact: "Fact") -> str:
    """What a reader has to know before he believes a fact, and when it is true."""
    state = [fact.status.replace("_", " ")] if fact.status != "active" else []
    state += ["begins later"] if fact.begins_later else []
    state += ["conflict unresolved"] if fact.unresolved else []
    state += ["disputed"] if fact.disputed else []
    return ", ".join((*state, f"true {span(fact.true_from, fact.true_to)}"))


def _joined(*parts: str | None) -> str:
    return ", ".join(filter(None, parts))


def show_profile(known: "Profile", ids: ShortIds = WHOLE_IDS) -> None:
    from mnemolog.projections.queries.facts import PROFILE_SECTIONS  # noqa: PLC0415 - its drivers are loaded by now

    sections = {section: found for section in PROFILE_SECTIONS if (found := getattr(known, section))}
    if not sections:
        print_text("nothing is known of this scope: check it, or tell something with `mnemolog add TEXT --user USER`")
        return
    print_text(f"profile {'published' if known.published_at else 'as of'} {moment(known.updated_at)}")
    for section, found in sections.items():
        entries = []
        for one in found:
            name = ids(UUID(one["fact_id"])) if one.get("fact_id") else ""
            since = f"since {moment(datetime.fromisoformat(one['at']))}" if one.get("at") else ""
            confidence = f"confidence {one['confidence']:.2f}" if one.get("confidence") is not None else ""
            entries.append(Entry(name, one.get("text") or "", [_joined(one.get("event"), since, confidence)]))
        print_entries(section.replace("_", " "), entries)


def show_context(found: "Context", _: ShortIds = WHOLE_IDS) -> None:
    if found.text:
        print_line(found.text)
    note = f"{counted(len(found.facts), 'fact')}, {found.tokens} of {found.budget_tokens} tokens ({found.counted_by})"
    facts = [f"{number} left out {_LEFT_OUT[reason]}" for reason, number in found.left_out_counts.items()]
    reasons = Counter(one.reason for one in found.left_out_summaries)
    summaries = [f"{counted(number, 'summary', 'summaries')} {_LEFT_OUT[one]}" for one, number in reasons.items()]
    print_note("; ".join(filter(None, (note, *facts, *summaries, found.notice))))


def show_pending(found: "Sequence[PendingFact | PendingMerge]", ids: ShortIds = WHOLE_IDS) -> None:
    from mnemolog.projections.queries.pending import PendingFact  # noqa: PLC0415 - its drivers are loaded by now

    if not found:
        print_text("nothing is pending: no overwrite or merge waits for a confirmation")
        return
    facts = [one for one in found if isinstance(one, PendingFact)]
    merges = [one for one in found if not isinstance(one, PendingFact)]
    if facts:
        entries = []
        for one in facts:
            person = "; only a person can confirm it" if one.needs_human else ""
            details = [
                _said(one.fact),
                *(f"would {one.action} {_known(old, ids)}" for old in one.challenged),
                *(f"would stand unresolved beside {_known(old, ids)}" for old in one.beside),
                f"held by the guard {one.guard}: {one.reason}",
                f"waiting for {age(one.age)}{person}",
            ]
            entries.append(Entry(ids(one.fact.fact_id), one.fact.text, details))
        print_entries(counted(len(facts), "pending overwrite"), entries)
        _print_confirm_or_reject(ids(facts[0].fact.fact_id), facts[0].fact)
    if merges:
        entries = [
            Entry(
                ids(one.event_id),
                f"{one.merged_name} may be {one.into_name}",
                [one.reason, f"waiting for {age(one.age)}"],
            )
            for one in merges
        ]
        print_entries(counted(len(merges), "pending merge"), entries)
        _print_confirm_or_reject(ids(merges[0].event_id), merges[0])


def _print_confirm_or_reject(name: str, owned: "Fact | PendingMerge") -> None:
    scope = scope_options(owned)
    print_line(f"settle one: {program_name()} confirm {name} {scope}")
    print_line(f"        or: {program_name()} reject {name} {scope}")


def show_unresolved(found: "Sequence[UnresolvedFact]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("nothing is unresolved: every conflict was decided")
        return
    entries = []
    for one in found:
        beside = [f"beside {_known(old, ids)}" for old in one.beside]
        details = [_said(one.fact), *beside, one.reason, f"unresolved for {age(one.age)}"]
        entries.append(Entry(ids(one.fact.fact_id), one.fact.text, details))
    print_entries(counted(len(found), "unresolved fact"), entries)
    fact = found[0].fact
    print_line(f"settle one: {program_name()} resolve {ids(fact.fact_id)} keep_both {scope_options(fact)}")


def _said(fact: "Fact") -> str:
    return f'said: "{fact.excerpt}"' if fact.excerpt else "imported: no turn says it"


def _known(old: "ConflictingFact", ids: ShortIds) -> str:
    return f"{ids(old.fact_id)} {old.text} (confidence {old.confidence:.2f})"


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


def show_import(report: "ImportReport", *, undo: bool = False) -> None:
    read = [counted(report.turns, "turn of conversations", "turns of conversations")] if report.turns else []
    if report.read > report.turns or not read:
        read.insert(0, counted(report.read - report.turns, "line"))
    print_line(f"{' and '.join(read)} read, {report.sent} sent")
    if report.not_active:
        print_line(f"{counted(report.not_active, 'fact')} passed over, not active")
    if report.passed_over:
        named = ", ".join(f"{name} ({number})" for name, number in report.passed_over.items())
        print_line(f"passed over: {named}")
    if undo and (report.undone or report.known):
        left = f", {report.known} with nothing left to take back" if report.known else ""
        print_line(f"{counted(report.undone, 'line')} taken back{left}")
    elif report.added or report.known:
        print_line(f"{report.added} added, {report.known} known already")
    damaged = [f"line {number}: {what}" for number, what in report.damaged.items()][:_MAX_ERRORS_SHOWN]
    rejected = [f"{command_id}: {what}" for command_id, what in report.rejected.items()][:_MAX_ERRORS_SHOWN]
    for note in (*damaged, *rejected):
        print_note(note)
    if hidden := report.damaged_count + report.rejected_count - len(damaged) - len(rejected):
        print_note(f"and {hidden} more")


def show_entities(found: "Sequence[Entity]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no entities: check the scope and the tenant; facts that are stored from now on name some")
        return
    print_entries(counted(len(found), "entity", "entities"), [_entity_entry(one) for one in found])


def _entity_entry(one: "Entity") -> Entry:
    also = f"also {', '.join(one.aliases)}" if one.aliases else ""
    twins = f"{counted(len(one.possible_twins), 'possible twin')}" if one.possible_twins else ""
    merges = f"{counted(len(one.pending_merges), 'pending merge')}" if one.pending_merges else ""
    kind = "the user" if one.is_user else one.type
    return Entry(str(one.entity_id)[:8], f"{one.name}: {kind}, in {counted(one.facts, 'fact')}", [also, twins, merges])


def show_who(found: "Sequence[Entity]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        advice = """`mnemolog relations` lists who is what; ask as in "my wife" or "Tom's boss\""""
        print_text(f"nobody and nothing known is that: {advice}")
        return
    show_entities(found, ids)


def show_entity(found: "EntityDetails", ids: ShortIds = WHOLE_IDS) -> None:
    entity, summary = found.entity, found.summary
    print_line(f"{entity.name}, {'the user' if entity.is_user else entity.type} ({entity.entity_id})")
    if summary is not None:
        notes = [f"summary {summary.version}", f"written by {summary.model}", moment(summary.written_at)]
        notes += [f"{counted(summary.left_out, 'fact')} left out"] if summary.left_out else []
        notes += [f"stale: {counted(summary.changed, 'fact')} changed since"] if summary.changed else []
        print_text(summary.summary)
        print_text(f"({', '.join(notes)})")
    names = [Entry(moment(name.recorded_at), name.name, [_NAME_KINDS[name.kind]]) for name in found.names]
    print_entries(counted(len(names), "name"), names)
    facts = [Entry(ids(linked.fact.fact_id), linked.fact.text, [linked.role]) for linked in found.facts]
    print_entries(counted(len(facts), "fact"), facts)
    for key, value in found.profile.values.items():
        print_text(f"{key} = {value}")
    if found.relations:
        show_relations(found.relations, ids)
    ends = [Entry(moment(one.at), one.text, [_ENDINGS[one.change]]) for one in found.timeline if one.change in _ENDINGS]
    if ends:
        print_entries(counted(len(ends), "end"), ends)
    if found.twins:
        print_entries("may be the same as", [_entity_entry(twin) for twin in found.twins])
    if found.history:
        decisions = [
            Entry(moment(one.decided_at), one.reason, [one.source_id, "undone" if one.undone else ""])
            for one in found.history
        ]
        print_entries(counted(len(decisions), "decision"), decisions)


def show_relations(found: "Sequence[EntityRelation]", ids: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no relations hold: check the scope, or ask for --all")
        return
    entries = []
    for one in found:
        since = f"since {moment(one.since)}" if one.since else ""
        until = f"until {moment(one.until)}" if one.until else ""
        state = "" if one.is_active else "holds no longer"
        contested = "another one holds as well" if one.is_contested else ""
        fact = ids(one.evidence[0]) if one.evidence else ""
        entries.append(
            Entry(fact, relation_words(one), [_joined(f"strength {one.strength:.2f}", state, since, until, contested)])
        )
    print_entries(counted(len(found), "relation"), entries)


def relation_words(one: "EntityRelation") -> str:
    """A relation in a few words: `Alice: spouse Ana`."""
    return f"{one.subject}: {one.predicate.replace('_', ' ')} {one.object}"


def show_neighbours(found: "Sequence[Neighbour]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("no neighbours: no relation of it holds")
        return
    entries = [
        Entry(str(one.entity.entity_id)[:8], f"{one.entity.name}: {one.entity.type}", [*map(relation_words, one.path)])
        for one in found
    ]
    print_entries(counted(len(found), "neighbour"), entries)


def show_graph(found: "EntityGraph", _: ShortIds = WHOLE_IDS) -> None:
    """As it is, to be piped into a file."""
    for line in found.mermaid.splitlines():
        print_line(line)


def show_names(names: "Sequence[TracedName]") -> None:
    """The names that were read in a turn, each with its entity; the user, who has none, is left out."""
    from mnemolog.texts import name_sentence  # noqa: PLC0415 - loads the results of queries

    entries = []
    for one in names:
        if one.name:
            read = f"{one.name}: {one.entity}" if one.entity and one.entity != one.name else one.name
            entries.append(Entry(str(one.entity_id or "-")[:8], read, [name_sentence(one)]))
    if entries:
        print_entries(f"{counted(len(entries), 'name')} read", entries)


def show_status(result: "Result", ids: ShortIds = WHOLE_IDS) -> None:
    attempt = f", attempt {result.attempt}" if result.attempt > 1 else ""
    what = f"command {result.turn_id} ({result.order})" if result.order else f"turn {result.turn_id}"
    print_line(f"{what}: {result.status}{attempt}")
    if result.error:
        print_text(f"reason: {result.error}")
    for note in result.notes:
        print_text(f"note: {note}")
    if result.status == "pending":
        options = turn_options(result)
        print_line(f"its result: {program_name()} status {shlex.quote(result.turn_id)}{options} --wait")
        return
    if result.changes:
        entries = []
        for one in result.changes:
            fact = one.fact_id or next(iter(one.targets), None)  # an undo is about no single fact
            action = f" ({one.action})" if one.action else ""
            flags = [*(["unresolved"] if one.unresolved else []), *(["needs a person"] if one.needs_human else [])]
            reason = f"{one.event}{action}: {one.reason}" + (f" ({', '.join(flags)})" if flags else "")
            entries.append(Entry(ids(fact), one.text or one.event, [reason]))
        counts = {
            "added": result.facts_added,
            "updated": result.facts_updated,
            "unchanged": result.facts_unchanged,
            "ended": result.facts_deleted,
            "pending": result.facts_pending,
        }
        words = [f"{number} {what}" for what, number in counts.items() if number]
        words += [counted(result.conflicts, "conflict")] if result.conflicts else []
        print_entries(_joined(*words) or "no fact changed", entries)
    calls = result.embedding_calls
    print_text(
        "cost: "
        + _joined(
            counted(result.llm_calls, "LLM call"),
            f"{calls:.2f} of an embedding call" if 0 < calls < 1 else counted(round(calls), "embedding call"),
            counted(result.tokens.total, "token") if result.tokens.total else "",
            str(result.cost) if result.cost.amount != "0" else "",
            age_of_milliseconds(result.duration_ms) if result.duration_ms is not None else "",
        )
    )
    if result.trace is not None:
        _show_trace(result, result.trace, ids)


def _show_trace(result: "Result", trace: "Trace", ids: ShortIds) -> None:
    costs = []
    for stage in result.stages:
        tokens = stage.tokens
        cached = f" ({tokens.cached} cached)" if tokens.cached is not None else ""
        costs.append(
            (
                stage.stage,
                f"{stage.milliseconds:.1f}",
                stage.llm_calls,
                stage.embedding_calls,
                f"{tokens.input}{cached} + {tokens.output}",
                stage.cost.amount or "unknown",
                ", ".join((*stage.models, *stage.prompt_versions)),
            )
        )
    print_table("cost by stage", ("stage", "ms", "LLM", "embedding", "tokens", "cost", "model, prompt"), costs)
    decisions = [
        Entry(ids(one.fact_id), f"{one.event}: {one.statement or ''}", list(_decision_details(one, ids)))
        for one in trace.decisions
    ]
    print_entries(counted(len(decisions), "decision"), decisions)
    show_names(trace.names)
    show_shared_calls(trace.shared_calls)
    shown = trace.background
    if shown.turn_ids:
        print_line(f"the extraction was shown turns {', '.join(shown.turn_ids)}")
    if shown.facts:
        print_entries(
            "the extraction was shown facts", [Entry(ids(fact.fact_id), fact.text or "") for fact in shown.facts]
        )
    if shown.entities:
        names = ", ".join(one.name or str(one.entity_id) for one in shown.entities)
        print_text(f"the extraction was told the names of {names}")
    if mood := trace.mood:
        print_line(f"mood: {mood['emotion']}, intensity {mood['intensity']:g}, {mood['energy']} energy")
    for note in shown.notes:
        print_text(f"note: {note}")
    if trace.reprompts:
        print_entries("asked again", [Entry(one.stage, one.complaint) for one in trace.reprompts])
    if trace.omitted:
        omitted = [Entry(one.stage, one.text, [one.reason.replace("_", " ")]) for one in trace.omitted]
        print_entries("statements left out", omitted)


def _decision_details(decided: "TracedDecision", ids: ShortIds) -> Iterator[str]:
    yield f"decided by {decided.by}: {decided.reason}"
    if decided.verdict:
        yield f"verdict {decided.verdict}" + (f", blocked by guard {decided.guard}" if decided.guard else "")
    if decided.model:
        yield f"{decided.model}, {decided.prompt_version}"
    for known in decided.retrieved:
        yield f"compared with {ids(known.fact_id)} {known.text or ''} (similarity {known.similarity:.3f})"
    for one in decided.before:
        yield f"before: {one.text}"


def show_shared_calls(calls: "Sequence[TracedCall]") -> None:
    from mnemolog.texts import shared_call_sentence  # noqa: PLC0415 - loads the results of queries

    for call in calls:
        print_text(shared_call_sentence(call))


def show_results(found: "Result | list[Result]", ids: ShortIds = WHOLE_IDS) -> None:
    for result in found if isinstance(found, list) else [found]:
        show_status(result, ids)


def show_history(history: "History", ids: ShortIds = WHOLE_IDS) -> None:
    versions = []
    for fact in history.versions:
        status = f"{fact.status.replace('_', ' ')}, true {span(fact.true_from, fact.true_to)}"
        believed = f"believed {span(fact.believed_from, fact.believed_to)}"
        versions.append(Entry(ids(fact.fact_id), fact.text, [status, believed]))
    print_entries(counted(len(versions), "version"), versions)
    events = []
    for event in history.events:
        notes = [*(["undone since"] if event.undone else []), *(["stale"] if event.stale else [])]
        what = f"{event.event} on {moment(event.decided_at)}" + (f" ({', '.join(notes)})" if notes else "")
        events.append(Entry(ids(event.event_id), what, [event.reason, f"source {event.source_id}"]))
    print_entries(counted(len(events), "event"), events)
    relations = []
    for one in history.relations:
        ended = "" if one.holds else " (one of them has ended)"
        related = f"{one.relation.replace('similar', 'is similar to')} {ids(one.related_id)} {one.related_text}{ended}"
        relations.append(Entry(ids(one.fact_id), one.text, [related]))
    if relations:
        print_entries(counted(len(relations), "relation"), relations)


def show_explanation(explanation: "Explanation", ids: ShortIds = WHOLE_IDS) -> None:
    print_points(explanation.words)
    fact, source, program = explanation.fact, explanation.source, program_name()
    scope = scope_options(fact)
    print_line(f"all versions: {program} history {ids(fact.fact_id)}")
    print_line(f"wrong:        {program} correct {ids(fact.fact_id)} TEXT {scope}")
    print_line(f"take back:    {program} undo --turn {shlex.quote(source.source_id)} {scope}")


def show_why_not(report: "WhyNot", _: ShortIds = WHOLE_IDS) -> None:
    print_line(f"turn {report.turn_id}: {report.status}, {counted(report.facts, 'fact')}")
    show_shared_calls(report.shared_calls)
    rows = [
        Entry("-", one.text or "the turn as a whole", [f"{one.reason.replace('_', ' ')}: {one.because}"])
        for one in report.missing
    ]
    if rows:
        print_entries(counted(len(rows), "statement") + " not stored", rows)
    else:
        print_text("every statement became a fact")
    show_names(report.names)


def show_diff(changes: "Diff", ids: ShortIds = WHOLE_IDS) -> None:
    when = "decided" if changes.axis == "believed" else "so since"
    interval = f"from {moment(changes.since)} to {moment(changes.until)}"
    rows = []
    for kind, change in changes.in_order:
        # The fact that a change brought or is about; the facts that it ended, where nothing took their place.
        own = [(change.fact_id, change.text or change.event)] if change.text is not None or not change.old else []
        for fact_id, text in own or [(old.fact_id, old.text) for old in change.old]:
            rows.append(Entry(ids(fact_id), f"{kind}: {text}", list(_change_details(change, when, ids))))
    print_entries(f"{counted(len(rows), 'change')} {interval}", rows)
    for facts, what in ((changes.gained, "known at its end and not at its start"), (changes.lost, "no longer known")):
        if facts:
            entries = [
                Entry(ids(fact.fact_id), fact.text, [f"true {span(fact.true_from, fact.true_to)}"]) for fact in facts
            ]
            print_entries(f"{counted(len(facts), 'fact')} {what}", entries)
    if changes.skipped:
        print_text(f"{counted(changes.skipped, 'statement')} only repeated what was known")


def _change_details(change: "Change", when: str, ids: ShortIds) -> Iterator[str]:
    if change.text is not None:
        to_old = "beside" if change.event in _STANDS_BESIDE else "instead of"
        yield from (f"{to_old} {ids(old.fact_id)} {old.text}" for old in change.old)
    yield change.reason
    if change.status is not None:
        yield f"{change.status} from then on"
    yield f"{when} {moment(change.at)}" + (", undone since" if change.undone else "")


def show_quality(figures: "DecisionQuality", _: ShortIds = WHOLE_IDS) -> None:
    print_text(f"decisions from {moment(figures.since)} to {moment(figures.until)}")
    print_text(
        f"{counted(figures.decisions, 'decision')} on statements, "
        f"overwrite rate {cell(figures.overwrite_rate) or 'unknown'}, "
        f"rate of wrong ones {cell(figures.wrong_overwrite_rate) or 'unknown'}"
    )
    of_models, others = [], []
    for one in figures.overwrites:
        overwrites = counted(one.overwrites, "overwrite")
        if one.by in ("model", "rule"):
            results = ", ".join(f"{number} {name}" for name, number in one.results.items() if number)
            model = _joined(one.model, one.prompt_version)
            of_models.append(Entry(one.event, f"{overwrites}: {results}", [model]))
        else:
            others.append(Entry(one.event, overwrites, [f"by {one.by}"]))
    if of_models:
        print_entries("overwrites proposed by models and rules", of_models)
    else:
        print_text("no overwrites proposed by models or rules")
    if others:
        print_entries("other overwrites", others)
    held = figures.held
    print_text(
        f"{counted(held.held, 'overwrite')} held back: {held.confirmed} confirmed, {held.rejected} rejected, "
        f"{held.overtaken} overtaken (resolution rate {cell(held.resolution_rate) or 'unknown'})"
    )
    if held.open:
        print_text(f"{held.open} waiting now, the oldest for {age(timedelta(seconds=held.oldest_seconds))}")
    print_text(
        f"{counted(figures.unresolved, 'unresolved fact')}; "
        f"{counted(figures.stale, 'decision')} on what had changed meanwhile (stale)"
    )
    if (costs := figures.costs).models:
        per_thousand = f", {costs.per_thousand_turns} for a thousand turns" if costs.per_thousand_turns else ""
        print_text(
            f"cost of {counted(costs.turns, 'turn')} published from {costs.first} to {costs.last} (UTC): "
            f"{costs.total}{per_thousand}"
        )
        rows = [
            (one.model, one.input_tokens, one.cached_tokens, one.output_tokens, one.cost.amount or "unknown")
            for one in costs.models
        ]
        print_table("cost by model", ("model", "input", "cached", "output", "cost"), rows)
    if (feedback := figures.feedback).used:
        shares = [f"{cell(share)} in the first {k}" for k, share in feedback.recall_at.items() if share is not None]
        recall = f"; recall {', '.join(shares)}" if shares else ""
        print_text(f"feedback: {counted(feedback.used, 'fact')} used, {feedback.missed} of them not shown{recall}")
