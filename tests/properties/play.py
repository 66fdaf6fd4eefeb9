"""Plays a history through the real stages, and compares what every reader shows with what the oracle says."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.explain import history
from mnemolog.projections.queries.facts import FACT_SECTIONS, facts, profile, published_profile
from mnemolog.projections.queries.pending import pending
from mnemolog.projections.queries.quality import decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import (
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    EndSession,
    Import,
    ImportedFact,
    Promote,
    Reject,
    SetPolicy,
    Undo,
    Update,
)
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message
from mnemolog.schemas.turn import Turn as TurnRecord
from tests.properties import harness as stages
from tests.properties.model import PerfectReader
from tests.properties.sentences import CALLED, NAME, Meaning, read
from tests.properties.steps import Order, Said, Step, Topic, Turn, on_day
from tests.properties.told import History, drawn_history
from tests.properties.truth import Claim, Truth, claims_of, truth_after
from tests.support.builders.model_replies import fact_json

RUN = "r"
AS_OF = """
SELECT asked.place, known.text, known.subject
FROM unnest(%s::timestamptz [], %s::timestamptz []) WITH ORDINALITY AS asked (believed, true_at, place)
CROSS JOIN LATERAL memory.facts_as_of(asked.believed, asked.true_at, user_id => %s) AS known
"""
NAMED = {*CALLED} - {NAME}
HINTS = {"state": "new", "change": "update", "correction": "update"}


async def check_facts(harness: stages.Harness, random: Random) -> None:
    await check(harness, drawn_history(random), Player)


async def check(harness: stages.Harness, history: History, player: "type[Player]") -> None:
    await smallest(history, lambda one: check_truth(harness, one, player))


async def smallest(history: Any, attempt: Callable[[Any], Awaitable[None]]) -> None:
    """Try a history; where that fails, raise for the smallest history of its steps that fails."""
    found: AssertionError | None = None
    try:
        await attempt(history)
    except AssertionError as error:
        found = error
    for place in [] if found is None else reversed(range(len(history.steps))):
        smaller = history.without(place) if place < len(history.steps) else history
        try:
            await attempt(smaller)
        except AssertionError as error:
            history, found = smaller, error
    if found is not None:
        raise found


def reader_of(history: History) -> PerfectReader:
    return PerfectReader(
        greedy="greedy" in history.features,
        greedy_late={"greedy", "late"} <= history.features,
        careless="careless" in history.features,
        lets_ends_stand="again" in history.features and history.features.isdisjoint({"immutable", "doubt"}),
    )


async def check_truth(harness: stages.Harness, history: History, player_of: "type[Player]") -> None:
    player = player_of(harness, await harness.start_history(reader_of(history)), history)
    if "publish" in history.features:
        await player.command(
            "policy", SetPolicy(level="scope", policy=Policy(publish_profile="session_end")), on_day(-1)
        )
    for step in history.steps:
        await player.play(step)
    faults = [fault async for fault in player.faults() if fault]
    assert not faults, "\n  ".join(["; ".join(faults), str(history), *player.log()])


class Player:
    def __init__(self, harness: stages.Harness, owner: stages.History, history: History) -> None:
        self._harness = harness
        self._owner = owner
        self._history = history
        self._scope = ScopeFilter(user_id=owner.scope.user_id)
        self._exact = ScopeFilter.of_scope(owner.scope)
        self._refused: list[str] = []

    async def play(self, step: Step) -> None:
        if isinstance(step, Turn):
            await self._say(step)
        elif step.kind == "timer":
            await self._owner.run_timer(now=step.arrives)
        else:
            await self.command(step.name, await self._payload(step), step.arrives)

    async def _say(self, step: Turn) -> None:
        reader = self._harness.models.reader
        assert isinstance(reader, PerfectReader)
        reader.extractions[step.name] = [_extraction(one, step.at) for one in step.said]
        scope = self._owner.scope.model_copy(update={"run_id": RUN if step.in_run else None})
        turn = TurnRecord(
            turn_id=step.name,
            scope=scope,
            messages=tuple(Message(role="user", content=one.text) for one in step.said),
            occurred_at=step.at + timedelta(hours=8 * step.ahead),
            speaker=NAME,
            recalled=step.recalled,
            immutable=step.immutable,
        )
        await self._owner.publish_turn(turn, now=step.arrives)

    async def command(self, name: str, payload: CommandPayload, now: datetime) -> None:
        commit = await self._owner.send_command(name, payload, now=now)
        if commit is not None and commit.outcome != "done":
            self._refused.append(f"{name} was {commit.outcome}: {commit.reason} {commit.detail}")

    async def _payload(self, step: Order) -> CommandPayload:  # noqa: PLR0911 -- a command a line
        match step.kind:
            case "delete":
                return Delete(fact_ids=(await self._fact(step.topic),))
            case "delete_key":
                assert step.topic is not None
                return DeleteAll(key=step.topic[1])
            case "delete_category":
                return DeleteAll(category=step.called)
            case "correct":
                return Correct(edit=_edit(await self._fact(step.topic), step.said))
            case "update":
                return Update(edits=(_edit(await self._fact(step.topic), step.said),))
            case "confirm" | "reject":
                assert step.of is not None
                (turn,) = (one for one in self._history.steps if one.name == step.of and isinstance(one, Turn))
                async with self._harness.pool.connection() as conn:
                    waiting = await pending(conn, self._scope, self._harness.now)
                said = {(one.meaning.topic, one.meaning.kind) for one in turn.said}
                meant = [(one.fact.fact_id, read(one.fact.text, one.fact.subject)) for one in waiting]
                found = [fact_id for fact_id, one in meant if one and (one.topic, one.kind) in said]
                assert found, self._told(f"nothing of {step.of} waits for {step.name}")
                return Confirm(fact_ids=tuple(found)) if step.kind == "confirm" else Reject(fact_ids=tuple(found))
            case "undo":
                return Undo(source_id=step.of)
            case "import":
                return Import(fact=_imported(step))
            case "promote":
                return Promote(source=Scope(user_id=self._owner.scope.user_id, run_id=RUN))
            case _:
                return EndSession()

    async def _fact(self, topic: Topic | None) -> UUID:
        async with self._harness.pool.connection() as conn:
            listed = await facts(conn, self._scope, at=self._harness.now)
        found = [one.fact_id for one in listed if (said := holding(one)) and said.topic == topic]
        assert found, self._told(f"{topic} is not listed")
        return found[0]

    async def faults(self) -> Any:
        """What readers show that is not so, now and as of earlier times."""
        for refused in self._refused:
            yield refused
        for commit in self._owner.commits:  # nobody's own words, or a second time in a turn, make a fact surer
            raised = [event.target for event in commit.events if event.event == "fact_confirmed"]
            own = {event.new_fact.fact_id for event in commit.events if event.new_fact}
            if len(set(raised)) < len(raised) or not own.isdisjoint(raised):
                yield f"{commit.source_id} confirms what it has said itself"
        steps, now = self._history.steps, self._harness.now
        truths = [truth_after(steps[: place + 1]) for place in range(len(steps))]
        if not truths:
            return
        asked = list(_asked_times(truths, is_one_fact=self._is_one_fact(truths[-1])))
        rows = await self._harness.rows(
            AS_OF, [at for _, at, _ in asked], [at for _, _, at in asked], self._owner.scope.user_id
        )
        for place, (truth, believed, true_at) in enumerate(asked, 1):
            shown = [(text, subject) for at, text, subject in rows if at == place]
            found, expected = _claims(shown), truth.claims(true_at)
            asked_for = f"believed {believed:%m-%d %H:%M}, true {true_at:%m-%d %H:%M}"
            yield _differ(asked_for, found, expected, with_details=False)
            texts = [text for text, subject in shown if (said := read(text, subject)) and said.holds]
            is_human = any(one.human for one in truth.statements)  # beside a human's word stand facts of its words
            if len({*texts}) < len(texts) and not is_human:
                yield f"{asked_for}: twice the same of {texts}"
        truth = truths[-1]
        expected = claims_of(truth.open())
        async with self._harness.pool.connection() as conn:
            listed = await facts(conn, self._scope, at=now)
            found = _claims((one.text, one.subject) for one in listed)
            yield _differ("facts", found, expected, with_details=not self._is_one_fact(truth))
            if "category" in self._history.features:
                plain = [one for one in truth.open() if not any(told.since for told in one.told)]  # edits may have none
                told_as = {(one.topic, *sorted(one.categories)) for one in plain}
                shown_as = {(said.topic, *sorted(one.categories)) for one in listed if (said := holding(one))}
                yield _differ("categories", told_as & shown_as, told_as)
            held = any(one.concerns for one in truth.statements)
            if not held and {"late", "run", "term", "plan", "recalled"}.isdisjoint(self._history.features):
                told = {(one.topic, round(one.confidence, 4)) for one in truth.open() if one.confidence}
                seen = {(said.topic, round(one.confidence, 4)) for one in listed if (said := holding(one))}
                yield _differ("confidence", seen & told, told)
            yield await self._context_fault(conn, truth)
            yield await self._history_fault(conn, truth, listed)
            yield await self._report_fault(conn, truth)
            waiting = [read(one.fact.text, one.fact.subject) for one in await pending(conn, self._scope, now)]
            waits = {(one.topic, one.kind) for one in waiting if one}
            yield _differ("pending", waits, truth.waiting())
            async for wrong in self._profile_faults(conn, truth):
                yield wrong

    async def _context_fault(self, conn: Any, truth: Truth) -> str | None:
        """A context has each lasting constraint and plain preference, whatever is asked."""
        told = [one for one in truth.open() if not any(each.since or each.said.slotless for each in one.told)]
        lasting = {one.topic for one in told if one.categories & {"health", "task_context", "soft_preference"}}
        shown = {
            said.topic for one in await lasting_facts(conn, [self._exact], self._harness.now) if (said := holding(one))
        }
        return _differ("context", shown & lasting | shown - {one.topic for one in truth.open()}, lasting)

    async def _history_fault(self, conn: Any, truth: Truth, listed: Sequence[Any]) -> str | None:
        """The histories of the facts of a value name each turn that told it."""
        turns = {one.name for one in self._history.steps if isinstance(one, Turn)}
        facts_of = [(one, said.topic) for one in listed if (said := holding(one))]
        for topic in [topic for _, topic in facts_of][:1]:
            known, named = truth.current(topic), set[str]()
            for fact_id in [one.fact_id for one, of in facts_of if of == topic]:
                named |= {event.source_id for event in (await history(conn, "default", fact_id)).events}
            if known and (missing := {told.source for told in known.told if told.source in turns} - named):
                return f"the history of {' '.join(topic)} lacks {sorted(missing)}"
        return None

    async def _report_fault(self, conn: Any, truth: Truth) -> str | None:
        """What became true names nothing that was taken back; what a person rejected counts as a wrong overwrite."""
        since, until = on_day(-200), self._harness.now + timedelta(days=1)
        steps = self._history.steps
        rejected = sum(isinstance(one, Order) and one.kind == "reject" for one in steps)
        if rejected and not any(isinstance(one, Order) and one.kind == "undo" for one in steps):
            counted = (await decision_quality(conn, self._scope, since, until)).overwrites
            if sum(one.rejected for one in counted) < rejected:
                return f"quality: fewer than {rejected} overwrites were rejected"
        changes = (await diff(conn, self._exact, since, until, axis="true")).in_order
        told = [(kind, said) for kind, one in changes if one.fact_id and (said := holding(one))]
        if fault := _differ("diff", {one.topic for _, one in told} & truth.taken_back(), set()):
            return fault
        # A value may stand in two facts, each with a part of its details, or in one of two times.
        if "careless" in self._history.features or self._is_one_fact(truth):
            return None
        whole = {claim for one in truth.episodes() for claim in claims_of([one])}
        new = {claim for kind, one in told if kind == "replaced" for claim in claims_of([one])}
        return _differ("diff", new - whole, set())

    async def _profile_faults(self, conn: Any, truth: Truth) -> Any:
        """What the profile of the present and the published one show that is not so now, or was not so then."""
        now, is_open = self._harness.now, {one.topic for one in truth.open()}
        present = await profile(conn, self._scope, now)
        yield _differ("profile", _topics(present), is_open)
        if "publish" in self._history.features:
            shown = await published_profile(conn, self._scope, now)
            yield _differ("published profile", _topics(shown) - is_open, set())
            yield _differ("published profile", truth.still_published() - _topics(shown), set())
            present = shown
        changes = [(one["text"], *(old["text"] for old in one["old"])) for one in present.recent_changes]
        told = {said.topic for texts in changes for text in texts if (said := read(text))}
        yield _differ("recent changes", told & truth.taken_back(), set())

    def _is_one_fact(self, truth: Truth) -> bool:
        """Whether a value holds again after it had ended, which is one fact where that end is told last."""
        topics = [one.topic for one in truth.episodes()]
        return "late" in self._history.features and len(set(topics)) < len(topics)

    def log(self) -> Iterator[str]:
        for commit in self._owner.commits:
            for event in commit.model_dump(mode="json")["events"]:
                yield f"  -> {commit.source_id} {told_event(event)}"

    def _told(self, fault: str) -> str:
        return "\n  ".join([fault, *self._refused, str(self._history), *self.log()])


def told_event(event: Any) -> str:
    decision, fact = event["decision"], event.get("fact") or event.get("statement")
    marks = [decision["by"], decision.get("verdict"), decision.get("guard")]
    ended = f" ended {event['ended_at'][:10]}" if event.get("ended_at") else ""
    flag = " unresolved" if event.get("unresolved") else ""
    flag += f" moved ends: {len(event['moved_ends'])}" if event.get("moved_ends") else ""
    said = " ".join(one for one in marks if one) + (f": {decision['reason']}" if event.get("unresolved") else "")
    return f"{event['event']} ({said}){ended}{flag} {fact['text'] if fact else ''}"


def _asked_times(truths: list[Truth], *, is_one_fact: bool) -> Iterator[tuple[Truth, datetime, datetime]]:
    """Each state of knowledge, about its own time and two others at which something began, ended or was said."""
    times = sorted({one.now for one in truths} | {
        at for one in truths[-1].episodes() for at in (one.begins, one.last) if at
    } | {one.at for one in truths[-1].statements})  # fmt: skip
    for place, truth in enumerate(truths):
        believed = truth.now + timedelta(seconds=1)
        if is_one_fact:  # a value said on two days is one fact: only the end is known
            yield truths[-1], truths[-1].now + timedelta(seconds=1), truths[-1].now + timedelta(seconds=1)
            return
        if truths[-1].run is not None:  # a value that is said on two days is one fact, whatever is promoted later
            yield truth, believed, believed
            continue
        for at in dict.fromkeys((truth.now, times[place * 2 % len(times)], times[-1 - place * 3 % len(times)])):
            yield truth, believed, at + timedelta(minutes=1)


def _differ(reader: str, found: set[Any], expected: set[Any], *, with_details: bool = True) -> str | None:
    if not with_details:
        found, expected = ({claim[:3] for claim in claims} for claims in (found, expected))
    if found == expected:
        return None
    return f"{reader}: shown {_listed(found - expected)}, missing {_listed(expected - found)}"


def _listed(claims: set[Any]) -> list[str]:
    return sorted(one if isinstance(one, str) else " ".join(map(str, one)) for one in claims)


def _claims(facts: Iterable[tuple[str, str | None]]) -> set[Claim]:
    said = [read(text, subject) or text for text, subject in facts]
    assert all(isinstance(one, Meaning) for one in said), said
    return claims_of(one for one in said if isinstance(one, Meaning) and one.holds)


def holding(fact: Any) -> Meaning | None:
    meaning = read(fact.text or "", getattr(fact, "subject", None))
    return meaning if meaning and meaning.holds else None


def _topics(shown: Any) -> set[Topic]:
    entries = [entry for name in (*FACT_SECTIONS, "upcoming") for entry in getattr(shown, name)]
    said = (read(entry["text"]) for entry in entries)
    return {one.topic for one in said if one and one.holds}


def _edit(fact_id: UUID, said: Said | None) -> Edit:
    assert said is not None
    return Edit(fact_id=fact_id, text=said.text, key=said.meaning.key, value=said.meaning.value)


def _imported(step: Order) -> ImportedFact:
    assert step.said is not None
    meaning = step.said.meaning
    fact = ImportedFact(
        text=step.said.text,
        key=meaning.key,
        value=meaning.value,
        category=meaning.slot.category,
        subject=step.said.subject,
        true_from=step.true_from,
        authority="human" if step.human else "extracted",
    )
    return fact.model_copy(update={"key": None, "value": None}) if step.said.slotless else fact


def _extraction(said: Said, at: datetime) -> dict[str, Any]:
    meaning = said.meaning
    near = "far" if said.far else "near"
    slot: dict[str, Any] = {
        "key": meaning.key,
        "value": meaning.value,
        "single_valued": meaning.slot.single_valued,
        "category": [meaning.slot.category, *sorted(said.also)],
    }
    return fact_json(
        said.text,
        excerpt=meaning.value if said.short else said.text,
        search_text=f"{near} {meaning.key}: {said.text}",
        certainty=said.certainty,
        subject=said.subject,
        event_time=meaning.begins,
        valid_until=meaning.until if meaning.until and meaning.until > at else None,
        entities=[{"name": said.subject, "type": "person", "role": "subject"}] if said.subject in NAMED else [],
        action_hint="update" if meaning.begins and meaning.holds else HINTS.get(meaning.form, "retract"),
        **({} if said.slotless else slot),
    )
