"""Property 3: a slot has one value or a question about two, and every reader of the tables agrees with the log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.explain import explain, history
from mnemolog.projections.queries.facts import PROFILE_SECTIONS, facts, facts_as_of, profile
from mnemolog.projections.queries.pending import pending, unresolved
from mnemolog.projections.queries.quality import decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.properties.conversations import START
from tests.properties.harness import Harness, text_vector
from tests.properties.held_overwrites import waiting_for_nothing
from tests.properties.log_reader import Json, LoggedFact
from tests.properties.shown_states import ended_human_words, state_faults
from tests.properties.statement_places import event_text
from tests.properties.stories import Story
from tests.properties.telling import Told, tell

SECTION_SIZE: Final = 50
Conn = AsyncConnection[Any]


async def check_honest_readers(harness: Harness, story: Story) -> None:
    """Tell the story; look at the slots after each step, and at the readers in the end."""
    watch = _Watch()
    told = await tell(harness, story, watch.after_step)
    faults = list(dict.fromkeys(watch.faults))
    async with harness.pool.connection() as conn:
        faults += [fault async for fault in _reading_faults(conn, told)]
    assert not faults, "\n  ".join(["; ".join(faults), str(told)])


@dataclass
class _Watch:
    faults: list[str] = field(default_factory=list)

    async def after_step(self, told: Told, commits: Sequence[Json]) -> None:
        self.faults += slot_faults(told)
        self.faults += waiting_for_nothing(told)
        self.faults += _wrong_speakers(told, commits)
        self.faults += _refused_replies(told, commits)


def slot_faults(told: Told) -> Iterator[str]:
    """Two values of one slot of one person that hold now, and nobody has decided, or is asked, that both do."""
    now = told.history.now
    values = [
        fact for fact in told.log.facts.values() if fact.is_answered(now) and fact.held(now) and _fills_slot(told, fact)
    ]
    for one, other in combinations(values, 2):
        meaning, rival = told.meaning(one), told.meaning(other)
        if meaning is None or rival is None or meaning.value == rival.value:
            continue
        same = (told.person(one), one.fact["key"]) == (told.person(other), other.fact["key"])
        if same and not (one.unresolved or other.unresolved) and not _was_decided(told, one, other):
            yield f"{one.text!r} and {other.text!r} hold at once, and nobody has decided on the two"


def _fills_slot(told: Told, fact: LoggedFact) -> bool:
    meaning = told.meaning(fact)
    return meaning is not None and meaning.holds and meaning.slot.single_valued and fact.fact.get("key") == meaning.key


def _was_decided(told: Told, one: LoggedFact, other: LoggedFact) -> bool:
    """Whether a reply of the model was about both of them, or a person or an application brought one of them here."""
    commanded = [
        fact.commit["source_kind"] == "command" or _was_touched_by_command(told, fact) for fact in (one, other)
    ]
    if any(commanded) or not (_was_understood(told, one) and _was_understood(told, other)):
        return True
    settled = {event["target"] for _, event in told.log.events() if event["event"] == "conflict_resolved"}
    if settled & {one.id, other.id}:
        return True  # a question that is asked again is about what is near then, and its answer closes it
    families = [_family(told, one), _family(told, other)]
    for decided in told.reader.decided:
        if decided.source_id in told.reader.invalid:
            continue
        seen = {str(known) for known in decided.shown}
        for text in (decided.text, *decided.shown_texts):  # what was said just now has no id of its own yet
            seen |= _facts_said(told, decided.source_id, text)
        if all(seen & family for family in families):
            return True
    return False


def _was_understood(told: Told, fact: LoggedFact) -> bool:
    """Whether a model read the statement: a raw one has no key, and is compared with nothing."""
    turn = told.turns.get(fact.commit["source_id"])
    return turn is None or turn.infer


def _was_touched_by_command(told: Told, fact: LoggedFact) -> bool:
    commands = (event for commit, event in told.log.events() if commit["source_kind"] == "command")
    return any(fact.id in str({**event, "decision": None}) for event in commands)


def _family(told: Told, fact: LoggedFact) -> set[str]:
    """The fact, and those that were merged into it."""
    found = [fact.id]
    for one in found:
        event = told.log.facts[one].event
        if event["event"] in ("facts_merged", "fact_pending"):
            found += [target for target in event["targets"] if target not in found]
    return set(found)


def _facts_said(told: Told, source_id: str, text: str) -> set[str]:
    """The facts that a statement became, or that it is where it was asked about again."""
    return {
        fact.id
        for fact in told.log.facts.values()
        if fact.text == text
        or (fact.commit["source_id"] == source_id and (fact.event.get("statement") or {}).get("text") == text)
    }


def _refused_replies(told: Told, commits: Sequence[Json]) -> Iterator[str]:
    """Conflicts that stay unresolved although the perfect reader has answered."""
    if type(told.reader).__name__ != "OracleReader":
        return
    for commit in commits:
        for event in commit["events"]:
            if event["decision"]["by"] == "fallback" and commit["source_id"] not in told.reader.invalid:
                yield f"a right reply was refused: {event['decision']['reason']}"


def _wrong_speakers(told: Told, commits: Sequence[Json]) -> Iterator[str]:
    """Facts that have somebody else's name, or another certainty, than the turn that said their statement."""
    for commit in commits:
        for event in commit["events"]:
            fact, text = event.get("fact"), event_text(event)
            turn = told.turns.get(commit["source_id"])
            if not fact or turn is None:
                continue
            if event.get("action") == "merge" and text not in {one.text for one in turn.said}:
                continue  # the text of a held merge is its own, even if somebody has said just that
            turns = told.turns.values()
            said = [
                (turn.speaker, one.certainty, turn.infer) for turn in turns for one in turn.said if one.text == text
            ]
            if said and fact.get("speaker") not in {speaker for speaker, _, _ in said}:
                yield f"{fact['text']!r} has the speaker {fact.get('speaker')}; {text!r} was said by {said[0][0]}"
            if said and fact["certainty"] not in {certainty if infer else "explicit" for _, certainty, infer in said}:
                yield f"{fact['text']!r} is {fact['certainty']}; {text!r} was said as {said[0][1]}"


async def _reading_faults(conn: Conn, told: Told) -> Any:
    """What readers say that the log does not."""
    scope, now = ScopeFilter(user_id=told.history.scope.user_id), told.history.now
    believed_at = now + timedelta(seconds=1)
    log = told.log
    for stale in log.stale:
        yield f"a decision was stale: {stale}"
    answered = {fact.id for fact in log.facts.values() if fact.is_answered(now)}
    listed = await facts(conn, scope, at=now)
    later = {fact.id for fact in log.facts.values() if fact.id in answered and fact.true_from > now}
    for fault in (
        _differ(told, "facts", _ids(listed), answered),
        _differ(told, "facts that begin later", _ids(one for one in listed if one.begins_later), later),
        *[
            _differ(
                told,
                f"facts as of {at:%m-%d %H:%M}",
                _ids(await facts_as_of(conn, scope, believed_at=believed_at, true_at=at)),
                {fact.id for fact in log.facts.values() if fact.held(at)},
            )
            for at in _sampled_times(told)
        ],
        *await _open_case_faults(conn, told, scope),
        *await _profile_faults(conn, told, scope, answered, later),
        *await _other_faults(conn, told, scope, answered),
        *await state_faults(conn, told, scope),
        *ended_human_words(told),
    ):
        if fault:
            yield fault


def _ids(found: Any) -> set[str]:
    return {str(fact.fact_id) for fact in found}


def _differ(told: Told, reader: str, found: set[str], expected: set[str]) -> str | None:
    if found == expected:
        return None
    more, less = ([told.log.facts[one].text for one in sorted(ids)] for ids in (found - expected, expected - found))
    return f"{reader}: the reader has {more}, the log {less}"


def _sampled_times(told: Told) -> list[datetime]:
    times = {fact.true_from for fact in told.log.facts.values()}
    times |= {fact.ends for fact in told.log.facts.values() if fact.ends}
    ordered = sorted(times)
    return [*ordered[:: max(1, len(ordered) // 4)], told.history.now]


async def _open_case_faults(conn: Conn, told: Told, scope: ScopeFilter) -> list[str | None]:
    log, now = told.log, told.history.now
    waiting = {fact.id for fact in log.facts.values() if fact.status == "pending_confirmation"}
    asked = {fact.id for fact in log.facts.values() if fact.status == "active" and fact.unresolved}
    return [
        _differ(told, "pending", _ids(case.fact for case in await pending(conn, scope, now)), waiting),
        _differ(told, "unresolved", _ids(case.fact for case in await unresolved(conn, scope, now)), asked),
    ]


async def _profile_faults(
    conn: Conn, told: Told, scope: ScopeFilter, answered: set[str], later: set[str]
) -> list[str | None]:
    found = await profile(conn, scope, told.history.now)
    sections = {name: {entry["fact_id"] for entry in getattr(found, name)} for name in PROFILE_SECTIONS}
    upcoming = sections.pop("upcoming")
    del sections["recent_changes"]
    if any(len(ids) >= SECTION_SIZE for ids in sections.values()):
        return []
    held = set().union(*sections.values())
    return [_differ(told, "profile", held, answered - later), _differ(told, "upcoming", upcoming, later)]


async def _other_faults(conn: Conn, told: Told, scope: ScopeFilter, answered: set[str]) -> list[str | None]:
    log, now = told.log, told.history.now
    waiting = {fact.id for fact in log.facts.values() if fact.status == "pending_confirmation"}
    faults: list[str | None] = []
    hits = await search(conn, scope, "lives in Rome", text_vector("Lives in Rome."), SearchOptions(limit=100), at=now)
    if wrong := _ids(hit.fact for hit in hits) - answered - waiting:
        faults.append(f"search finds what does not hold: {[log.facts[one].text for one in sorted(wrong)]}")
    changes = await diff(conn, scope, START - timedelta(days=100), now + timedelta(days=1), axis="true")
    for _, change in changes.in_order:
        if change.fact_id is not None and not log.facts[str(change.fact_id)].believed:
            faults.append(f"diff: {log.facts[str(change.fact_id)].text!r} is named as what holds, and is not believed")
    for fact in list(log.facts.values())[-3:]:
        faults += await _story_faults(conn, told, fact)
    faults += _quality_faults(
        told, await decision_quality(conn, scope, START - timedelta(days=1), now + timedelta(days=1))
    )
    return faults


async def _story_faults(conn: Conn, told: Told, fact: LoggedFact) -> list[str | None]:
    """What `explain` and `history` say of a fact."""
    explained, _ = await explain(conn, "default", UUID(fact.id))
    faults: list[str | None] = []
    turn = told.turns.get(explained.source.source_id)
    if turn is not None and explained.extraction is not None:
        words = [one for one in turn.said if explained.extraction.excerpt in (one.text, one.excerpt)]
        if not words:
            faults.append(f"explain: {explained.extraction.excerpt!r} was not said in {turn.turn_id}")
        elif explained.fact.speaker != turn.speaker:
            faults.append(
                f"explain: {explained.extraction.excerpt!r} was said by {turn.speaker}, not {explained.fact.speaker}"
            )
        elif turn.infer and explained.extraction.certainty not in {one.certainty for one in words}:
            faults.append(f"explain: {explained.extraction.excerpt!r} was said {words[0].certainty}")
    told_ids = {str(event.event_id) for event in (await history(conn, "default", UUID(fact.id))).events}
    naming = {event["event_id"] for _, event in told.log.events() if _names(event, fact.id)}
    if naming - told_ids:
        missing = [event["event"] for _, event in told.log.events() if event["event_id"] in naming - told_ids]
        faults.append(f"history of {fact.text!r} lacks {missing}")
    return faults


def _names(event: Json, fact_id: str) -> bool:
    named = [event.get("target"), event.get("confirmed"), *event.get("targets", ())]
    named += [one["fact_id"] for one in event.get("reversals", ())]
    return fact_id in named or (event.get("fact") or {}).get("fact_id") == fact_id


def _quality_faults(told: Told, quality: Any) -> Iterator[str]:
    """The wrong overwrites of models: held back and rejected, or undone."""
    log = told.log
    proposed = [
        (commit, event) for commit, event in log.events() if event["decision"].get("model") and _is_overwrite(event)
    ]
    rejected = [event for _, event in proposed if event["event"] == "fact_pending" and _was_rejected(told, event)]
    counted = sum(one.rejected for one in quality.overwrites if getattr(one, "by", "model") == "model")
    undone = [event for _, event in proposed if event["event_id"] in log.undone]
    counted_undone = sum(one.undone for one in quality.overwrites if getattr(one, "by", "model") == "model")
    if counted != len([event for event in rejected if event not in undone]):
        yield f"quality: {counted} rejected overwrites, in the log {len(rejected)}"
    if counted_undone < len(undone):
        yield f"quality: {counted_undone} undone overwrites, in the log {len(undone)}"


def _is_overwrite(event: Json) -> bool:
    kinds = ("facts_merged", "fact_replaced", "fact_contradicted", "fact_retracted", "fact_expired", "fact_pending")
    return event["event"] in kinds


def _was_rejected(told: Told, event: Json) -> bool:
    return any(
        other["event"] == "pending_rejected"
        and other["target"] == event["fact"]["fact_id"]
        and other["decision"]["by"] != "policy"  # it lapsed
        and other["event_id"] not in told.log.undone
        for _, other in told.log.events()
    )
