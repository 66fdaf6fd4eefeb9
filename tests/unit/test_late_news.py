"""Statements told late whose slot held a newer value that has ended since, or that meet a fact across such a gap."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.schemas.events import FactAdded, FactConfirmed, FactExtended, FactSkipped, FactsMerged, FactsRelated
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.stages.deciding import events
from mnemolog.streams.stages.guarding import Saying
from mnemolog.streams.stages.making import said
from mnemolog.streams.stages.weighing import Duplicate, Overtaken, overtaken
from tests.verdicts import LAST_YEAR, NEXT_YEAR, NOON, decide, given, judged, known, matched

DAY = timedelta(days=1)
HOME: dict[str, Any] = {"key": "home_city", "value": "Munich", "subject": "Mira"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What a slot held, as the tables tell of it."""

    fact_id: UUID
    key: str = "home_city"
    subject: str | None = "Mira"
    event_time: datetime | None = None
    true_from: datetime = NOON + DAY
    true_to: datetime = NOON + 2 * DAY
    said_at: datetime = NOON + DAY


def gone(**fields: Any) -> Gone:
    return Gone(fact_id=uuid4(), **fields)


def weighed(fact: MatchedFact, *bygones: Gone, rules: Rules | None = None) -> Overtaken | None:
    return overtaken(fact, said(fact.fact, given()), bygones, rules or Rules())


def test_what_is_older_than_a_value_that_has_ended_is_overtaken() -> None:
    fact, oslo = matched(**HOME), gone()
    assert weighed(fact, oslo) == Overtaken(fact, (oslo,))


@pytest.mark.parametrize(
    "bygone",
    [
        {"key": "employer"},
        {"subject": "Bob"},
        {"true_from": LAST_YEAR, "said_at": LAST_YEAR},
        {"true_from": NOON, "said_at": NOON},
    ],
    ids=["another slot", "another person", "an older one", "one as old"],
)
def test_no_other_value_overtakes_it(bygone: dict[str, Any]) -> None:
    assert weighed(matched(**HOME), gone(**bygone)) is None


def test_what_was_said_again_after_it_overtakes_it() -> None:
    assert weighed(matched(**HOME), gone(true_from=LAST_YEAR)) is not None


def test_what_had_ended_before_it_was_said_says_nothing_about_it() -> None:
    since_long = matched(**HOME, event_time=LAST_YEAR)
    oslo = {"true_from": LAST_YEAR + DAY, "said_at": LAST_YEAR + DAY}
    assert weighed(since_long, gone(**oslo, true_to=NOON)) is None
    assert weighed(since_long, gone(**oslo, true_to=NOON + DAY)) is not None


def test_a_change_is_news_even_if_it_began_before_the_words_that_it_ends() -> None:
    oslo = gone(true_from=LAST_YEAR + DAY, said_at=LAST_YEAR + DAY)
    moved = matched(**HOME, event_time=LAST_YEAR, action_hint="update")
    assert weighed(moved, oslo) is None


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
def test_only_what_is_the_one_value_of_its_key_is_overtaken(fields: dict[str, Any], *, is_history: bool) -> None:
    fact = matched(**HOME | fields)
    weight = weighed(fact, gone(key=fact.fact.key or "home_city"), rules=Rules(single_valued=("locker",)))
    assert (weight is not None) == is_history


def test_what_is_overtaken_is_history_whatever_is_near_it() -> None:
    oslo, rome = gone(), known(0.99, **HOME, true_from=NEXT_YEAR)
    (event,) = events([Overtaken(matched(rome, **HOME), (oslo,))], {}, given())
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (oslo.true_from, oslo.fact_id)
    assert (event.decision.by, event.decision.guard, event.decision.model) == ("policy", "late_news", None)
    assert [seen.fact_id for seen in event.decision.candidates] == [rome.fact_id]


def test_it_ended_with_the_next_newer_value_held_or_gone() -> None:
    late, soon = gone(true_from=NOON + 3 * DAY, said_at=NOON + 3 * DAY, true_to=NEXT_YEAR), gone()
    rome = known(**HOME, true_from=NOON + DAY / 2)
    other = known(key="employer", true_from=NOON + DAY / 4)
    older = known(**HOME, true_from=LAST_YEAR, said_at=NOON)
    (event,) = events([Overtaken(matched(**HOME), (late, soon))], {}, given())
    assert (event.ended_at, event.ended_by) == (soon.true_from, soon.fact_id)  # type: ignore[union-attr]  # an addition
    fact = matched(rome, other, older, **HOME, event_time=NOON - DAY)
    (event,) = events([Overtaken(fact, (late, soon))], {}, given())
    assert (event.ended_at, event.ended_by) == (rome.true_from, rome.fact_id)  # type: ignore[union-attr]  # as above


# What became true again


@pytest.mark.parametrize("verdict", ["KEEP", "MERGE"])
def test_nothing_joins_a_fact_across_the_time_of_another(verdict: Verdict) -> None:
    rome = known(true_from=NEXT_YEAR)
    gap = given(chains={rome.fact_id: (LAST_YEAR, NOON + DAY, NEXT_YEAR)})
    event = decide(matched(rome), judged(verdict, rome), gap)
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (NOON + DAY, rome.fact_id)
    assert (event.decision.by, event.decision.guard, event.decision.verdict) == ("policy", "late_news", verdict)
    assert [stood.fact_id for stood in event.decision.before] == [rome.fact_id]


def test_nor_do_equal_words() -> None:
    rome = known(true_from=NEXT_YEAR)
    weight = Duplicate(matched(rome, text=rome.text), rome, "hash")
    (event,) = events([weight], {}, given(chains={rome.fact_id: (NOON + DAY, NEXT_YEAR)}))
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (NOON + DAY, rome.fact_id)


@pytest.mark.parametrize("chain", [(), (LAST_YEAR, NEXT_YEAR), (NOON, NEXT_YEAR)])
def test_without_a_gap_it_is_said_again(chain: tuple[datetime, ...]) -> None:
    rome = known(true_from=NEXT_YEAR)
    circumstances = given(chains={rome.fact_id: chain})
    assert isinstance(decide(matched(rome), judged("KEEP", rome), circumstances), FactConfirmed)
    assert isinstance(decide(matched(rome), judged("MERGE", rome), circumstances), FactsMerged)
    (event,) = events([Duplicate(matched(rome), rome, "threshold")], {}, circumstances)
    assert isinstance(event, FactSkipped)


def test_who_says_since_when_it_is_so_today_says_it_again() -> None:
    rome = known(true_from=NOON - DAY)
    circumstances = given(chains={rome.fact_id: (NOON - 2 * DAY, NOON - DAY)})
    event = decide(matched(rome, event_time=LAST_YEAR), judged("KEEP", rome), circumstances)
    assert isinstance(event, FactConfirmed)


# An end that was announced


@pytest.mark.parametrize(("verdict", "kind"), [("EXTEND", FactExtended), ("SIMILAR", FactsRelated)])
def test_what_is_older_in_its_slot_ends_with_what_has_its_end_announced(verdict: Verdict, kind: Any) -> None:
    acme = known(**HOME, true_from=NOON + DAY, true_to=NEXT_YEAR)
    event = decide(matched(acme, **HOME), judged(verdict, acme))
    assert isinstance(event, kind)
    assert event.fact.valid_until == NEXT_YEAR
    assert decide(matched(acme, **HOME, valid_until=NOON + DAY), judged(verdict, acme)).fact.valid_until == NOON + DAY


@pytest.mark.parametrize(
    "fields",
    [{"key": "employer"}, {"true_from": LAST_YEAR, "said_at": LAST_YEAR}, {"true_to": None}],
    ids=["another slot", "what is newer", "no end"],
)
def test_nothing_else_ends_with_it(fields: dict[str, Any]) -> None:
    acme = known(**{**HOME, "true_from": NOON + DAY, "true_to": NEXT_YEAR} | fields)
    assert decide(matched(acme, **HOME), judged("SIMILAR", acme)).fact.valid_until is None


def test_a_saying_of_now_is_late_for_nothing_that_is_over() -> None:
    now = Saying(confidence=0.95, true_from=NEXT_YEAR, said_at=NEXT_YEAR)
    assert overtaken(matched(**HOME), now, [gone()], Rules()) is None
