"""Two values of a key that holds one are never active beside each other without a decision or a mark."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import Judgement, LlmDecision
from mnemolog.testing import InMemoryClient
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    TODAY,
    decide_one,
    decision_context,
    known_fact,
    llm_decision,
    matched_fact,
)

DAY = timedelta(days=1)
LONG_AGO = LAST_YEAR - 5000 * DAY


def by_rule(verdict: Verdict, *targets: Candidate) -> LlmDecision:
    return replace(llm_decision(verdict, *targets), model="rules-4")


def of_key(key: str, value: str, **fields: Any) -> dict[str, Any]:
    return {"text": f"Mira's {key} is {value}.", "key": key, "value": value, "subject": "Mira"} | fields


def added(known: dict[str, Any], said: dict[str, Any], decision: Any = None, *more: Candidate) -> tuple[Any, Candidate]:
    candidate = known_fact(0.8, **known)
    event = decide_one(matched_fact(candidate, *more, **said), decision or by_rule("ADD"))
    return event, candidate


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("diet", "vegan", "vegetarian"),
        ("employer", "Acme", "Bosch"),
        ("home_city", "London", "London, Ontario"),
        ("birthday", "1 May", "2 May"),
    ],
)
def test_a_value_that_rules_kept_beside_another_is_unresolved(key: str, before: str, after: str) -> None:
    event, candidate = added(of_key(key, before), of_key(key, after))
    assert (event.event, event.unresolved, event.decision.shown) == ("fact_added", True, (candidate.fact_id,))


def test_so_it_is_for_keys_that_the_statement_says_hold_one_value() -> None:
    event, _ = added(of_key("wife", "Anna"), of_key("wife", "Petra", single_valued=True))
    assert event.unresolved


@pytest.mark.parametrize("verdict", ["KEEP", "MERGE", "REPLACE"])
def test_a_guard_that_spares_another_ones_fact_leaves_the_own_value_in_doubt(verdict: Verdict) -> None:
    namesake = known_fact(0.9, **of_key("employer", "Acme"), subject_relation="other")
    own = of_key("employer", "Bosch")
    event, candidate = added(own, of_key("employer", "Acme"), llm_decision(verdict, namesake), namesake)
    assert (event.decision.guard, event.unresolved) == ("other_subject", True)
    assert event.decision.shown == (candidate.fact_id,)


@pytest.mark.parametrize(("unresolved", "ended"), [(True, 2), (False, 1)])
@pytest.mark.parametrize("key", ["employer", "home_city", "diet"])
def test_who_replaces_an_unresolved_value_replaces_what_it_stands_beside(
    key: str, *, unresolved: bool, ended: int
) -> None:
    doubted = known_fact(0.9, **of_key(key, "Acme"), unresolved=unresolved)
    beside, other_key = known_fact(0.8, **of_key(key, "Bosch")), known_fact(0.8, **of_key("team", "Red"))
    said = matched_fact(doubted, beside, other_key, **of_key(key, "Hooli"))
    event: Any = decide_one(said, llm_decision("REPLACE", doubted))
    assert (event.event, event.targets) == ("fact_replaced", (doubted.fact_id, beside.fact_id)[:ended])


def test_a_merge_of_two_values_of_a_slot_leaves_both_in_doubt() -> None:
    known = of_key("employer", "Acme")
    acme = known_fact(0.8, **known)
    event = decide_one(matched_fact(acme, **of_key("employer", "Bosch")), llm_decision("MERGE", acme))
    assert (event.decision.guard, event.unresolved, event.decision.shown) == ("lost_slot", True, (acme.fact_id,))


ACME, BOSCH = of_key("employer", "Acme"), of_key("employer", "Bosch")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        pytest.param(of_key("likes", "tea"), of_key("likes", "coffee"), id="of a key that holds many"),
        pytest.param(ACME, BOSCH | {"subject": "Tom"}, id="of somebody else"),
        pytest.param(ACME, ACME | {"text": "Mira is employed by Acme."}, id="the same value"),
        pytest.param(
            ACME | {"event_time": NEXT_YEAR, "true_from": NEXT_YEAR, "said_at": LAST_YEAR}, BOSCH, id="a plan"
        ),
        pytest.param(ACME, BOSCH | {"event_time": NEXT_YEAR}, id="said of the future"),
        pytest.param(ACME, BOSCH | {"valid_until": NEXT_YEAR}, id="for a term"),
        pytest.param(ACME | {"valid_until": NEXT_YEAR}, BOSCH, id="beside a term"),
        pytest.param(ACME, BOSCH | {"action_hint": "retract"}, id="a denial"),
        pytest.param(ACME | {"action_hint": "retract"}, BOSCH, id="beside a denial"),
        pytest.param(ACME | {"status": "pending_confirmation"}, BOSCH, id="beside what waits"),
    ],
)
def test_what_is_no_other_value_of_now_is_in_no_doubt(known: dict[str, Any], said: dict[str, Any]) -> None:
    event, _ = added(known, said)
    assert not event.unresolved


def test_an_older_value_that_comes_late_is_history() -> None:
    event, bosch = added(BOSCH | {"true_from": NEXT_YEAR, "said_at": NEXT_YEAR}, ACME)
    assert (event.unresolved, event.decision.guard) == (False, "late_news")
    assert (event.ended_at, event.ended_by) == (NEXT_YEAR, bosch.fact_id)


def test_a_model_may_say_that_both_hold() -> None:
    event, _ = added(ACME, BOSCH, llm_decision("ADD"))
    assert not event.unresolved


@pytest.mark.parametrize(("answer", "events"), [(by_rule("ADD"), []), (llm_decision("ADD"), ["conflict_resolved"])])
def test_rules_that_are_asked_again_do_not_say_that_both_hold(answer: LlmDecision, events: list[str]) -> None:
    acme = known_fact(0.8, **ACME)
    bosch = known_fact(0.8, **BOSCH, unresolved=True, true_from=TODAY)
    asked = Question(fact=as_extracted_fact(bosch), candidates=(acme,), known=bosch, known_as="unresolved")
    made = decide([], [Judgement(question=asked, answer=answer)], decision_context())
    assert [event.event for event in made] == events


@pytest.mark.parametrize("answer", [by_rule("ADD"), llm_decision("REPLACE")], ids=["by a rule", "replaces"])
@pytest.mark.parametrize(
    ("text", "hint", "goes_on"),
    [
        ("Mira has lived in Kiel since 2010.", "new", True),
        ("Mira lived in Kiel since 2010.", "new", True),
        ("Mira lives in Kiel.", "new", True),
        ("Mira has been living in Kiel for ten years.", "new", True),
        ("Mira wohnt seit 2010 in Kiel.", "new", True),
        ("Mira habite à Kiel depuis 2010.", "new", True),
        ("Mira lived in Kiel in 2010.", "new", False),
        ("Mira was at home in Kiel in 2010.", "new", False),
        ("Mira used to live in Kiel in 2010.", "new", False),
        ("Mira wohnte 2010 in Kiel.", "new", False),
        ("Mira moved to Kiel in 2010.", "update", False),
    ],
)
def test_only_what_was_is_history_of_a_value_that_began_later(
    text: str, hint: str, answer: LlmDecision, *, goes_on: bool
) -> None:
    said = of_key("home_city", "Kiel", text=text, event_time=LONG_AGO, action_hint=hint)
    ulm = of_key("home_city", "Ulm", event_time=LAST_YEAR, said_at=TODAY - DAY)
    candidate = known_fact(0.8, **ulm)
    event = decide_one(matched_fact(candidate, **said), replace(answer, targets=(candidate,)))
    assert event.event == "fact_added"
    assert (event.unresolved, event.ended_at) == ((True, None) if goes_on else (False, LAST_YEAR))
    assert event.decision.shown == ((candidate.fact_id,) if goes_on else ())


def test_what_goes_on_is_denied_by_a_model_alone_and_history_of_what_was_said_since() -> None:
    said = of_key("home_city", "Kiel", text="Mira has lived in Kiel since 2010.", event_time=LONG_AGO)
    ulm = known_fact(0.8, **of_key("home_city", "Ulm", event_time=LAST_YEAR, said_at=LAST_YEAR))
    assert decide_one(matched_fact(ulm, **said), llm_decision("CONTRADICT", ulm)).event == "fact_contradicted"
    for later in ({"said_at": NEXT_YEAR}, {"true_from": NEXT_YEAR, "event_time": NEXT_YEAR}):  # said since; a plan
        newer = ulm.model_copy(update=later)
        event = decide_one(matched_fact(newer, **said), llm_decision("REPLACE", newer))
        assert (event.unresolved, event.ended_by) == (False, newer.fact_id)


def test_what_goes_on_stays_unresolved_when_a_model_is_asked_again() -> None:
    ulm = known_fact(0.8, **of_key("home_city", "Ulm", event_time=TODAY - DAY, true_from=TODAY - DAY))
    kiel = of_key("home_city", "Kiel", text="Mira has lived in Kiel since 2010.", event_time=LONG_AGO)
    known = known_fact(0.8, **kiel, true_from=LONG_AGO, said_at=TODAY, unresolved=True)
    asked = Question(fact=as_extracted_fact(known), candidates=(ulm,), known=known, known_as="unresolved")
    answers = {"REPLACE": [], "CONTRADICT": ["conflict_resolved"]}
    for verdict, events in answers.items():
        answer = llm_decision(verdict, ulm)  # type: ignore[arg-type]  # both are verdicts
        made = decide([], [Judgement(question=asked, answer=answer)], decision_context())
        assert [event.event for event in made] == events


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("I work at Acme.", "I work at Bosch.", "I started a job at Bosch."),
        ("I work at Acme.", "I work at Bosch.", "I started a job at Acme."),
        ("I work at Acme.", "I work at Bosch.", "I started a job at Fiat."),
        ("I'm vegan.", "I'm vegetarian.", "I became vegetarian."),
        ("I've lived in Oslo since 2010.", "I've lived in Rome since 2008.", "I moved to Rome."),
    ],
)
def test_a_change_settles_which_of_two_values_holds(before: str, after: str, change: str) -> None:
    with InMemoryClient() as client:
        memory = client.scope(user_id="mira")
        for said in (before, after):
            memory.add(said, wait=True)
        assert len(memory.facts()) == len(memory.unresolved()) + 1 == 2
        memory.add(after, wait=True)
        assert len(memory.unresolved()) == 1, "a repetition settles nothing"
        memory.add(change, wait=True)
        (fact,) = memory.facts()
        assert str(fact.value) in change
        assert not memory.unresolved()
