"""What a statement means for an overwrite that is held back."""

from datetime import timedelta
from typing import Any

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.events import (
    FactAdded,
    FactConfirmed,
    FactExtended,
    FactPending,
    FactReplaced,
    FactSkipped,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.resolution.classify import Classification, Duplicate
from mnemolog.streams.resolution.decide import decide
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

BERLIN = known_fact(text="Mira lives in Berlin.")
MUNICH = known_fact(0.9, "Mira lives in Munich.", status="pending_confirmation")
CHALLENGED = BERLIN.model_copy(update={"challenged_by": (MUNICH.fact_id,)})
OVERWRITE = PendingOverwrite(fact_id=MUNICH.fact_id, targets=(BERLIN.fact_id,))


def held(**fields: Any) -> PendingOverwrite:
    """Munich, held back against Berlin."""
    return PendingOverwrite(**{"fact_id": MUNICH.fact_id, "targets": (BERLIN.fact_id,), **fields})


def repeat_events(candidate: Any, *cases: PendingOverwrite, **fields: Any) -> tuple[Any, ...]:
    duplicate: Classification = Duplicate(matched_fact(candidate, text=candidate.text), candidate, "hash")
    return decide([duplicate], {}, decision_context(*cases, **fields))


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
