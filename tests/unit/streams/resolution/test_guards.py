"""Every row of the policy: which verdict is let through against which fact, said how and when."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Verdict
from mnemolog.streams.resolution.guards import (
    Cleared,
    StatementContext,
    clear,
    next_version_start,
    statement_confidence,
)
from tests.support.builders.decisions import LAST_YEAR, NEXT_YEAR, TODAY, known_fact, matched_fact

STATED, CHANGE = (matched_fact(action_hint=hint).fact for hint in ("new", "update"))
SURE = StatementContext(fact=STATED, confidence=0.95, true_from=TODAY, said_at=TODAY)
UNSURE = StatementContext(fact=STATED, confidence=0.80, true_from=TODAY, said_at=TODAY)
GUESS = StatementContext(fact=STATED, confidence=0.40, true_from=TODAY, said_at=TODAY)
OLD = StatementContext(fact=STATED, confidence=0.95, true_from=LAST_YEAR - timedelta(days=1), said_at=TODAY)
OLD_WORDS = StatementContext(
    fact=STATED, confidence=0.95, true_from=LAST_YEAR - timedelta(days=1), said_at=LAST_YEAR - timedelta(days=1)
)
WEEKEND = StatementContext(fact=CHANGE, confidence=0.95, true_from=LAST_YEAR - timedelta(days=3), said_at=TODAY)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ENDING: tuple[Verdict, ...] = tuple(OVERWRITE_OF_VERDICT)


RULES = EffectivePolicy()


def guard_of(verdict: Verdict, targets: Sequence[Candidate], *of: Any) -> Guard | None:
    cleared = clear(verdict, targets, *of)
    if not isinstance(cleared, Cleared):
        return cleared
    assert cleared.fact_ids == tuple(known.fact_id for known in targets)
    return None


PolicyRow = tuple[str, Verdict, dict[str, Any], StatementContext, EffectivePolicy, Guard | None]


HEALTH_TOO: dict[str, Any] = {"category": "pets", "more_categories": ("sport", "health")}


def rows() -> list[PolicyRow]:
    plain: dict[str, Any] = {"confidence": 0.95}
    human = {"authority": "human"}
    health = {"category": "health", "confidence": 0.5}
    return [
        *((f"{verdict} of a plain fact", verdict, {"confidence": 0.89}, UNSURE, RULES, None) for verdict in VERDICTS),
        ("a sure denial of a sure fact", "CONTRADICT", plain, SURE, RULES, None),
        ("of a sure risky fact", "CONTRADICT", plain | {"category": "health"}, SURE, RULES, "high_confidence"),
        ("of a sure fact that is of health too", "CONTRADICT", plain | HEALTH_TOO, SURE, RULES, "high_confidence"),
        ("of a fact that is of health too", "REPLACE", HEALTH_TOO, UNSURE, RULES, "high_risk"),
        ("of a fact that is of health too, surely", "REPLACE", HEALTH_TOO, SURE, RULES, None),
        ("of a sure fact of a risky key", "CONTRADICT", plain | {"key": "identity"}, SURE, RULES, "high_confidence"),
        ("of a human's word", "CONTRADICT", plain | human, SURE, RULES, "human_word"),
        ("an unsure denial of a sure fact", "CONTRADICT", plain, UNSURE, RULES, "high_confidence"),
        ("of a fact at the bound", "CONTRADICT", {"confidence": 0.90}, UNSURE, RULES, "high_confidence"),
        ("by a statement above another bound", "CONTRADICT", plain, UNSURE, EffectivePolicy(confirm_below=0.8), None),
        ("under another bound", "CONTRADICT", plain, SURE, EffectivePolicy(confirm_below=0.99), None),
        ("an end of a sure fact", "REPLACE", plain, UNSURE, RULES, None),
        *((f"{verdict} of health", verdict, health, UNSURE, RULES, "high_risk") for verdict in ENDING),
        *((f"{verdict} of health, surely", verdict, health, SURE, RULES, None) for verdict in ENDING),
        ("of a risky key", "REPLACE", {"key": "iban"}, UNSURE, EffectivePolicy(high_risk=("iban",)), "high_risk"),
        ("of health where it is no risk", "REPLACE", health, UNSURE, EffectivePolicy(high_risk=()), None),
        *((f"{verdict} beside health", verdict, health, UNSURE, RULES, None) for verdict in ("ADD", "KEEP")),
        *((f"{verdict} of a human's word", verdict, human, SURE, RULES, "human_word") for verdict in ENDING),
        ("a confirmation of a human's word", "KEEP", human, SURE, RULES, None),
        ("a detail to a human's word", "EXTEND", human, SURE, RULES, None),
        *late_rows(plain, human),
        *(
            (f"{verdict} where all is added", verdict, plain, SURE, EffectivePolicy(add_only=True), "add_only")
            for verdict in VERDICTS
        ),
    ]


def late_rows(plain: dict[str, Any], human: dict[str, Any]) -> list[PolicyRow]:
    said_last_year = plain | {"said_at": LAST_YEAR}
    return [
        *((f"late {verdict}", verdict, plain, OLD, RULES, "late_news") for verdict in ("REPLACE", "RETRACT", "EXPIRE")),
        ("late words of denial", "CONTRADICT", plain, OLD_WORDS, RULES, "late_news"),
        ("a new denial about old times", "CONTRADICT", {"confidence": 0.5}, OLD, RULES, None),
        *(
            (f"{verdict} that began before the old was said", verdict, said_last_year, WEEKEND, RULES, None)
            for verdict in ("REPLACE", "RETRACT", "EXPIRE")
        ),
        (
            "before a fact with its time",
            "REPLACE",
            said_last_year | {"event_time": LAST_YEAR},
            WEEKEND,
            RULES,
            "late_news",
        ),
        ("said before the old was said again", "REPLACE", plain | {"said_at": NEXT_YEAR}, SURE, RULES, "late_news"),
        ("a late merge", "MERGE", plain, OLD, RULES, None),
        ("late news about a human's word", "REPLACE", human, OLD, RULES, "late_news"),
        *((f"late {verdict}, side by side", verdict, plain, OLD, RULES, None) for verdict in ("ADD", "SIMILAR")),
    ]


def guesses() -> list[PolicyRow]:
    plain: dict[str, Any] = {"confidence": 0.95}
    return [
        *(
            (f"a guess at a {verdict} of a sure fact", verdict, plain, GUESS, RULES, "low_confidence")
            for verdict in ("REPLACE", "RETRACT", "EXPIRE")
        ),
        ("a guess that denies a sure fact", "CONTRADICT", plain, GUESS, RULES, "high_confidence"),
        ("a guess at more about a sure fact", "MERGE", plain, GUESS, RULES, None),
        ("a guess against a fact below the bound", "REPLACE", {"confidence": 0.89}, GUESS, RULES, None),
        ("a guess against a fact at the bound", "REPLACE", {"confidence": 0.90}, GUESS, RULES, "low_confidence"),
        ("a guess against a sure risky fact", "REPLACE", plain | {"category": "health"}, GUESS, RULES, "high_risk"),
        ("a guess where no statement is doubted", "REPLACE", plain, GUESS, EffectivePolicy(confirm_below=0), None),
        *((f"a guess, side by side: {verdict}", verdict, plain, GUESS, RULES, None) for verdict in ("ADD", "SIMILAR")),
    ]


@pytest.mark.parametrize(
    ("verdict", "target", "context", "rules", "guard"),
    [pytest.param(*row[1:], id=row[0]) for row in [*rows(), *guesses()]],
)
def test_a_row_of_the_policy(
    verdict: Verdict, target: dict[str, Any], context: StatementContext, rules: EffectivePolicy, guard: Guard | None
) -> None:
    assert guard_of(verdict, [known_fact(**target)], context, rules) == guard


@pytest.mark.parametrize("verdict", ENDING)
def test_of_what_is_pending_only_a_human_s_word_is_guarded(verdict: Verdict) -> None:
    pending = known_fact(category="health", confidence=1.0, status="pending_confirmation")
    assert guard_of(verdict, [pending], UNSURE, RULES) is None
    human = pending.model_copy(update={"authority": "human"})
    assert guard_of(verdict, [human], SURE, RULES) == "human_word"
    assert guard_of(verdict, [known_fact(), human], SURE, RULES) == "human_word"
    assert guard_of(verdict, [human], SURE, EffectivePolicy(), {human.fact_id}) is None


@given(
    st.sampled_from(VERDICTS),
    st.lists(st.sampled_from([LAST_YEAR, TODAY, NEXT_YEAR]), min_size=1, max_size=3),
    st.sampled_from([LAST_YEAR, TODAY, NEXT_YEAR]),
)
def test_late_news_is_never_let_through_to_end_a_newer_fact(verdict: Verdict, began: list[Any], true_from: Any) -> None:
    targets = [known_fact(true_from=moment, confidence=0.1) for moment in began]
    context = StatementContext(fact=STATED, confidence=0.95, true_from=true_from, said_at=true_from)
    guard = guard_of(verdict, targets, context, RULES)
    late = verdict in OVERWRITE_OF_VERDICT and verdict != "MERGE" and any(true_from < moment for moment in began)
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
    assert statement_confidence(matched_fact(certainty=certainty), EffectivePolicy(confidence=preset)) == confidence


def test_history_ends_at_the_next_newer_beginning_that_is_known() -> None:
    rome = known_fact(true_from=NEXT_YEAR)
    chains = {rome.fact_id: (LAST_YEAR, TODAY, NEXT_YEAR)}
    day = timedelta(days=1)
    assert next_version_start([rome], LAST_YEAR - day, chains) == (LAST_YEAR, rome.fact_id)
    assert next_version_start([rome], LAST_YEAR, chains) == (TODAY, rome.fact_id)
    assert next_version_start([rome], TODAY, chains) == (NEXT_YEAR, rome.fact_id)
    assert next_version_start([rome], LAST_YEAR, {}) == (NEXT_YEAR, rome.fact_id)
    earlier = known_fact(true_from=TODAY)
    assert next_version_start([rome, earlier], LAST_YEAR, {}) == (TODAY, earlier.fact_id)
    said_again = known_fact(true_from=LAST_YEAR, said_at=NEXT_YEAR)
    assert next_version_start([said_again], TODAY, {}) == (NEXT_YEAR, said_again.fact_id)
    plan = known_fact(true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=TODAY)
    assert next_version_start([plan], LAST_YEAR, {}) == (NEXT_YEAR, plan.fact_id)


@pytest.mark.parametrize("verdict", ["RETRACT", "CONTRADICT", "REPLACE"])
def test_only_what_speaks_of_a_change_calls_a_plan_off_before_its_day(verdict: Verdict) -> None:
    plan = known_fact(text="Mira moves to Paris.", true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    assert guard_of(verdict, [plan], replace(SURE, fact=CHANGE), RULES) is None
    assert guard_of("REPLACE", [plan], SURE, RULES) == "late_news"
