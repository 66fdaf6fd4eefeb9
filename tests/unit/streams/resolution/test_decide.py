from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

import pytest

from mnemolog.schemas import ids
from mnemolog.schemas.events import (
    OVERWRITE_OF_VERDICT,
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    FactsMerged,
    FactsRelated,
    PendingRejected,
)
from mnemolog.schemas.facts import Certainty
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.resolution.classify import Conflict, Duplicate, New
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import NoDecision
from tests.support.builders.decisions import (
    LAST_YEAR,
    MERGED_VECTOR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    TODAY,
    PendingOverwrite,
    decide_all,
    decide_one,
    decision_context,
    judged,
    known_fact,
    llm_decision,
    matched_fact,
)

DAY = timedelta(days=1)


def test_a_new_fact_is_added_with_deterministic_ids() -> None:
    (event,) = decide([New(matched_fact())], (), decision_context())
    assert isinstance(event, FactAdded)
    assert event.fact.fact_id == ids.fact_id(OWNER, SOURCE, 0)
    assert event.event_id == ids.event_id(OWNER, SOURCE, 0)
    assert (event.fact.true_from, event.fact.confidence, event.unresolved) == (TODAY, 0.95, False)


def test_every_candidate_that_was_looked_at_is_in_the_decision() -> None:
    near, far = known_fact(0.7), known_fact(0.3)
    event = decide_one(matched_fact(near, far), llm_decision("KEEP", near))
    assert [(seen.fact_id, seen.similarity) for seen in event.decision.candidates] == [
        (near.fact_id, 0.7),
        (far.fact_id, 0.3),
    ]
    decision = event.decision
    assert (decision.by, decision.model, decision.prompt_version) == ("model", "judge", "resolve-2")
    assert (decision.reason, decision.verdict, decision.guard) == ("because", "KEEP", None)


@pytest.mark.parametrize(("model", "by"), [("judge", "model"), ("rules-4", "rule")])
def test_a_decision_is_by_whoever_answered(model: str, by: str) -> None:
    known = known_fact(0.7)
    verdicts: tuple[Verdict, ...] = ("REPLACE", "KEEP", "EXTEND")
    for verdict in verdicts:
        event = decide_one(matched_fact(known), replace(llm_decision(verdict, known), model=model))
        assert event.decision.by == by


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        ("MERGE", FactsMerged),
        ("REPLACE", FactReplaced),
        ("CONTRADICT", FactContradicted),
        ("RETRACT", FactRetracted),
        ("EXPIRE", FactExpired),
        ("EXTEND", FactExtended),
        ("SIMILAR", FactsRelated),
    ],
)
def test_a_verdict_is_applied_to_all_its_targets(verdict: Verdict, kind: Any) -> None:
    old, other, left = known_fact(), known_fact(), known_fact()
    event = decide_one(matched_fact(old, other, left), llm_decision(verdict, old, other, ended_at=NEXT_YEAR))
    assert isinstance(event, kind)
    assert event.targets == (old.fact_id, other.fact_id)
    assert event.fact.fact_id == ids.fact_id(OWNER, SOURCE, 0)
    ended = (old.fact_id, other.fact_id) if verdict in OVERWRITE_OF_VERDICT else ()
    assert tuple(old.fact_id for old in event.decision.before) == ended


@pytest.mark.parametrize("verdict", ["REPLACE", "RETRACT"])
def test_a_fact_ends_when_the_new_one_began_or_when_it_is_told(verdict: Verdict) -> None:
    old, february = known_fact(), LAST_YEAR + 300 * DAY
    event = decide_one(matched_fact(old, event_time=february), llm_decision(verdict, old))
    assert event.ended_at == event.fact.true_from == february
    event = decide_one(matched_fact(old, event_time=february), llm_decision(verdict, old, ended_at=february - DAY))
    assert (event.ended_at, event.fact.true_from) == (february - DAY, february)


def test_a_plan_that_is_called_off_never_was_true() -> None:
    plan = known_fact(true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    retracted = decide_one(matched_fact(plan, action_hint="retract"), llm_decision("RETRACT", plan))
    assert isinstance(retracted, FactRetracted)
    assert retracted.ended_at is None
    assert isinstance(
        decide_one(matched_fact(plan, action_hint="update"), llm_decision("REPLACE", plan)), FactContradicted
    )


@pytest.mark.parametrize(
    ("verdict", "ended_at", "expected"),
    [
        pytest.param("EXPIRE", NEXT_YEAR, NEXT_YEAR, id="announced"),
        pytest.param("REPLACE", TODAY - DAY / 2, TODAY, id="the day of the beginning"),
        pytest.param("REPLACE", TODAY - DAY / 24, TODAY - DAY / 24, id="a time after the beginning"),
    ],
)
def test_an_end_is_the_one_that_is_told_and_lies_on_the_day_of_the_beginning_or_later(
    verdict: Verdict, ended_at: datetime, expected: datetime
) -> None:
    old = known_fact(true_from=TODAY - DAY / 8)
    event = decide_one(matched_fact(old, action_hint="update"), llm_decision(verdict, old, ended_at=ended_at))
    assert event.end_time == expected


def test_what_is_known_is_confirmed_or_skipped() -> None:
    old, nearest = known_fact(0.7), known_fact(0.9)
    kept = decide_one(matched_fact(old, nearest), llm_decision("KEEP", old, nearest))
    assert isinstance(kept, FactConfirmed)
    assert kept.target == nearest.fact_id
    berlin, munich = known_fact(0.9, value="Berlin"), known_fact(0.7, value="Munich")
    of_value = decide_one(matched_fact(berlin, munich, value="Munich"), llm_decision("KEEP", berlin, munich))
    assert of_value.target == munich.fact_id
    assert kept.statement is not None
    assert kept.statement.text == "Mira lives in Munich."
    (skipped,) = decide([Duplicate(matched_fact(old), old)], (), decision_context())
    assert isinstance(skipped, FactSkipped)
    assert skipped.target == old.fact_id


@pytest.mark.parametrize("verdict", ["KEEP", *OVERWRITE_OF_VERDICT])
def test_what_is_said_of_one_neither_repeats_nor_ends_a_fact_about_another(verdict: Verdict) -> None:
    of_another = known_fact(0.7, subject_relation="other")
    event = decide_one(matched_fact(of_another), llm_decision(verdict, of_another))
    assert isinstance(event, FactAdded)
    assert event.affected_ids == ()
    assert (event.decision.by, event.decision.guard) == ("rule", "other_subject")


@pytest.mark.parametrize("relation", ["other", "twin"])
def test_a_late_statement_repeats_nothing_that_held_of_another(relation: Literal["other", "twin"]) -> None:
    gone = known_fact(0.9, status="ended", subject_relation=relation, true_from=LAST_YEAR, true_to=NEXT_YEAR)
    event = decide_one(matched_fact(gone), llm_decision("KEEP", gone))
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.decision.guard) == (None, "other_subject")


def test_a_merged_fact_is_what_its_parents_are_together() -> None:
    old = known_fact(
        confidence=0.99, key="home_city", value="Berlin", category="health", subject="Mira", valid_until=NEXT_YEAR
    )
    event = decide_one(matched_fact(old, valid_until=NEXT_YEAR), llm_decision("MERGE", old, text="Mira moved."))
    fact = event.fact
    assert (fact.text, fact.search_text, fact.vector) == ("Mira moved.", "Mira moved.", MERGED_VECTOR)
    assert (fact.true_from, fact.confidence, fact.valid_until) == (LAST_YEAR, 0.99, NEXT_YEAR)
    assert (fact.key, fact.value, fact.category, fact.subject) == ("home_city", "Berlin", "health", "Mira")
    assert event.statement.text == "Mira lives in Munich."
    told = matched_fact(old, key="work_city", value="Munich", subject="Bob")
    fact = decide_one(told, llm_decision("MERGE", old)).fact
    assert (fact.key, fact.value, fact.subject) == ("work_city", "Munich", "Bob")


@pytest.mark.parametrize(
    ("known", "said", "expected"),
    [
        ({"metadata": {"shop": 1}}, {}, {"metadata": {"shop": 1, "turn": "t"}}),
        ({"metadata": {"turn": "s"}}, {}, {"metadata": {"turn": "t"}}),
        ({"value_json": {"kg": 70}}, {}, {"value_json": {"kg": 70}}),
        ({"importance": 0.9, "importance_category": "stable_preference"}, {"importance": 0.3}, {"importance": 0.9}),
        ({"event_time": LAST_YEAR}, {}, {"event_time": LAST_YEAR, "true_from": LAST_YEAR}),
        ({"event_time": LAST_YEAR}, {"event_time": LAST_YEAR - DAY}, {"event_time": LAST_YEAR - DAY}),
        ({"action_hint": "retract"}, {}, {"action_hint": "retract"}),
        ({"category": "health"}, {"category": "travel"}, {"category": "health", "more_categories": ("travel",)}),
    ],
)
def test_a_merged_fact_has_what_its_parent_has(
    known: dict[str, Any], said: dict[str, Any], expected: dict[str, Any]
) -> None:
    parent = known_fact(**known)
    context = decision_context(metadata={"turn": "t"})
    event = decide_one(matched_fact(parent, **said), llm_decision("MERGE", parent), context)
    assert isinstance(event, FactsMerged)
    assert {name: getattr(event.fact, name) for name in expected} == expected


@pytest.mark.parametrize("found", [Duplicate, Conflict])
def test_words_of_what_the_turn_has_merged_repeat_the_merged_fact(found: type) -> None:
    known = known_fact()
    again = matched_fact(known, text=known.text)
    second = Duplicate(again, known) if found is Duplicate else Conflict(again, (known,))
    first = Conflict(matched_fact(known), (known,))
    decisions = {0: llm_decision("MERGE", known), 1: llm_decision("KEEP", known)}
    merged, skipped = decide([first, second], judged(decisions), decision_context())
    assert isinstance(merged, FactsMerged)
    assert isinstance(skipped, FactSkipped)
    assert skipped.target == merged.fact.fact_id


def test_a_merged_fact_takes_no_end_and_every_authority_from_its_parents() -> None:
    """The announced end of a parent follows in `mnemolog.streams.ends`, as an end and not as a term."""
    old = known_fact(true_to=NEXT_YEAR, authority="human")
    event = decide_one(matched_fact(old), llm_decision("MERGE", old, text="Mira moved."))
    assert isinstance(event, FactPending)
    assert (event.fact.valid_until, event.fact.authority, event.needs_human) == (None, "human", True)


@pytest.mark.parametrize(("certainty", "confidence"), [("speculation", 0.40), ("weak", 0.95), ("explicit", 0.95)])
def test_a_merged_fact_is_no_more_certain_than_a_guess_in_it(certainty: Certainty, confidence: float) -> None:
    old = known_fact(confidence=0.95)
    event = decide_one(matched_fact(old, certainty=certainty), llm_decision("MERGE", old))
    assert isinstance(event, FactsMerged)
    assert event.fact.confidence == confidence


def test_a_guess_against_a_certain_fact_waits_and_tells_why() -> None:
    old = known_fact(confidence=0.95)
    event = decide_one(matched_fact(old, certainty="speculation"), llm_decision("REPLACE", old))
    assert isinstance(event, FactPending)
    assert (event.guard, event.needs_human, event.fact.confidence) == ("low_confidence", False, 0.40)
    assert event.decision.reason == "because; held back: the statement is too uncertain to end a certain fact"


@pytest.mark.parametrize("decisions", [{0: NoDecision(complaint="no valid reply", model="judge")}, {}])
def test_without_a_valid_verdict_the_fact_is_added_and_marked(decisions: dict[int, NoDecision]) -> None:
    (event,) = decide([Conflict(matched_fact(known_fact()), (known_fact(),))], judged(decisions), decision_context())
    assert isinstance(event, FactAdded)
    assert (event.unresolved, event.decision.by) == (True, "rule")


@pytest.mark.parametrize("verdict", ["REPLACE", "RETRACT", "EXPIRE", "CONTRADICT"])
def test_late_news_becomes_history(verdict: Verdict) -> None:
    old = known_fact(true_from=NEXT_YEAR)
    event = decide_one(
        matched_fact(old), llm_decision(verdict, old, ended_at=NEXT_YEAR if verdict == "EXPIRE" else None)
    )
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (NEXT_YEAR, old.fact_id)
    assert (event.decision.by, event.decision.verdict, event.decision.guard) == ("rule", verdict, "late_news")
    assert [old.fact_id for old in event.decision.before] == [old.fact_id]


def test_late_news_ends_where_the_next_version_that_is_known_began() -> None:
    old = known_fact(true_from=NEXT_YEAR)
    chains = {old.fact_id: (LAST_YEAR, TODAY + DAY, NEXT_YEAR)}
    event = decide_one(matched_fact(old), llm_decision("REPLACE", old), decision_context(version_starts=chains))
    assert event.ended_at == TODAY + DAY


@pytest.mark.parametrize("verdict", list(OVERWRITE_OF_VERDICT))
def test_a_guarded_verdict_waits_with_all_that_it_would_do(verdict: Verdict) -> None:
    old, other = known_fact(authority="human"), known_fact()
    event = decide_one(
        matched_fact(old, other), llm_decision(verdict, old, other, ended_at=TODAY if verdict == "EXPIRE" else None)
    )
    assert isinstance(event, FactPending)
    assert (event.targets, event.action) == ((old.fact_id, other.fact_id), OVERWRITE_OF_VERDICT[verdict])
    assert (event.guard, event.needs_human) == ("human_word", True)
    assert event.ended_at == (TODAY if verdict in ("REPLACE", "RETRACT", "EXPIRE") else None)
    assert event.fact.vector == (MERGED_VECTOR if verdict == "MERGE" else matched_fact().vector)
    decision = event.decision
    assert (decision.by, decision.verdict, decision.guard) == ("rule", verdict, "human_word")
    assert "because; held back: the known fact is a human's word or immutable" in decision.reason
    assert [old.text for old in decision.before] == [old.text, other.text]


def test_a_statement_can_wait_for_another_one_or_for_a_human() -> None:
    sure, risky = known_fact(confidence=0.95, category="health"), known_fact(category="finance")
    assert not decide_one(matched_fact(sure), llm_decision("CONTRADICT", sure)).needs_human
    held = decide_one(matched_fact(risky, certainty="strong"), llm_decision("REPLACE", risky))
    assert (held.guard, held.needs_human) == ("high_risk", False)


@pytest.mark.parametrize("verdict", ["EXTEND", "SIMILAR", "EXPIRE"])
def test_nothing_is_related_to_what_is_pending(verdict: Verdict) -> None:
    pending, held = known_fact(status="pending_confirmation"), known_fact()
    event = decide_one(matched_fact(pending), llm_decision(verdict, pending, ended_at=TODAY))
    assert isinstance(event, FactAdded)
    event = decide_one(matched_fact(pending, held), llm_decision(verdict, pending, held, ended_at=TODAY))
    assert event.targets == (held.fact_id,)


def two(first: Verdict | None, second: Verdict, *, text: str = "two", **fields: Any) -> tuple[Any, ...]:
    """The events of a statement about Berlin, and of a later one about that statement."""
    berlin = known_fact()
    one = matched_fact(berlin, text="one")
    itself = known_fact(0.9, "one", fact_id=provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    other = matched_fact(berlin, itself, text=text, **fields)
    decisions = {1: llm_decision(second, itself)} | ({0: llm_decision(first, berlin)} if first else {})
    return berlin, *decide_all([one, other], decisions)


def test_a_repetition_of_what_this_turn_has_ended_is_kept_as_a_fact_of_its_own() -> None:
    berlin = known_fact()
    moved = Conflict(matched_fact(berlin), (berlin,))
    repeated = Duplicate(matched_fact(berlin, text=berlin.text), berlin)
    first, second = decide([moved, repeated], judged({0: llm_decision("REPLACE", berlin)}), decision_context())
    assert isinstance(first, FactReplaced)
    assert isinstance(second, FactAdded)
    assert second.fact.text == berlin.text
    assert second.decision.by == "rule"
    assert not second.unresolved


@pytest.mark.parametrize("status", ["active", "pending_confirmation"])
@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT", "RETRACT"])
@pytest.mark.parametrize("key", ["employer", None])
def test_what_this_turn_has_ended_is_unresolved_beside_what_ended_it(
    status: str, verdict: Verdict, key: str | None
) -> None:
    hooli = known_fact(1.0, "Mira works at Hooli.", key=key, value="Hooli", status=status)
    acme = known_fact(0.9, "Mira works at Acme.", key=key, fact_id=provisional_fact_id(OWNER, SOURCE, 0))
    ending = Conflict(matched_fact(hooli, text=acme.text, key=key), (hooli,))
    again = Duplicate(matched_fact(hooli, acme, text=hooli.text, key=key, value="Hooli"), hooli)
    ended, added = decide([ending, again], judged({0: llm_decision(verdict, hooli)}), decision_context())
    assert isinstance(added, FactAdded)
    assert ended.new_fact is not None
    assert (added.unresolved, added.decision.shown) == (True, (ended.new_fact.fact_id,))


def test_what_this_turn_has_rejected_is_unresolved_beside_what_it_would_have_ended() -> None:
    hooli = known_fact(1.0, "Mira works at Hooli.", status="pending_confirmation", key="employer")
    bosch = known_fact(1.0, "Mira works at Bosch.", key="employer", challenged_by=(hooli.fact_id,))
    said = [Duplicate(matched_fact(bosch, hooli, text=one.text, key="employer"), one) for one in (bosch, hooli)]
    case = PendingOverwrite(fact_id=hooli.fact_id, targets=(bosch.fact_id,))
    rejected, added = decide(said, [], decision_context(case))
    assert isinstance(rejected, PendingRejected)
    assert isinstance(added, FactAdded)
    assert (added.unresolved, added.decision.shown) == (True, (bosch.fact_id,))


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ("REPLACE", "REPLACE", "fact_replaced fact_replaced"),
        ("KEEP", "REPLACE", "fact_confirmed fact_replaced"),  # the known fact stands for the one that repeats it
        ("KEEP", "KEEP", "fact_confirmed fact_skipped"),
    ],
)
def test_a_later_fact_is_decided_by_what_became_of_an_earlier_one(first: Verdict, second: Verdict, kinds: str) -> None:
    berlin, one, other = two(first, second)
    assert f"{one.event} {other.event}" == kinds
    stands = berlin.fact_id if first == "KEEP" else one.fact.fact_id
    assert (other.targets if second == "REPLACE" else (other.target,)) == (stands,)
    if (first, second) == ("KEEP", "REPLACE"):
        assert {seen.fact_id for seen in other.decision.candidates} == {berlin.fact_id}


@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT", "RETRACT"])
def test_who_corrects_themselves_within_a_turn_is_believed(verdict: Verdict) -> None:
    """However risky and sure the first statement was, and however doubtful the second."""
    first = matched_fact(text="one", category="health")
    itself = known_fact(
        0.9, "one", fact_id=provisional_fact_id(OWNER, SOURCE, 0), category="health", confidence=0.95, true_from=TODAY
    )
    second = Conflict(matched_fact(itself, text="two", certainty="speculation"), (itself,))
    said, corrected = decide([New(first), second], judged({1: llm_decision(verdict, itself)}), decision_context())
    assert said.new_fact is not None
    assert corrected.ended_ids == (said.new_fact.fact_id,)


def test_what_waits_since_this_very_turn_is_not_confirmed_by_it() -> None:
    berlin = known_fact(authority="human")
    itself = known_fact(0.9, "one", fact_id=provisional_fact_id(OWNER, SOURCE, 0))
    facts = [matched_fact(berlin, text="one"), matched_fact(itself, text="two")]
    first, second = decide_all(facts, {0: llm_decision("REPLACE", berlin), 1: llm_decision("KEEP", itself)})
    assert isinstance(first, FactPending)
    assert isinstance(second, FactSkipped)
    assert second.target == first.fact.fact_id
    first, second = decide_all(facts, {0: llm_decision("REPLACE", berlin), 1: llm_decision("MERGE", itself)})
    assert isinstance(second, FactPending)
    assert second.targets == (berlin.fact_id, first.fact.fact_id)  # type: ignore[union-attr]  # a pending fact, as above
    assert (second.action, second.guard, second.needs_human) == ("replace", "human_word", True)


def test_an_earlier_time_of_the_same_turn_becomes_history() -> None:
    text = "Mira lived in Bonn."
    berlin, first, second = two("REPLACE", "REPLACE", text=text, event_time=LAST_YEAR - DAY)
    assert isinstance(second, FactAdded)
    assert (second.ended_at, second.ended_by) == (LAST_YEAR, first.fact.fact_id)  # where Berlin began
    assert berlin.true_from == LAST_YEAR


def test_what_came_as_history_is_not_ended_again() -> None:
    munich = known_fact(true_from=NEXT_YEAR)
    itself = known_fact(0.9, "one", fact_id=provisional_fact_id(OWNER, SOURCE, 0), true_from=TODAY)
    facts = [matched_fact(munich, text="one"), matched_fact(itself, text="two")]
    first, second = decide_all(facts, {0: llm_decision("REPLACE", munich), 1: llm_decision("REPLACE", itself)})
    assert (first.event, first.end_time, second.event, second.end_time) == ("fact_added", NEXT_YEAR, "fact_added", None)


def test_an_end_that_comes_late_ends_what_is_older_and_not_what_is_newer() -> None:
    dog, newer = known_fact(text="Mira has a dog."), known_fact(true_from=NEXT_YEAR, said_at=NEXT_YEAR)
    event = decide_one(matched_fact(dog, newer, action_hint="retract"), llm_decision("RETRACT", dog, newer))
    assert (event.event, event.targets, event.end_time) == ("fact_retracted", (dog.fact_id,), TODAY)
    assert [(end.fact_id, end.ended_at, end.ended_by) for end in event.moved_ends] == [
        (event.fact.fact_id, NEXT_YEAR, newer.fact_id)
    ]
