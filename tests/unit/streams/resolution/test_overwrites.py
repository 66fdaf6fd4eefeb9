"""What a statement means for an overwrite that is held back."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.events import (
    FactAdded,
    FactConfirmed,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate, MovedEnd, Statement
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Verdict
from mnemolog.schemas.scope import Scope
from mnemolog.streams.resolution.classify import Classification, Duplicate
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.verdicts import HeldOverwriteCloser
from tests.support.builders.commits import EventPlace, decision, new_fact
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    TODAY,
    PendingOverwrite,
    decide_all,
    decide_one,
    decision_context,
    known_fact,
    llm_decision,
    matched_fact,
)
from tests.support.harnesses.resolver_harness import matched_envelope

BERLIN = known_fact(text="Mira lives in Berlin.")
MUNICH = known_fact(0.9, "Mira lives in Munich.", status="pending_confirmation")
CHALLENGED = BERLIN.model_copy(update={"challenged_by": (MUNICH.fact_id,)})
OVERWRITE = PendingOverwrite(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,))


def held(**fields: Any) -> PendingOverwrite:
    """Munich, held back against Berlin."""
    return PendingOverwrite(**{"fact_id": MUNICH.fact_id, "targets": (BERLIN.fact_id,), **fields})


def repeat_events(candidate: Any, *cases: PendingOverwrite, **fields: Any) -> tuple[Any, ...]:
    duplicate: Classification = Duplicate(matched_fact(candidate, text=candidate.text), candidate)
    return decide([duplicate], (), decision_context(*cases, **fields))


def test_another_source_s_word_confirms_what_was_held_back() -> None:
    for (event,) in (
        repeat_events(MUNICH, OVERWRITE),
        decide_all([matched_fact(MUNICH, BERLIN)], {0: llm_decision("KEEP", MUNICH)}, decision_context(OVERWRITE)),
    ):
        assert isinstance(event, PendingConfirmed)
        assert (event.target, event.targets) == (MUNICH.fact_id, (BERLIN.fact_id,))
        assert (event.action, event.ended_at) == ("replace", TODAY)
        assert event.statement is not None


def test_only_a_human_settles_what_a_human_s_word_is_at_stake_for() -> None:
    (event,) = repeat_events(MUNICH, held(needs_human=True))
    assert isinstance(event, FactConfirmed)
    assert event.target == MUNICH.fact_id
    assert event.decision.guard == "human_word"


def test_an_earlier_word_does_not_confirm_what_was_held_back_later() -> None:
    later = held(said_at=NEXT_YEAR)
    (mentioned,) = repeat_events(MUNICH, later)
    assert isinstance(mentioned, FactSkipped)
    assert isinstance(
        decide_one(matched_fact(MUNICH), llm_decision("KEEP", MUNICH), decision_context(later)), FactConfirmed
    )
    richer = decide_one(matched_fact(MUNICH), llm_decision("MERGE", MUNICH), decision_context(later))
    assert isinstance(richer, FactPending)
    assert (richer.targets, richer.guard) == ((BERLIN.fact_id, MUNICH.fact_id), "late_news")


@pytest.mark.parametrize("speaker", ["Mira", "Tom"])
def test_a_speculation_confirms_nothing_that_is_held(speaker: str) -> None:
    """The words again, or in other words; a plain statement does."""
    context, perhaps = decision_context(OVERWRITE, speaker=speaker), {"certainty": "speculation"}
    duplicate = Duplicate(matched_fact(MUNICH, text=MUNICH.text, **perhaps), MUNICH)
    assert [event.event for event in decide([duplicate], (), context)] == ["fact_skipped"]
    for fields, kind in ((perhaps, FactConfirmed), ({"certainty": "weak"}, PendingConfirmed)):
        said = matched_fact(MUNICH, text="Mira may be in Munich.", **fields)
        assert isinstance(decide_one(said, llm_decision("KEEP", MUNICH), context), kind)
    richer = matched_fact(MUNICH, text="Mira may live in Munich with Tom.", **perhaps)
    assert isinstance(decide_one(richer, llm_decision("MERGE", MUNICH), context), FactPending)


def said_before(delay: timedelta) -> Candidate:
    return MUNICH.model_copy(update={"said_at": TODAY - delay, "excerpt": "I live in Munich", "confidence": 0.95})


SECONDS, WINDOW = timedelta(seconds=4), timedelta(seconds=EffectivePolicy().resend_window)


@pytest.mark.parametrize(
    ("delay", "fields", "confirms"),
    [
        pytest.param(SECONDS, {}, False, id="the same speaker"),
        pytest.param(WINDOW, {}, False, id="at the end of the window"),
        pytest.param(WINDOW + SECONDS, {}, True, id="later"),
        pytest.param(SECONDS, {"speaker": "Tom", "user_names": ("Mira",)}, True, id="another speaker"),
        pytest.param(SECONDS, {"speaker": None, "user_names": ("Mira",)}, False, id="the user without a name"),
        pytest.param(SECONDS, {"rules": EffectivePolicy(resend_window=1)}, True, id="after a shorter window"),
    ],
)
@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        (MUNICH.text, "I live in Munich"),
        ("Mira is in Munich.", "I live in Munich"),
        (MUNICH.text, "I live in Munich."),
        (MUNICH.text, "i live  in munich!"),
    ],
)
def test_a_resend_confirms_nothing_that_is_held(
    delay: timedelta, fields: dict[str, Any], confirms: bool, text: str, excerpt: str
) -> None:
    known, context = said_before(delay), decision_context(held(said_at=TODAY - delay), **fields)
    said = {"text": text, "excerpt": excerpt}
    (event,) = decide_all([matched_fact(known, **said)], {0: llm_decision("KEEP", known)}, context)
    assert isinstance(event, PendingConfirmed if confirms else FactSkipped)


@pytest.mark.parametrize(
    ("was", "said"),
    [
        ({"excerpt": "Perhaps I live in Munich."}, {"excerpt": "Yes, I have lived in Munich for good."}),
        ({"excerpt": "maybe Munich, who knows"}, {"excerpt": "It's Munich."}),
        ({"excerpt": "live in Munich", "confidence": 0.5}, {"excerpt": "live in Munich"}),
    ],
)
def test_other_words_or_more_certain_ones_are_no_resend(was: dict[str, Any], said: dict[str, Any]) -> None:
    known, context = said_before(SECONDS).model_copy(update=was), decision_context(held(said_at=TODAY - SECONDS))
    stated = matched_fact(known, text=MUNICH.text, **said)
    (event,) = decide_all([stated], {0: llm_decision("KEEP", known)}, context)
    assert isinstance(event, PendingConfirmed)


@pytest.mark.parametrize(("delay", "kind"), [(SECONDS, FactSkipped), (WINDOW + SECONDS, FactConfirmed)])
@pytest.mark.parametrize("status", ["active", "pending_confirmation"])
def test_a_resend_raises_no_confidence(delay: timedelta, kind: type, status: Any) -> None:
    known = said_before(delay).model_copy(update={"status": status})
    stated = matched_fact(known, text="Mira is in Munich.", excerpt=known.excerpt)
    assert isinstance(decide_one(stated, llm_decision("KEEP", known)), kind)
    other_words = matched_fact(known, text="Mira is in Munich.")
    assert isinstance(decide_one(other_words, llm_decision("KEEP", known)), FactConfirmed)


def test_a_resend_with_a_detail_waits_with_what_is_held() -> None:
    known = said_before(SECONDS)
    stated = matched_fact(known, text="Mira lives in Munich with Tom.", excerpt=known.excerpt)
    event = decide_one(stated, llm_decision("MERGE", known), decision_context(held(said_at=TODAY - SECONDS)))
    assert isinstance(event, FactPending)
    assert event.targets == (BERLIN.fact_id, MUNICH.fact_id)


@pytest.mark.parametrize("action", ["replace", "contradict", "retract"])
def test_a_later_word_for_the_old_fact_rejects_what_challenges_it(action: Any) -> None:
    (event,) = repeat_events(CHALLENGED, held(action=action))
    assert isinstance(event, PendingRejected)
    assert (event.target, event.confirmed) == (MUNICH.fact_id, BERLIN.fact_id)
    assert event.statement is not None


@pytest.mark.parametrize(
    "case", [held(said_at=TODAY), held(said_at=NEXT_YEAR), held(action="expire"), held(action="merge")]
)
def test_an_earlier_word_or_one_that_agrees_rejects_nothing(case: PendingOverwrite) -> None:
    (event,) = repeat_events(CHALLENGED, case)
    assert isinstance(event, FactSkipped)
    assert isinstance(
        decide_one(matched_fact(CHALLENGED), llm_decision("KEEP", CHALLENGED), decision_context(case)), FactConfirmed
    )


def test_all_that_challenges_a_fact_is_rejected_by_one_word() -> None:
    bonn = known_fact(0.9, "Mira lives in Bonn.", status="pending_confirmation")
    doubted = BERLIN.model_copy(update={"challenged_by": (MUNICH.fact_id, bonn.fact_id)})
    first, second = repeat_events(doubted, OVERWRITE, held(fact_id=bonn.fact_id))
    assert isinstance(first, PendingRejected)
    assert isinstance(second, PendingRejected)
    assert (first.target, first.confirmed) == (MUNICH.fact_id, BERLIN.fact_id)
    assert (second.target, second.confirmed, second.statement) == (bonn.fact_id, None, None)
    assert [first.ordinal, second.ordinal] == [0, 1]


def test_what_is_pending_said_with_more_is_confirmed_and_its_detail_stands_beside_it() -> None:
    """The facts after these two events of one statement keep their ids and ordinals."""
    facts = [matched_fact(MUNICH, text="one"), matched_fact(MUNICH, text="two")]
    made = decide_all(facts, {0: llm_decision("MERGE", MUNICH), 1: llm_decision("ADD")}, decision_context(OVERWRITE))
    assert [event.ordinal for event in made] == [0, 1, 2]
    assert [event.event_id for event in made] == [ids.event_id(OWNER, SOURCE, place) for place in range(3)]
    confirmed, detail, last = made
    assert isinstance(confirmed, PendingConfirmed)
    assert isinstance(detail, FactExtended)
    assert isinstance(last, FactAdded)
    assert detail.targets == (MUNICH.fact_id,)
    assert [detail.fact.fact_id, last.fact.fact_id] == [ids.fact_id(OWNER, SOURCE, place) for place in (1, 2)]


def test_what_waits_for_a_human_waits_with_what_says_it_again() -> None:
    event = decide_one(matched_fact(MUNICH), llm_decision("MERGE", MUNICH), decision_context(held(needs_human=True)))
    assert isinstance(event, FactPending)
    assert event.targets == (BERLIN.fact_id, MUNICH.fact_id)
    assert (event.action, event.ended_at, event.needs_human) == ("replace", TODAY, True)


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        pytest.param(("KEEP", MUNICH), ("KEEP", MUNICH), "pending_confirmed fact_skipped", id="a mention only"),
        pytest.param(("KEEP", MUNICH), ("REPLACE", BERLIN), "pending_confirmed fact_added", id="ended already"),
        pytest.param(("REPLACE", BERLIN), ("KEEP", MUNICH), "fact_replaced pending_confirmed", id="ended before"),
        pytest.param(
            ("CONTRADICT", MUNICH), ("KEEP", CHALLENGED), "fact_contradicted fact_confirmed", id="denied already"
        ),
    ],
)
def test_a_second_statement_of_the_turn_settles_nothing_again(
    first: tuple[Verdict, Candidate], second: tuple[Verdict, Candidate], kinds: str
) -> None:
    facts = [matched_fact(known, text=text) for (_, known), text in ((first, "one"), (second, "two"))]
    decisions = {place: llm_decision(*told) for place, told in enumerate((first, second))}
    events = decide_all(facts, decisions, decision_context(OVERWRITE))
    assert " ".join(event.event for event in events) == kinds
    if first == ("REPLACE", BERLIN):
        assert events[1].affected_ids == ()


@pytest.mark.parametrize(
    ("known", "case", "said", "guard"),
    [
        pytest.param({"authority": "human"}, {"needs_human": True}, {}, "human_word", id="a human's word"),
        pytest.param({"category": "health"}, {}, {"certainty": "weak"}, "high_risk", id="not certain enough either"),
        pytest.param({"category": "health"}, {}, {}, None, id="certain enough"),
        pytest.param({"authority": "human"}, {"action": "retract", "needs_human": True}, {}, None, id="denies an end"),
    ],
)
@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT"])
def test_who_takes_the_place_of_what_is_held_is_held_by_the_same_guard(
    verdict: Verdict, known: dict[str, Any], case: dict[str, Any], said: dict[str, Any], guard: str | None
) -> None:
    berlin = BERLIN.model_copy(update=known)
    stated = matched_fact(MUNICH, berlin, text="Mira lives in Chur.", **said)
    made = decide_all([stated], {0: llm_decision(verdict, MUNICH)}, decision_context(held(**case)))
    if guard is None:
        assert [event.ended_ids for event in made] == [(MUNICH.fact_id,)]
        return
    rejected, pending = made
    assert (rejected.event, rejected.ended_ids) == ("pending_rejected", (MUNICH.fact_id,))
    assert isinstance(pending, FactPending)
    assert (pending.guard, pending.targets, pending.action) == (guard, (BERLIN.fact_id,), "replace")
    assert pending.needs_human == (guard == "human_word")


def test_a_correction_of_what_the_turn_has_held_back_is_held_back() -> None:
    rome = known_fact(text="Mira lives in Rome.", authority="human")
    oslo = matched_fact(rome, text="Mira lives in Oslo.")
    itself = known_fact(0.9, "Mira lives in Oslo.", fact_id=ids.provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    chur = matched_fact(rome, itself, text="Mira rather lives in Chur.")
    made = decide_all([oslo, chur], {0: llm_decision("REPLACE", rome), 1: llm_decision("CONTRADICT", itself)})
    assert [event.event for event in made] == ["fact_pending", "pending_rejected", "fact_pending"]
    assert [event.ordinal for event in made] == [0, 1, 2]
    assert isinstance(made[2], FactPending)
    assert (made[2].targets, made[2].guard) == ((rome.fact_id,), "human_word")


def test_nothing_ends_before_it_began() -> None:
    weekend = matched_fact(BERLIN, event_time=LAST_YEAR - timedelta(days=3), action_hint="update")
    event = decide_one(weekend, llm_decision("REPLACE", BERLIN))
    assert isinstance(event, FactReplaced)
    assert event.ended_at == BERLIN.true_from


@pytest.mark.parametrize("fields", [{"infer": False}, {"rules": EffectivePolicy(add_only=True)}])
def test_where_only_equal_words_count_nothing_is_settled(fields: dict[str, Any]) -> None:
    for candidate in (MUNICH, CHALLENGED):
        (event,) = repeat_events(candidate, OVERWRITE, **fields)
        assert isinstance(event, FactSkipped)


# What is held back lapses with the last of the facts that it challenges


ROME, OSLO, HELD, OTHER = uuid4(), uuid4(), uuid4(), uuid4()
ENVELOPE = matched_envelope(at=TODAY)


class KnownChallenges:
    """Held overwrites as the tables have them, and what was asked of them."""

    def __init__(self, challenges: Mapping[UUID, tuple[UUID, ...]]) -> None:
        self._challenges = challenges
        self.asked: list[Sequence[UUID]] = []

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        assert scope == ENVELOPE.scope
        self.asked.append(fact_ids)
        return {pending: known for pending, known in self._challenges.items() if set(known) & set(fact_ids)}


def an_event(kind: type[Any], ordinal: int = 0, **fields: Any) -> MemoryEvent:
    place = EventPlace(owner=ENVELOPE.owner, source_id=ENVELOPE.source_id, ordinal=ordinal, at=TODAY)
    common: dict[str, Any] = {"event_id": uuid4(), "ordinal": ordinal, "decision": decision()}
    made: MemoryEvent = kind(**common, **fields, fact=new_fact(place, "new"))
    return made


def replaced(*targets: UUID, **fields: Any) -> MemoryEvent:
    return an_event(FactReplaced, targets=targets, ended_at=TODAY, **fields)


async def closed(events: Sequence[MemoryEvent], challenges: Mapping[UUID, tuple[UUID, ...]]) -> list[UUID | None]:
    every = await HeldOverwriteCloser(cast("Any", KnownChallenges(challenges)))(ENVELOPE, events, TODAY)
    assert every[: len(events)] == tuple(events)
    rejections = every[len(events) :]
    assert [event.ordinal for event in rejections] == list(range(len(events), len(every)))
    assert all(
        event.event_id == ids.event_id(ENVELOPE.owner, ENVELOPE.source_id, event.ordinal) for event in rejections
    )
    return [event.subject_id for event in rejections]


async def test_it_is_closed_with_the_last_of_what_it_challenges() -> None:
    assert await closed([replaced(ROME)], {HELD: (ROME,)}) == [HELD]
    assert await closed([replaced(ROME)], {HELD: (ROME, OSLO)}) == []
    assert await closed([replaced(ROME, OSLO)], {HELD: (ROME, OSLO)}) == [HELD]
    assert await closed([replaced(ROME)], {HELD: (ROME,), OTHER: (ROME, HELD)}) == [HELD, OTHER]


async def test_nothing_is_asked_where_nothing_ends() -> None:
    known = KnownChallenges({HELD: (ROME,)})
    assert await HeldOverwriteCloser(cast("Any", known))(ENVELOPE, [], TODAY) == ()
    announced = an_event(FactExpired, targets=(ROME,), ended_at=NEXT_YEAR)
    assert await HeldOverwriteCloser(cast("Any", known))(ENVELOPE, [announced], TODAY) == (announced,)
    assert known.asked == []


async def test_what_is_merged_goes_on_and_what_is_confirmed_has_not_lapsed() -> None:
    statement = Statement(text="new", excerpt="new")
    assert await closed([an_event(FactsMerged, targets=(ROME,), statement=statement)], {HELD: (ROME,)}) == []
    confirmed = PendingConfirmed(
        event_id=uuid4(), ordinal=0, decision=decision(), action="contradict", target=HELD, targets=(ROME,)
    )
    assert await closed([confirmed], {HELD: (ROME,), OTHER: (ROME,)}) == [OTHER]


async def test_what_the_same_commit_opens_again_has_not_ended() -> None:
    first = replaced(ROME)
    assert first.new_fact is not None
    ender = first.new_fact.fact_id
    again = replaced(ender, ordinal=1, moved_ends=(MovedEnd(fact_id=ROME, ender=ender),))
    assert await closed([first, again], {HELD: (ROME,)}) == []
    ended = MovedEnd(fact_id=ROME, ender=ender, ended_at=LAST_YEAR, ended_by=ender)
    assert await closed([first, replaced(ender, ordinal=1, moved_ends=(ended,))], {HELD: (ROME,)}) == [HELD]


@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT"])
@pytest.mark.parametrize("first", ["REPLACE", "CONTRADICT"])
def test_who_corrects_a_held_statement_in_its_turn_waits_beside_a_human_s_word(
    first: Verdict, verdict: Verdict
) -> None:
    home = known_fact(authority="human")
    rome = known_fact(0.9, "one", fact_id=ids.provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    said = [matched_fact(home, text="one"), matched_fact(home, rome, text="two")]
    waits, rejected, event = decide_all(said, {0: llm_decision(first, home), 1: llm_decision(verdict, rome)})
    assert isinstance(waits, FactPending)
    assert isinstance(rejected, PendingRejected)
    assert isinstance(event, FactPending)
    assert rejected.target == waits.fact.fact_id
    assert (event.targets, event.needs_human) == ((home.fact_id,), True)


@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT"])
@pytest.mark.parametrize("has_value", [True, False], ids=["and a value", "an end alone"])
def test_what_takes_the_place_of_a_held_overwrite_ends_no_statement_of_an_end(
    verdict: Verdict, *, has_value: bool
) -> None:
    left = known_fact(authority="human", action_hint="retract")
    home = known_fact(authority="human")
    known = (left, home) if has_value else (left,)
    rome = known_fact(0.9, "one", fact_id=ids.provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    said = [matched_fact(*known, text="one"), matched_fact(*known, rome, text="two")]
    _, *events = decide_all(said, {0: llm_decision("CONTRADICT", *known), 1: llm_decision(verdict, rome)})
    pending = [event.targets for event in events if isinstance(event, FactPending)]
    assert pending == ([(home.fact_id,)] if has_value else [])


def test_what_takes_the_place_of_several_held_overwrites_challenges_none_of_them() -> None:
    bonn = known_fact(0.9, "Mira lives in Bonn.", status="pending_confirmation")
    waits = held(fact_id=bonn.fact_id, targets=(BERLIN.fact_id, MUNICH.fact_id), needs_human=True)
    decision = llm_decision("REPLACE", MUNICH, bonn)
    stated = matched_fact(MUNICH, bonn, BERLIN, text="Ulm")
    *rejected, pending = decide_all([stated], {0: decision}, decision_context(held(action="merge"), waits))
    assert [event.ended_ids for event in rejected] == [(MUNICH.fact_id,), (bonn.fact_id,)]
    assert pending.affected_ids == (BERLIN.fact_id,)


@pytest.mark.parametrize("is_shown", [True, False])
def test_what_takes_the_place_of_a_held_overwrite_ends_nothing_before_it_began(*, is_shown: bool) -> None:
    newer = known_fact(authority="human", true_from=NEXT_YEAR)
    shown = (MUNICH, newer) if is_shown else (MUNICH,)
    waits = held(targets=(newer.fact_id,), ended_at=NEXT_YEAR, needs_human=True)
    decision = llm_decision("REPLACE", MUNICH)
    _, event = decide_all([matched_fact(*shown, text="Ulm")], {0: decision}, decision_context(waits))
    assert isinstance(event, FactPending)
    assert event.ended_at == NEXT_YEAR


@pytest.mark.parametrize("single_valued", [True, False], ids=["a key of one value", "a key of several"])
@pytest.mark.parametrize(
    ("value", "case", "is_rejected"),
    [
        pytest.param("Berlin", {}, True, id="the known value and more"),
        pytest.param("Berlin", {"action": "contradict"}, True, id="its denial waits"),
        pytest.param("Berlin", {"action": "retract"}, True, id="its end waits"),
        pytest.param("Berlin", {"action": "merge"}, False, id="no other value waits"),
        pytest.param("Berlin", {"authority": "human"}, False, id="a human's word waits"),
        pytest.param("Berlin", {"said_at": NEXT_YEAR}, False, id="said later"),
        pytest.param(None, {}, False, id="a detail that does not say the value"),
    ],
)
def test_who_says_the_known_value_with_more_rejects_what_waits_to_end_it(
    value: str | None, case: dict[str, Any], *, is_rejected: bool, single_valued: bool
) -> None:
    slot = {"key": "home" if single_valued else "homes", "single_valued": single_valued, "subject": "Mira"}
    known = CHALLENGED.model_copy(update=slot | {"value": "Berlin"})
    said = matched_fact(known, text="Mira lives in Berlin with Eva.", **(slot | {"value": value} if value else {}))
    *rejected, merged = decide_all([said], {0: llm_decision("MERGE", known)}, decision_context(held(**case)))
    assert isinstance(merged, FactsMerged)
    assert (merged.targets, merged.ordinal, len(rejected)) == ((known.fact_id,), int(is_rejected), int(is_rejected))
    assert merged.fact.fact_id == ids.fact_id(OWNER, SOURCE, merged.ordinal)
    for event in rejected:
        assert isinstance(event, PendingRejected)
        assert (event.target, event.statement) == (MUNICH.fact_id, None)
