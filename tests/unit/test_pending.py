"""What a statement means for an overwrite that is held back."""

from datetime import timedelta
from typing import Any

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.events import (
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactExtended,
    FactPending,
    FactReplaced,
    FactSkipped,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.policy import Rules
from mnemolog.streams.stages.deciding import events
from mnemolog.streams.stages.weighing import Duplicate, Weight
from tests.verdicts import (
    LAST_YEAR,
    NEXT_YEAR,
    NOON,
    OWNER,
    SOURCE,
    Case,
    decide,
    decide_all,
    given,
    judged,
    known,
    matched,
)

BERLIN = known(text="Mira lives in Berlin.")
MUNICH = known(0.9, "Mira lives in Munich.", status="pending_confirmation")
DOUBTED = BERLIN.model_copy(update={"challenged_by": (MUNICH.fact_id,)})
CASE = Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,))


def repeated(candidate: Any, *cases: Case, **fields: Any) -> tuple[Any, ...]:
    weight: Weight = Duplicate(matched(candidate, text=candidate.text), candidate, "hash")
    return events([weight], {}, given(*cases, **fields))


def test_another_source_s_word_confirms_what_was_held_back() -> None:
    for (event,) in (
        repeated(MUNICH, CASE),
        decide_all([matched(MUNICH, BERLIN)], {0: judged("KEEP", MUNICH)}, given(CASE)),
    ):
        assert isinstance(event, PendingConfirmed)
        assert (event.target, event.targets) == (MUNICH.fact_id, (BERLIN.fact_id,))
        assert (event.action, event.ended_at) == ("replace", NOON)
        assert event.statement is not None


def test_only_a_human_settles_what_a_human_s_word_is_at_stake_for() -> None:
    (event,) = repeated(MUNICH, Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), needs_human=True))
    assert isinstance(event, FactConfirmed)
    assert event.target == MUNICH.fact_id
    assert event.decision.guard == "human_word"


def test_an_earlier_word_does_not_confirm_what_was_held_back_later() -> None:
    later = Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), said_at=NEXT_YEAR)
    (mentioned,) = repeated(MUNICH, later)
    assert isinstance(mentioned, FactSkipped)
    assert isinstance(decide(matched(MUNICH), judged("KEEP", MUNICH), given(later)), FactConfirmed)
    richer = decide(matched(MUNICH), judged("MERGE", MUNICH), given(later))
    assert isinstance(richer, FactPending)
    assert (richer.targets, richer.guard) == ((BERLIN.fact_id, MUNICH.fact_id), "late_news")


@pytest.mark.parametrize("action", ["replace", "contradict", "retract"])
def test_a_later_word_for_the_old_fact_rejects_what_challenges_it(action: Any) -> None:
    (event,) = repeated(DOUBTED, Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), action=action))
    assert isinstance(event, PendingRejected)
    assert (event.target, event.confirmed) == (MUNICH.fact_id, BERLIN.fact_id)
    assert event.statement is not None


@pytest.mark.parametrize(
    "case",
    [
        Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), said_at=NOON),
        Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), said_at=NEXT_YEAR),
        Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), action="expire"),
        Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), action="merge"),
    ],
)
def test_an_earlier_word_or_one_that_agrees_rejects_nothing(case: Case) -> None:
    (event,) = repeated(DOUBTED, case)
    assert isinstance(event, FactSkipped)
    assert isinstance(decide(matched(DOUBTED), judged("KEEP", DOUBTED), given(case)), FactConfirmed)


def test_all_that_challenges_a_fact_is_rejected_by_one_word() -> None:
    bonn = known(0.9, "Mira lives in Bonn.", status="pending_confirmation")
    doubted = BERLIN.model_copy(update={"challenged_by": (MUNICH.fact_id, bonn.fact_id)})
    first, second = repeated(doubted, CASE, Case(fact_id=bonn.fact_id, targets=(BERLIN.fact_id,)))
    assert isinstance(first, PendingRejected)
    assert isinstance(second, PendingRejected)
    assert (first.target, first.confirmed) == (MUNICH.fact_id, BERLIN.fact_id)
    assert (second.target, second.confirmed, second.statement) == (bonn.fact_id, None, None)
    assert [first.ordinal, second.ordinal] == [0, 1]


def test_the_facts_after_two_events_of_one_statement_keep_their_ids_and_ordinals() -> None:
    facts = [matched(MUNICH, text="one"), matched(MUNICH, text="two")]
    made = decide_all(facts, {0: judged("MERGE", MUNICH), 1: judged("ADD")}, given(CASE))
    assert [event.ordinal for event in made] == [0, 1, 2]
    assert [event.event_id for event in made] == [ids.event_id(OWNER, SOURCE, place) for place in range(3)]
    _, detail, last = made
    assert isinstance(detail, FactExtended)
    assert isinstance(last, FactAdded)
    assert [detail.fact.fact_id, last.fact.fact_id] == [ids.fact_id(OWNER, SOURCE, place) for place in (1, 2)]


def test_what_is_pending_said_with_more_is_confirmed_and_its_detail_stands_beside_it() -> None:
    confirmed, detail = decide_all([matched(MUNICH)], {0: judged("MERGE", MUNICH)}, given(CASE))
    assert isinstance(confirmed, PendingConfirmed)
    assert isinstance(detail, FactExtended)
    assert detail.targets == (MUNICH.fact_id,)


def test_what_waits_for_a_human_waits_with_what_says_it_again() -> None:
    case = Case(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,), needs_human=True)
    event = decide(matched(MUNICH), judged("MERGE", MUNICH), given(case))
    assert isinstance(event, FactPending)
    assert event.targets == (BERLIN.fact_id, MUNICH.fact_id)
    assert (event.action, event.ended_at, event.needs_human) == ("replace", NOON, True)


def test_a_second_word_in_the_same_turn_is_a_mention_only() -> None:
    facts = [matched(MUNICH, text="one"), matched(MUNICH, text="two")]
    first, second = decide_all(facts, {0: judged("KEEP", MUNICH), 1: judged("KEEP", MUNICH)}, given(CASE))
    assert isinstance(first, PendingConfirmed)
    assert isinstance(second, FactSkipped)


def test_what_a_confirmation_ended_is_ended_once() -> None:
    facts = [matched(MUNICH, text="one"), matched(BERLIN, text="two")]
    first, second = decide_all(facts, {0: judged("KEEP", MUNICH), 1: judged("REPLACE", BERLIN)}, given(CASE))
    assert isinstance(first, PendingConfirmed)
    assert isinstance(second, FactAdded)
    facts = [matched(BERLIN, text="one"), matched(MUNICH, text="two")]
    _, second = decide_all(facts, {0: judged("REPLACE", BERLIN), 1: judged("KEEP", MUNICH)}, given(CASE))
    assert isinstance(second, PendingConfirmed)
    assert second.targets == ()


def test_what_is_pending_can_be_denied() -> None:
    event = decide(matched(MUNICH), judged("CONTRADICT", MUNICH), given(CASE))
    assert isinstance(event, FactContradicted)
    assert event.targets == (MUNICH.fact_id,)


def test_a_challenge_that_this_turn_has_denied_is_not_rejected_once_more() -> None:
    facts = [matched(MUNICH, text="one"), matched(DOUBTED, text="two")]
    denied, known_already = decide_all(
        facts, {0: judged("CONTRADICT", MUNICH), 1: judged("KEEP", DOUBTED)}, given(CASE)
    )
    assert isinstance(denied, FactContradicted)
    assert isinstance(known_already, FactConfirmed)


def test_nothing_ends_before_it_began() -> None:
    weekend = matched(BERLIN, event_time=LAST_YEAR - timedelta(days=3), action_hint="update")
    event = decide(weekend, judged("REPLACE", BERLIN))
    assert isinstance(event, FactReplaced)
    assert event.ended_at == BERLIN.true_from


@pytest.mark.parametrize("fields", [{"infer": False}, {"rules": Rules(add_only=True)}])
def test_where_only_equal_words_count_nothing_is_settled(fields: dict[str, Any]) -> None:
    for candidate in (MUNICH, DOUBTED):
        (event,) = repeated(candidate, CASE, **fields)
        assert isinstance(event, FactSkipped)
