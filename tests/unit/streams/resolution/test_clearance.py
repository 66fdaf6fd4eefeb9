"""No way to a decision goes round the guards: facts end by what the guards have cleared, and by nothing else."""

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import pytest

from mnemolog import streams
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact, Original, PromotedFrom
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.merges import known_candidate
from mnemolog.streams.resolution import events, guards
from mnemolog.streams.resolution.classify import Conflict, Duplicate, New
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.events import DecisionContext
from tests.support.builders.decisions import (
    NEXT_YEAR,
    TODAY,
    PendingOverwrite,
    decide_all,
    decision_context,
    judgement,
    known_fact,
    llm_decision,
    matched_fact,
)

ENDING = {kind.__name__ for kind in events.EndT.__constraints__}
"""The events that end known facts."""
STREAMS = Path(streams.__file__).parent
DECIDING = [path for folder in ("resolution", "stages") for path in sorted((STREAMS / folder).glob("*.py"))]


def names_called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_every_event_that_ends_known_facts_is_made_of_cleared_facts() -> None:
    overwrites = {one.__name__ for one in get_args(get_args(MemoryEvent)[0]) if "targets" in one.model_fields}
    side_by_side = {"FactExtended", "FactsRelated", "FactPending"}
    assert overwrites - side_by_side - {"FactCorrected"} == ENDING, "a new kind of event: does it end known facts?"
    made = {(path.name, name) for path in DECIDING for name in names_called(path) if name in ENDING}
    # One is made of what `clear_raw` gives, and one ends nothing: all that it would have ended was deleted.
    assert made == {("verdicts.py", "FactRetracted"), ("verdicts.py", "PendingConfirmed")}


def test_only_guards_clear_facts() -> None:
    named = {
        (path.name, node.id if isinstance(node, ast.Name) else node.attr)
        for path in DECIDING
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    assert {file for file, name in named if name == "_KEY"} == {"guards.py"}
    assert {file for file, name in named if name == "clear_own"} == {"events.py"}
    with pytest.raises(TypeError):
        guards.Cleared([uuid4()], key=object())
    cleared = guards.clear(
        "REPLACE", [known_fact()], events.statement_context(matched_fact(), decision_context()), RULES
    )
    assert isinstance(cleared, guards.Cleared)
    assert cleared.part([uuid4()]).fact_ids == ()


RULES = EffectivePolicy()
Way = Callable[[Candidate, Verdict, MatchedFact, DecisionContext], bool]
"""Whether a statement, or a known fact that is asked about, ends a known fact by a verdict of the model."""


def ends(events_made: Sequence[MemoryEvent], known: Candidate) -> bool:
    moved = {one.fact_id for event in events_made for one in event.moved_ends}
    return known.fact_id in moved.union(*(event.ended_ids for event in events_made))


def of_a_turn(known: Candidate, verdict: Verdict, said: MatchedFact, context: DecisionContext) -> bool:
    stated = said.model_copy(update={"candidates": (known,)})
    return ends(decide_all([stated], {0: llm_decision(verdict, known)}, context), known)


def of_a_promotion(known: Candidate, verdict: Verdict, said: MatchedFact, context: DecisionContext) -> bool:
    of = PromotedFrom(fact_id=uuid4(), source_id="t0", said_at=TODAY)
    original = Original(promoted_from=of, true_from=TODAY, confidence=guards.statement_confidence(said, RULES))
    return of_a_turn(known, verdict, said.model_copy(update={"original": original}), context)


def as_unresolved(known: Candidate, verdict: Verdict, said: MatchedFact, context: DecisionContext) -> bool:
    stated = events.statement_context(said, context)
    asked = known_candidate(
        said.fact, fact_id=uuid4(), unresolved=True, confidence=stated.confidence, true_from=TODAY, said_at=TODAY
    )
    question: dict[str, Any] = {
        "place": None,
        "fact": said.fact,
        "known": asked,
        "known_as": "unresolved",
        "candidates": (known,),
    }
    return ends(decide([], [judgement(llm_decision(verdict, known), **question)], context), known)


def as_a_later_end(known: Candidate, verdict: Verdict, said: MatchedFact, context: DecisionContext) -> bool:
    """The known fact is a statement that comes after what ends it."""
    stated = events.statement_context(said, context)
    end = known_candidate(
        said.fact.model_copy(update={"action_hint": "retract"}),
        fact_id=uuid4(),
        confidence=stated.confidence,
        true_from=TODAY,
        said_at=TODAY,
    )
    question: dict[str, Any] = {"fact": end, "known": end, "known_as": "said later", "candidates": (known,)}
    verdict = "RETRACT" if verdict == "REPLACE" else verdict
    answer = judgement(llm_decision(verdict, known), **question)
    made = decide([New(matched_fact(event_time=known.true_from))], [answer], context)
    return len(made) > 1 or bool(made[0].moved_ends)


def of_what_has_ended(known: Candidate, verdict: Verdict, said: MatchedFact, context: DecisionContext) -> bool:
    """A late statement, which may end the fact earlier than was known."""
    ended = known.model_copy(update={"status": "ended", "true_to": NEXT_YEAR})
    return of_a_turn(ended, verdict, said, context)


WAYS: tuple[Way, ...] = (of_a_turn, of_a_promotion, as_unresolved, as_a_later_end, of_what_has_ended)
HEALTH = {"category": "health", "confidence": 0.95}


@pytest.mark.parametrize(
    ("known", "said", "verdict", "rules", "is_let_through"),
    [
        pytest.param({}, {}, "REPLACE", RULES, True, id="no guard"),
        pytest.param({"confidence": 0.95}, {}, "CONTRADICT", RULES, True, id="no guard against a denial"),
        pytest.param({}, {}, "REPLACE", EffectivePolicy(add_only=True), False, id="add_only"),
        pytest.param({"authority": "human"}, {}, "REPLACE", RULES, False, id="human_word"),
        pytest.param({"subject_relation": "other"}, {}, "REPLACE", RULES, False, id="other_subject"),
        pytest.param({"subject_relation": "twin"}, {}, "REPLACE", RULES, False, id="possible twin"),
        pytest.param(HEALTH, {"certainty": "weak"}, "REPLACE", RULES, False, id="high_risk"),
        pytest.param(HEALTH, {}, "CONTRADICT", RULES, False, id="high_confidence, high risk"),
        pytest.param(
            {"confidence": 0.95}, {"certainty": "strong"}, "CONTRADICT", RULES, False, id="high_confidence, unsure"
        ),
        pytest.param({"confidence": 0.95}, {"certainty": "speculation"}, "REPLACE", RULES, False, id="low_confidence"),
        pytest.param({"said_at": NEXT_YEAR, "true_from": NEXT_YEAR}, {}, "REPLACE", RULES, False, id="late_news"),
        pytest.param({}, {"valid_until": NEXT_YEAR}, "CONTRADICT", RULES, False, id="lasting_value"),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_each_guard_stands_on_each_way(  # noqa: PLR0917 -- a row of the table
    way: Way,
    known: dict[str, Any],
    said: dict[str, Any],
    verdict: Verdict,
    rules: EffectivePolicy,
    is_let_through: bool,
) -> None:
    gives_an_end = way is not of_what_has_ended or verdict != "CONTRADICT"
    ended = way(known_fact(**known), verdict, matched_fact(**said), decision_context(rules=rules))
    assert ended == (is_let_through and gives_an_end)


@pytest.mark.parametrize(
    ("known", "held", "is_let_through"),
    [
        pytest.param({}, {}, True, id="no guard"),
        pytest.param({}, {"needs_human": True}, False, id="human_word"),
        pytest.param({}, {"said_at": NEXT_YEAR}, False, id="late_news"),
        pytest.param(
            {"said_at": TODAY, "excerpt": known_fact().text, "confidence": 1.0},
            {"said_at": TODAY},
            False,
            id="a resend",
        ),
    ],
)
@pytest.mark.parametrize("verdict", ["KEEP", "MERGE", None])
def test_each_guard_stands_on_each_confirmation(
    known: dict[str, Any], held: dict[str, Any], is_let_through: bool, verdict: Verdict | None
) -> None:
    pending, target = known_fact(status="pending_confirmation", **known), known_fact(text="Mira lives in Bonn.")
    case = PendingOverwrite(fact_id=pending.fact_id, targets=(target.fact_id,), **held)
    stated = matched_fact(pending, target, text=pending.text)
    answers = [] if verdict is None else [judgement(llm_decision(verdict, pending))]
    found = Conflict(stated, (pending, target)) if verdict else Duplicate(stated, pending)
    assert ends(decide([found], answers, decision_context(case)), target) == is_let_through


@pytest.mark.parametrize(
    ("known", "rules", "is_let_through"),
    [
        pytest.param({}, RULES, True, id="no guard"),
        pytest.param({"authority": "human"}, RULES, False, id="human_word"),
        pytest.param({}, EffectivePolicy(add_only=True), False, id="add_only"),
    ],
)
def test_each_guard_stands_on_a_repetition_that_says_more(
    known: dict[str, Any], rules: EffectivePolicy, is_let_through: bool
) -> None:
    fact = known_fact(**known)
    stated = matched_fact(fact, text=fact.text, key="home_city", value="Berlin")
    made = decide([Duplicate(stated, fact)], [], decision_context(rules=rules))
    assert ends(made, fact) == is_let_through
