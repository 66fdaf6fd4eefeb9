"""Facts that were kept beside others, asked about again."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.entities import Alias, KnownEntity
from mnemolog.schemas.events import ConflictResolved, FactExpired, FactRetracted, FactsMerged
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.resolution.classify import Conflict, New
from mnemolog.streams.resolution.decide import (
    MAX_RETRIED_CONFLICTS,
    conflicts_to_retry,
    decide,
    with_facts_beside,
)
from mnemolog.streams.resolution.events import Judgement, LlmDecision, NoDecision
from tests.support.builders.commits import added, fact_id_at
from tests.support.builders.decisions import (
    LAST_YEAR,
    MERGED_VECTOR,
    NEXT_YEAR,
    TODAY,
    decision_context,
    judged,
    known_fact,
    llm_decision,
    matched_fact,
    turn_rules,
)
from tests.support.harnesses.memory_projection import MemoryProjection

BERLIN = known_fact()
BONN = known_fact(0.7, "Mira lives in Bonn.", unresolved=True, true_from=TODAY)


def about_unresolved(unresolved: Candidate, *rivals: Candidate) -> Question:
    fact = as_extracted_fact(unresolved)
    return Question(fact=fact, candidates=rivals, known=unresolved, known_as="unresolved")


def retry_events(
    decision: LlmDecision | NoDecision, unresolved: Candidate = BONN, *rivals: Candidate
) -> tuple[Any, ...]:
    asked = about_unresolved(unresolved, *(rivals or (BERLIN,)))
    return decide([], [Judgement(question=asked, answer=decision)], decision_context())


@pytest.mark.parametrize(
    ("verdict", "action", "ended_at"),
    [
        ("ADD", "keep_both", None),
        ("EXTEND", "keep_both", None),
        ("SIMILAR", "keep_both", None),
        ("KEEP", "keep_old", None),
        ("REPLACE", "replace", TODAY),
        ("CONTRADICT", "contradict", None),
    ],
)
def test_a_verdict_settles_an_unresolved_fact(verdict: Verdict, action: str, ended_at: Any) -> None:
    targets = () if verdict == "ADD" else (BERLIN,)
    (event,) = retry_events(llm_decision(verdict, *targets))
    assert isinstance(event, ConflictResolved)
    assert (event.target, event.action, event.ended_at) == (BONN.fact_id, action, ended_at)
    assert event.targets == tuple(known.fact_id for known in targets)
    assert (event.decision.by, event.decision.verdict) == ("model", verdict)


def test_two_that_are_one_are_merged() -> None:
    (event,) = retry_events(llm_decision("MERGE", BERLIN, text="Mira lives in Berlin and Bonn."))
    assert isinstance(event, FactsMerged)
    assert event.targets == (BONN.fact_id, BERLIN.fact_id)
    assert (event.fact.text, event.fact.vector) == ("Mira lives in Berlin and Bonn.", MERGED_VECTOR)
    assert (event.fact.true_from, event.statement.text) == (LAST_YEAR, BONN.text)


@pytest.mark.parametrize(("verdict", "kind"), [("RETRACT", FactRetracted), ("EXPIRE", FactExpired)])
def test_a_statement_that_ended_something_ends_it_and_stays(verdict: Verdict, kind: Any) -> None:
    ended, kept = retry_events(llm_decision(verdict, BERLIN, ended_at=NEXT_YEAR if verdict == "EXPIRE" else None))
    assert isinstance(ended, kind)
    assert (ended.targets, ended.fact) == ((BERLIN.fact_id,), None)
    assert isinstance(kept, ConflictResolved)
    assert (kept.target, kept.action) == (BONN.fact_id, "keep_both")
    assert [ended.ordinal, kept.ordinal] == [0, 1]


@pytest.mark.parametrize(
    ("decision", "rival"),
    [
        (NoDecision(complaint="again nothing"), BERLIN),
        (llm_decision("CONTRADICT", known_fact(confidence=0.95)), None),
        (llm_decision("REPLACE", known_fact(authority="human")), None),
        (llm_decision("KEEP", known_fact(status="pending_confirmation")), None),
    ],
)
def test_without_a_verdict_or_past_a_guard_it_stays(
    decision: LlmDecision | NoDecision, rival: Candidate | None
) -> None:
    rivals = (rival,) if rival else getattr(decision, "targets", ())
    assert retry_events(decision, BONN, *rivals) == ()


def test_an_unresolved_fact_that_is_late_news_becomes_history() -> None:
    rome = known_fact(true_from=NEXT_YEAR)
    (event,) = retry_events(llm_decision("REPLACE", rome), BONN, rome)
    assert isinstance(event, FactExpired)
    assert (event.targets, event.ended_at) == ((BONN.fact_id,), NEXT_YEAR)
    assert event.decision.guard == "late_news"


def test_what_the_turn_has_ended_is_not_settled() -> None:
    conflict = about_unresolved(BONN, BERLIN)
    outcome = Judgement(question=conflict, answer=llm_decision("REPLACE", BERLIN))
    contested = [Conflict(matched_fact(BERLIN, BONN), (BERLIN, BONN))]
    for ended in (BONN, BERLIN):
        made = decide(contested, [*judged({0: llm_decision("REPLACE", ended)}), outcome], decision_context())
        assert [event.event for event in made] == ["fact_replaced"]


def test_an_unresolved_fact_is_asked_about_with_what_is_near() -> None:
    far, pending = known_fact(0.3), known_fact(0.9, status="pending_confirmation")
    facts = [matched_fact(BERLIN, BONN, far, pending), matched_fact(known_fact(0.7, "x"), BONN)]
    (again,) = conflicts_to_retry(facts, turn_rules())
    assert again.known == BONN
    assert again.candidates == (BERLIN, facts[1].candidates[0])
    ulm = known_fact(0.8, "Mira lives in Ulm.", unresolved=True)
    (again,) = conflicts_to_retry([matched_fact(BONN, ulm)], turn_rules())
    assert (again.known, again.candidates) == (BONN, (ulm,))


def test_whom_known_facts_are_about_was_held_against_the_turns_fact_alone() -> None:
    """Of somebody else's turn both are facts of another entity, and one is no less a rival of the other."""
    of_another = [known.model_copy(update={"subject_relation": "other"}) for known in (BERLIN, BONN)]
    (again,) = conflicts_to_retry([matched_fact(*of_another)], turn_rules())
    assert (again.known, again.candidates) == (BONN, (BERLIN,))


def mira(number: int, *subject_of: UUID, twin: int | None = None) -> KnownEntity:
    return KnownEntity(
        entity_id=UUID(int=number),
        name="Mira",
        type="person",
        aliases=(Alias(text="Mira", key="mira"),),
        possible_twins=() if twin is None else (UUID(int=twin),),
        subject_of=subject_of,
    )


@pytest.mark.parametrize(("twin", "same"), [(False, False), (True, False), (False, True)])
def test_what_it_was_put_beside_is_a_rival_where_both_are_of_one_entity(twin: bool, same: bool) -> None:
    """By names all of these are of one Mira."""
    projection = MemoryProjection()
    ulm = fact_id_at(projection.add(added("Mira lives in Ulm.", subject="Mira")))
    beside = projection.event_history().facts[ulm]
    conflict = about_unresolved(BONN, BERLIN)
    about = (BONN.fact_id, ulm) if same else (BONN.fact_id, BERLIN.fact_id)
    subjects = [mira(1, *about, twin=2 if twin else None), *([] if same else [mira(2, ulm)])]
    told = with_facts_beside(conflict, [beside], subjects, at=TODAY, user_names=())
    rivals = {known.fact_id: known.subject_relation for known in told.candidates}
    assert rivals == ({ulm: "same", BERLIN.fact_id: None} if same else {BERLIN.fact_id: "same"})
    near_of_another = [mira(1, BONN.fact_id, twin=2 if twin else None), mira(2, BERLIN.fact_id)]
    assert with_facts_beside(conflict, [], near_of_another, at=TODAY, user_names=()).candidates == ()


def test_no_more_is_asked_again_than_a_turn_should_pay_for() -> None:
    many = [known_fact(0.7, f"{place}", unresolved=True) for place in range(9)]
    asked = conflicts_to_retry([matched_fact(BERLIN, *many)], turn_rules())
    assert len(asked) == MAX_RETRIED_CONFLICTS
    assert conflicts_to_retry([matched_fact(BONN)], turn_rules()) == ()
    assert decide([New(matched_fact())], (), decision_context())[0].event == "fact_added"
