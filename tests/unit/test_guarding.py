"""Every row of the policy: which verdict is let through against which fact, said how and when."""

from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Guard, Verdict
from mnemolog.streams.stages.guarding import OVERWRITES, Saying, confidence_of, ended_by, guard_of
from tests.verdicts import LAST_YEAR, NEXT_YEAR, NOON, known, matched

SURE = Saying(confidence=0.95, true_from=NOON, said_at=NOON)
UNSURE = Saying(confidence=0.80, true_from=NOON, said_at=NOON)
OLD = Saying(confidence=0.95, true_from=LAST_YEAR - timedelta(days=1), said_at=NOON)
OLD_WORDS = Saying(confidence=0.95, true_from=LAST_YEAR - timedelta(days=1), said_at=LAST_YEAR - timedelta(days=1))
WEEKEND = Saying(confidence=0.95, true_from=LAST_YEAR - timedelta(days=3), said_at=NOON, revises=True)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ENDING: tuple[Verdict, ...] = tuple(OVERWRITES)


def rows() -> list[tuple[str, Verdict, dict[str, Any], Saying, Rules, Guard | None]]:
    plain: dict[str, Any] = {"confidence": 0.95}
    human = {"authority": "human"}
    health = {"category": "health", "confidence": 0.5}
    return [
        *((f"{verdict} of a plain fact", verdict, {"confidence": 0.89}, UNSURE, Rules(), None) for verdict in VERDICTS),
        ("a denial of a sure fact", "CONTRADICT", plain, SURE, Rules(), "high_confidence"),
        ("of a fact at the bound", "CONTRADICT", {"confidence": 0.90}, SURE, Rules(), "high_confidence"),
        ("under another bound", "CONTRADICT", plain, SURE, Rules(confirm_below=0.99), None),
        ("an end of a sure fact", "REPLACE", plain, UNSURE, Rules(), None),
        *((f"{verdict} of health", verdict, health, UNSURE, Rules(), "high_risk") for verdict in ENDING),
        *((f"{verdict} of health, surely", verdict, health, SURE, Rules(), None) for verdict in ENDING),
        ("of a risky key", "REPLACE", {"key": "iban"}, UNSURE, Rules(high_risk=("iban",)), "high_risk"),
        ("of health where it is no risk", "REPLACE", health, UNSURE, Rules(high_risk=()), None),
        *((f"{verdict} beside health", verdict, health, UNSURE, Rules(), None) for verdict in ("ADD", "KEEP")),
        *((f"{verdict} of a human's word", verdict, human, SURE, Rules(), "human_word") for verdict in ENDING),
        ("a confirmation of a human's word", "KEEP", human, SURE, Rules(), None),
        ("a detail to a human's word", "EXTEND", human, SURE, Rules(), None),
        *(
            (f"late {verdict}", verdict, plain, OLD, Rules(), "late_news")
            for verdict in ("REPLACE", "RETRACT", "EXPIRE")
        ),
        ("late words of denial", "CONTRADICT", plain, OLD_WORDS, Rules(), "late_news"),
        ("a new denial about old times", "CONTRADICT", {"confidence": 0.5}, OLD, Rules(), None),
        *(
            (
                f"{verdict} that began before the old was said",
                verdict,
                plain | {"said_at": LAST_YEAR},
                WEEKEND,
                Rules(),
                None,
            )
            for verdict in ("REPLACE", "RETRACT", "EXPIRE")
        ),
        (
            "a change before one that is told with its time",
            "REPLACE",
            plain | {"said_at": LAST_YEAR, "event_time": LAST_YEAR},
            WEEKEND,
            Rules(),
            "late_news",
        ),
        ("said before the old was said again", "REPLACE", plain | {"said_at": NEXT_YEAR}, SURE, Rules(), "late_news"),
        ("a late merge", "MERGE", plain, OLD, Rules(), None),
        ("late news about a human's word", "REPLACE", human, OLD, Rules(), "late_news"),
        *((f"late {verdict}, side by side", verdict, plain, OLD, Rules(), None) for verdict in ("ADD", "SIMILAR")),
        *(
            (f"{verdict} where all is added", verdict, plain, SURE, Rules(add_only=True), "add_only")
            for verdict in VERDICTS
        ),
    ]


@pytest.mark.parametrize(
    ("verdict", "target", "saying", "rules", "guard"), [pytest.param(*row[1:], id=row[0]) for row in rows()]
)
def test_a_row_of_the_policy(
    verdict: Verdict, target: dict[str, Any], saying: Saying, rules: Rules, guard: Guard | None
) -> None:
    assert guard_of(verdict, [known(**target)], saying, rules) == guard


@pytest.mark.parametrize("verdict", ENDING)
def test_nothing_guards_what_is_pending(verdict: Verdict) -> None:
    pending = known(category="health", authority="human", confidence=1.0, status="pending_confirmation")
    assert guard_of(verdict, [pending], UNSURE, Rules()) is None


@pytest.mark.parametrize("verdict", ENDING)
def test_one_guarded_target_holds_all_back(verdict: Verdict) -> None:
    assert guard_of(verdict, [known(), known(authority="human")], SURE, Rules()) == "human_word"


@given(
    st.sampled_from(VERDICTS),
    st.lists(st.sampled_from([LAST_YEAR, NOON, NEXT_YEAR]), min_size=1, max_size=3),
    st.sampled_from([LAST_YEAR, NOON, NEXT_YEAR]),
)
def test_late_news_is_never_let_through_to_end_a_newer_fact(verdict: Verdict, began: list[Any], true_from: Any) -> None:
    targets = [known(true_from=moment, confidence=0.1) for moment in began]
    saying = Saying(confidence=0.95, true_from=true_from, said_at=true_from)
    guard = guard_of(verdict, targets, saying, Rules())
    late = verdict in OVERWRITES and verdict != "MERGE" and any(true_from < moment for moment in began)
    assert (guard == "late_news") == late


@pytest.mark.parametrize(
    ("certainty", "preset", "confidence"),
    [
        ("explicit", "standard", 0.95),
        ("strong", "standard", 0.80),
        ("weak", "standard", 0.60),
        ("speculation", "standard", 0.40),
        ("explicit", "cautious", 0.40),
    ],
)
def test_a_fact_begins_as_sure_as_it_was_said(certainty: str, preset: Any, confidence: float) -> None:
    assert confidence_of(matched(certainty=certainty).fact, Rules(confidence=preset)) == confidence


def test_history_ends_at_the_next_newer_beginning_that_is_known() -> None:
    rome = known(true_from=NEXT_YEAR)
    chains = {rome.fact_id: (LAST_YEAR, NOON, NEXT_YEAR)}
    day = timedelta(days=1)
    assert ended_by([rome], LAST_YEAR - day, chains) == (LAST_YEAR, rome.fact_id)
    assert ended_by([rome], LAST_YEAR, chains) == (NOON, rome.fact_id)
    assert ended_by([rome], NOON, chains) == (NEXT_YEAR, rome.fact_id)
    assert ended_by([rome], LAST_YEAR, {}) == (NEXT_YEAR, rome.fact_id)
    earlier = known(true_from=NOON)
    assert ended_by([rome, earlier], LAST_YEAR, {}) == (NOON, earlier.fact_id)


def test_what_was_said_again_ends_what_was_said_in_between() -> None:
    berlin = known(true_from=LAST_YEAR, said_at=NEXT_YEAR)
    assert ended_by([berlin], NOON, {}) == (NEXT_YEAR, berlin.fact_id)


@pytest.mark.parametrize("verdict", ["RETRACT", "CONTRADICT", "REPLACE"])
def test_a_plan_can_be_called_off_before_its_day(verdict: Verdict) -> None:
    plan = known(text="Mira moves to Paris.", true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    called_off = Saying(confidence=0.95, true_from=NOON, said_at=NOON, revises=True)
    assert guard_of(verdict, [plan], called_off, Rules()) is None


def test_what_does_not_speak_of_a_change_leaves_a_plan_alone() -> None:
    plan = known(text="Mira moves to Paris.", true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    assert guard_of("REPLACE", [plan], SURE, Rules()) == "late_news"
