"""How facts are shown: lists, hits, profiles, and what waits for a decision of a person."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemolog.cli.output import print_line, print_note, print_text, program_name
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import age, counted, moment, owner_of, scope_options

if TYPE_CHECKING:
    from mnemolog.client.queries.search_result import SearchResult
    from mnemolog.projections.queries.pending import ConflictingFact, PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.results import Fact, Profile
    from mnemolog.projections.search.hits import Score
    from mnemolog.projections.search.turn_hits import TurnHit, TurnScore


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
