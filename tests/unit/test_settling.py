"""Facts that were kept beside others, asked about again."""

from typing import Any

import pytest

from mnemolog.schemas.events import ConflictResolved, FactExpired, FactRetracted, FactsMerged
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.stages.deciding import events
from mnemolog.streams.stages.making import Judgement, Unjudged
from mnemolog.streams.stages.settling import MAX_AGAIN, Again, Settling, unsettled
from mnemolog.streams.stages.weighing import Contested, Fresh
from tests.verdicts import LAST_YEAR, MERGED, NEXT_YEAR, NOON, THRESHOLDS, given, judged, known, matched

BERLIN = known()
BONN = known(0.7, "Mira lives in Bonn.", unresolved=True, true_from=NOON)


def settled(judgement: Judgement | Unjudged, unresolved: Candidate = BONN, *rivals: Candidate) -> tuple[Any, ...]:
    asked = Again(unresolved=unresolved, rivals=rivals or (BERLIN,))
    return events([], {}, given(), [Settling(asked=asked, judgement=judgement)])


@pytest.mark.parametrize(
    ("verdict", "action", "ended_at"),
    [
        ("ADD", "keep_both", None),
        ("EXTEND", "keep_both", None),
        ("SIMILAR", "keep_both", None),
        ("KEEP", "keep_old", None),
        ("REPLACE", "replace", NOON),
        ("CONTRADICT", "contradict", None),
    ],
)
def test_a_verdict_settles_an_unresolved_fact(verdict: Verdict, action: str, ended_at: Any) -> None:
    targets = () if verdict == "ADD" else (BERLIN,)
    (event,) = settled(judged(verdict, *targets))
    assert isinstance(event, ConflictResolved)
    assert (event.target, event.action, event.ended_at) == (BONN.fact_id, action, ended_at)
    assert event.targets == tuple(known.fact_id for known in targets)
    assert (event.decision.by, event.decision.verdict) == ("model", verdict)


def test_two_that_are_one_are_merged() -> None:
    (event,) = settled(judged("MERGE", BERLIN, text="Mira lives in Berlin and Bonn."))
    assert isinstance(event, FactsMerged)
    assert event.targets == (BONN.fact_id, BERLIN.fact_id)
    assert (event.fact.text, event.fact.vector) == ("Mira lives in Berlin and Bonn.", MERGED)
    assert (event.fact.true_from, event.statement.text) == (LAST_YEAR, BONN.text)


@pytest.mark.parametrize(("verdict", "kind"), [("RETRACT", FactRetracted), ("EXPIRE", FactExpired)])
def test_a_statement_that_ended_something_ends_it_and_stays(verdict: Verdict, kind: Any) -> None:
    ended, kept = settled(judged(verdict, BERLIN, ended_at=NEXT_YEAR if verdict == "EXPIRE" else None))
    assert isinstance(ended, kind)
    assert (ended.targets, ended.fact) == ((BERLIN.fact_id,), None)
    assert isinstance(kept, ConflictResolved)
    assert (kept.target, kept.action) == (BONN.fact_id, "keep_both")
    assert [ended.ordinal, kept.ordinal] == [0, 1]


@pytest.mark.parametrize(
    ("judgement", "rival"),
    [
        (Unjudged(complaint="again nothing"), BERLIN),
        (judged("CONTRADICT", known(confidence=0.95)), None),
        (judged("REPLACE", known(authority="human")), None),
        (judged("KEEP", known(status="pending_confirmation")), None),
    ],
)
def test_without_a_verdict_or_past_a_guard_it_stays_as_it_is(
    judgement: Judgement | Unjudged, rival: Candidate | None
) -> None:
    rivals = (rival,) if rival else getattr(judgement, "targets", ())
    assert settled(judgement, BONN, *rivals) == ()


def test_an_unresolved_fact_that_is_late_news_becomes_history() -> None:
    rome = known(true_from=NEXT_YEAR)
    (event,) = settled(judged("REPLACE", rome), BONN, rome)
    assert isinstance(event, FactExpired)
    assert (event.targets, event.ended_at) == ((BONN.fact_id,), NEXT_YEAR)
    assert event.decision.guard == "late_news"


def test_what_the_turn_has_ended_is_not_settled() -> None:
    for ended in (BONN, BERLIN):
        fact = matched(BERLIN, BONN)
        settling = Settling(asked=Again(unresolved=BONN, rivals=(BERLIN,)), judgement=judged("REPLACE", BERLIN))
        made = events([Contested(fact, fact.candidates)], {0: judged("REPLACE", ended)}, given(), [settling])
        assert [event.event for event in made] == ["fact_replaced"]


def test_an_unresolved_fact_is_asked_about_with_what_is_near() -> None:
    far, pending = known(0.3), known(0.9, status="pending_confirmation")
    facts = [matched(BERLIN, BONN, far, pending), matched(known(0.7, "x"), BONN)]
    (again,) = unsettled(facts, THRESHOLDS, Rules())
    assert again.unresolved == BONN
    assert again.rivals == (BERLIN, facts[1].candidates[0])


def test_of_two_unresolved_facts_one_is_asked_about_the_other() -> None:
    ulm = known(0.8, "Mira lives in Ulm.", unresolved=True)
    (again,) = unsettled([matched(BONN, ulm)], THRESHOLDS, Rules())
    assert (again.unresolved, again.rivals) == (BONN, (ulm,))


def test_no_more_is_asked_again_than_a_turn_should_pay_for() -> None:
    many = [known(0.7, f"{place}", unresolved=True) for place in range(9)]
    assert len(unsettled([matched(BERLIN, *many)], THRESHOLDS, Rules())) == MAX_AGAIN
    assert unsettled([matched(BONN)], THRESHOLDS, Rules()) == ()
    assert events([Fresh(matched())], {}, given(), [])[0].event == "fact_added"
