"""Statements told late whose slot held a newer value that has ended since, or that meet a fact across such a gap."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemolog.schemas.events import FactAdded, FactConfirmed, FactExtended, FactSkipped, FactsMerged, FactsRelated
from mnemolog.schemas.facts import Candidate, MatchedFact, MovedEnd
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.resolution.classify import Conflict, Duplicate, Obsolete, classify_late
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import statement_context
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    TODAY,
    decide_one,
    decision_context,
    known_fact,
    llm_decision,
    matched_fact,
    turn_rules,
)

DAY = timedelta(days=1)
HOME: dict[str, Any] = {"key": "home_city", "value": "Munich", "subject": "Mira"}


def ended_value(**fields: Any) -> Candidate:
    defaults: dict[str, Any] = {
        "key": "home_city",
        "subject": "Mira",
        "text": "Mira lives in Oslo.",
        "status": "ended",
        "true_from": TODAY + DAY,
        "true_to": TODAY + 2 * DAY,
        "said_at": TODAY + DAY,
    }
    return known_fact(0.0, **defaults | fields)


def with_ended(fact: MatchedFact, *ended: Candidate) -> MatchedFact:
    return fact.model_copy(update={"candidates": (*fact.candidates, *ended)})


def classify(
    fact: MatchedFact, *ended: Candidate, rules: EffectivePolicy | None = None
) -> Duplicate | Obsolete | Conflict | None:
    context = statement_context(fact, decision_context())
    return classify_late(with_ended(fact, *ended), context, turn_rules(rules))


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [("Mira likes turkey.", True), ("Mira likes turkey!", True), ("Mira likes Turkey.", False)],
)
def test_late_words_with_the_capitals_of_a_name_repeat_no_ended_fact(text: str, *, is_repeated: bool) -> None:
    turkey = ended_value(key="likes", text="Mira likes turkey.", true_from=TODAY, said_at=TODAY)
    found = classify(matched_fact(text=text, key="likes", subject="Mira"), turkey)
    assert isinstance(found, Duplicate) == is_repeated


def test_what_is_older_than_an_ended_value_is_obsolete() -> None:
    fact, oslo = matched_fact(**HOME), ended_value()
    assert classify(fact, oslo) == Obsolete(with_ended(fact, oslo), (oslo,))


@pytest.mark.parametrize(
    "value",
    [
        {"key": "employer"},
        {"subject": "Bob"},
        {"valid_until": TODAY + 2 * DAY},
        {"true_from": LAST_YEAR, "said_at": LAST_YEAR},
        {"true_from": TODAY, "said_at": TODAY},
    ],
    ids=["another slot", "another person", "for a term", "an older one", "one as old"],
)
def test_no_other_value_makes_it_obsolete(value: dict[str, Any]) -> None:
    assert classify(matched_fact(**HOME), ended_value(**value)) is None
    assert classify(matched_fact(**HOME, valid_until=TODAY + DAY), ended_value()) is None


def test_what_was_said_again_after_it_overtakes_it_and_what_had_ended_before_says_nothing_about_it() -> None:
    assert classify(matched_fact(**HOME), ended_value(true_from=LAST_YEAR)) is not None
    since_long = matched_fact(**HOME, event_time=LAST_YEAR)
    oslo = {"true_from": LAST_YEAR + DAY, "said_at": LAST_YEAR + DAY}
    assert classify(since_long, ended_value(**oslo, true_to=TODAY)) is None
    assert classify(since_long, ended_value(**oslo, true_to=TODAY + DAY)) is not None
    changed = matched_fact(**HOME, event_time=LAST_YEAR, action_hint="update")  # news, though it began before
    assert classify(changed, ended_value(**oslo)) is None


@pytest.mark.parametrize(
    ("fields", "is_history"),
    [
        ({"key": "pet"}, False),
        ({"key": "pet", "single_valued": True}, True),
        ({"key": "locker"}, True),
        ({"key": "locker", "action_hint": "retract"}, False),
        ({"key": None}, False),
    ],
)
def test_only_a_single_valued_key_makes_a_fact_obsolete(fields: dict[str, Any], *, is_history: bool) -> None:
    fact = matched_fact(**HOME | fields)
    classification = classify(
        fact, ended_value(key=fact.fact.key or "home_city"), rules=EffectivePolicy(single_valued=("locker",))
    )
    assert (classification is not None) == is_history


def test_an_obsolete_fact_is_history_whatever_is_near_it() -> None:
    oslo, rome = ended_value(), known_fact(0.99, **HOME, true_from=NEXT_YEAR)
    (event,) = decide([Obsolete(matched_fact(rome, **HOME), (oslo,))], (), decision_context())
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (oslo.true_from, oslo.fact_id)
    assert (event.decision.by, event.decision.guard, event.decision.model) == ("rule", "late_news", None)
    assert [seen.fact_id for seen in event.decision.candidates] == [rome.fact_id]


def test_it_ended_with_the_next_newer_value_held_or_gone() -> None:
    late, soon = ended_value(true_from=TODAY + 3 * DAY, said_at=TODAY + 3 * DAY, true_to=NEXT_YEAR), ended_value()
    rome = known_fact(**HOME, true_from=TODAY + DAY / 2)
    other = known_fact(key="employer", true_from=TODAY + DAY / 4)
    older = known_fact(**HOME, true_from=LAST_YEAR, said_at=TODAY)
    held = matched_fact(rome, other, older, **HOME, event_time=TODAY - DAY)
    for fact, ender in ((matched_fact(**HOME), soon), (held, rome)):
        (event,) = decide([Obsolete(fact, (late, soon))], (), decision_context())
        assert isinstance(event, FactAdded)
        assert (event.ended_at, event.ended_by) == (ender.true_from, ender.fact_id)


@pytest.mark.parametrize("verdict", ["KEEP", "MERGE"])
def test_nothing_joins_a_fact_across_the_time_of_another(verdict: Verdict) -> None:
    rome = known_fact(true_from=NEXT_YEAR)
    gap = decision_context(version_starts={rome.fact_id: (LAST_YEAR, TODAY + DAY, NEXT_YEAR)})
    event = decide_one(matched_fact(rome), llm_decision(verdict, rome), gap)
    assert (event.decision.by, event.decision.guard, event.decision.verdict) == ("rule", "late_news", verdict)
    assert [before.fact_id for before in event.decision.before] == [rome.fact_id]
    (repeated,) = decide([Duplicate(matched_fact(rome, text=rome.text), rome)], (), gap)
    for added in (event, repeated):
        assert isinstance(added, FactAdded)
        assert (added.ended_at, added.ended_by) == (TODAY + DAY, rome.fact_id)


@pytest.mark.parametrize("chain", [(), (LAST_YEAR, NEXT_YEAR), (TODAY, NEXT_YEAR)])
def test_without_a_gap_it_is_said_again(chain: tuple[datetime, ...]) -> None:
    rome = known_fact(true_from=NEXT_YEAR)
    context = decision_context(version_starts={rome.fact_id: chain})
    assert isinstance(decide_one(matched_fact(rome), llm_decision("KEEP", rome), context), FactConfirmed)
    assert isinstance(decide_one(matched_fact(rome), llm_decision("MERGE", rome), context), FactsMerged)
    (event,) = decide([Duplicate(matched_fact(rome), rome)], (), context)
    assert isinstance(event, FactSkipped)


def test_who_says_since_when_it_is_so_today_says_it_again() -> None:
    rome = known_fact(true_from=TODAY - DAY)
    context = decision_context(version_starts={rome.fact_id: (TODAY - 2 * DAY, TODAY - DAY)})
    event = decide_one(matched_fact(rome, event_time=LAST_YEAR), llm_decision("KEEP", rome), context)
    assert isinstance(event, FactConfirmed)


@pytest.mark.parametrize(("verdict", "kind"), [("EXTEND", FactExtended), ("SIMILAR", FactsRelated)])
def test_what_is_older_in_its_slot_ends_with_what_has_its_end_announced(verdict: Verdict, kind: Any) -> None:
    acme = known_fact(**HOME, true_from=TODAY + DAY, true_to=NEXT_YEAR)
    event = decide_one(matched_fact(acme, **HOME), llm_decision(verdict, acme))
    assert isinstance(event, kind)
    assert event.moved_ends == (MovedEnd(fact_id=event.fact.fact_id, ender=acme.fact_id, ended_at=NEXT_YEAR),)
    own_term = decide_one(matched_fact(acme, **HOME, valid_until=TODAY + DAY), llm_decision(verdict, acme))
    assert (event.fact.valid_until, own_term.fact.valid_until) == (None, TODAY + DAY)


@pytest.mark.parametrize(
    "fields",
    [{"key": "employer"}, {"true_from": LAST_YEAR, "said_at": LAST_YEAR, "value": "Oslo"}, {"true_to": None}],
    ids=["another slot", "a newer value", "no end"],
)
def test_nothing_else_ends_with_it(fields: dict[str, Any]) -> None:
    acme = known_fact(**{**HOME, "true_from": TODAY + DAY, "true_to": NEXT_YEAR} | fields)
    assert decide_one(matched_fact(acme, **HOME), llm_decision("SIMILAR", acme)).moved_ends == ()
