"""The definitions of the rates, each on a case that was made up for it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.commit import Commit
from tests.quality.cases import Case
from tests.quality.report import confusion
from tests.quality.runs import Share
from tests.quality.scores import CaseResult, Row, Score, ScoredCase, compute_rates, score
from tests.support.builders.commits import (
    START_TIME,
    added,
    commit,
    confirmed,
    contradicted,
    extended,
    fact_id_at,
    merged,
    pending,
    replaced,
    retracted,
    skipped,
)

HOME = commit("known-0", added("Alice lives in Bern."))
DOG = commit("known-1", added("Alice has a dog."))
HOME_ID, DOG_ID = fact_id_at(HOME), fact_id_at(DOG)
OWN_ID = fact_id_at(commit("turn"))
MOVE: dict[str, Any] = {
    "id": "move-99",
    "family": "move",
    "language": "en",
    "split": "dev",
    "speaker": "Alice",
    "known": [{"text": "I live in Bern.", "at": START_TIME}, {"text": "I have a dog.", "at": START_TIME}],
    "concerns": [0],
    "turn": {"text": "I live in Lyon now.", "at": START_TIME + timedelta(days=1)},
    "right": ["REPLACE"],
    "harmful": ["KEEP", "SKIP", "MERGE", "CONTRADICT"],
    "old": "ended",
    "new": "kept",
    "says": ["Lyon"],
    "why": "a move",
}
REPETITION = MOVE | {"right": ["KEEP", "SKIP"], "harmful": [], "old": "kept", "new": "absent", "says": []}
JOKE = MOVE | {"right": ["NONE"], "harmful": ["REPLACE"], "old": "kept", "new": "absent", "says": []}
ADDITION = MOVE | {"right": ["ADD"], "harmful": ["REPLACE"], "old": "kept"}


def row(fact_id: UUID, source_id: str, text: str, status: str = "active", *, ending: bool = False) -> Row:
    return Row(fact_id, source_id, text, status, ending)


def new(text: str = "Alice lives in Lyon.", status: str = "active", *, ending: bool = False, place: int = 0) -> Row:
    """What the turn brought."""
    return row(fact_id_at(commit("turn"), place), "turn", text, status, ending=ending)


HOME_ROW = row(HOME_ID, "known-0", "Alice lives in Bern.")
DOG_ROW = row(DOG_ID, "known-1", "Alice has a dog.")
HOME_ENDED = row(HOME_ID, "known-0", "Alice lives in Bern.", "superseded", ending=True)
HOME_ENDING = row(HOME_ID, "known-0", "Alice lives in Bern.", ending=True)
HOME_GONE = row(HOME_ID, "known-0", "Alice lives in Bern.", "archived")
DOG_ENDED = row(DOG_ID, "known-1", "Alice has a dog.", "superseded", ending=True)
WAITING = new(status="pending_confirmation")
LYON = "Alice lives in Lyon."
IN_LYON, TO_LYON = added(LYON), replaced(LYON, HOME_ID)
HELD = pending(LYON, HOME_ID, action="replace")


def scored(
    given: dict[str, Any], turn: Commit, after: Sequence[Row], *, known: Sequence[Commit] = (HOME, DOG)
) -> Score:
    before = [one for one, source in ((HOME_ROW, HOME), (DOG_ROW, DOG)) if source in known]
    return score(Case.model_validate(given), CaseResult(known=known, turn=turn, before=before, after=after))


@pytest.mark.parametrize(
    ("given", "drafts", "after", "expected"),
    [
        pytest.param(
            MOVE,
            [TO_LYON],
            [HOME_ENDED, DOG_ROW, new()],
            {"actual": "REPLACE", "right": True, "overwrites": 1},
            id="a replacement is right",
        ),
        pytest.param(
            MOVE,
            [replaced("Alice has moved.", HOME_ID)],
            [HOME_ENDED, DOG_ROW, new("Alice has moved.")],
            {"actual": "REPLACE", "overwrites": 1, "news_lost": True},
            id="news without their word are lost",
        ),
        pytest.param(
            MOVE | {"says": []},
            [replaced("Alice has moved.", HOME_ID)],
            [HOME_ENDED, DOG_ROW, new("Alice has moved.")],
            {"actual": "REPLACE", "right": True, "overwrites": 1},
            id="where no words are looked for any fact has the news",
        ),
        pytest.param(
            MOVE | {"says": []},
            [replaced("Alice has moved.", HOME_ID)],
            [HOME_ENDED, DOG_ROW],
            {"actual": "REPLACE", "overwrites": 1, "news_lost": True},
            id="news without any fact are lost",
        ),
        pytest.param(
            MOVE,
            [IN_LYON],
            [HOME_ROW, DOG_ROW, new()],
            {"actual": "ADD", "stale": True},
            id="what was added beside leaves the old fact stale",
        ),
        pytest.param(
            MOVE,
            [TO_LYON],
            [HOME_ENDING, DOG_ROW, new()],
            {"actual": "REPLACE", "overwrites": 1, "stale": True},
            id="what ended is stale while it is held until a later end",
        ),
        pytest.param(
            MOVE,
            [replaced(LYON, HOME_ID, DOG_ID)],
            [HOME_ENDED, DOG_ENDED, new()],
            {"actual": "REPLACE", "harmful": True, "overwrites": 2, "wrong": 1},
            id="ending another fact is wrong whatever else is right",
        ),
        pytest.param(
            MOVE,
            [contradicted(LYON, HOME_ID)],
            [HOME_GONE, DOG_ROW, new()],
            {"actual": "CONTRADICT", "harmful": True, "overwrites": 1, "wrong": 1},
            id="ending a fact in a harmful way is wrong",
        ),
        pytest.param(
            MOVE | {"right": ["EXTEND"], "harmful": [], "old": "kept"},
            [TO_LYON],
            [HOME_ENDED, DOG_ROW, new()],
            {"actual": "REPLACE", "harmful": True, "overwrites": 1, "wrong": 1},
            id="ending a fact that is to be kept is wrong",
        ),
        pytest.param(
            MOVE | {"right": ["EXTEND"], "harmful": [], "old": "kept"},
            [merged(LYON, HOME_ID)],
            [HOME_ENDED, DOG_ROW, new()],
            {"actual": "MERGE", "overwrites": 1},
            id="merging a fact that is to be kept is not wrong",
        ),
        pytest.param(
            MOVE | {"right": ["REPLACE", "ADD"], "harmful": [], "old": "kept"},
            [TO_LYON],
            [HOME_ENDING, DOG_ROW, new()],
            {"actual": "REPLACE", "right": True, "overwrites": 1},
            id="an announced end of what is to be kept is right while that stands",
        ),
        pytest.param(
            MOVE | {"right": ["REPLACE", "ADD"], "harmful": [], "old": "kept"},
            [TO_LYON],
            [HOME_ENDED, DOG_ROW, new()],
            {"actual": "REPLACE", "harmful": True, "overwrites": 1, "wrong": 1},
            id="an end of what is to be kept is wrong once that has gone",
        ),
        pytest.param(
            MOVE | {"right": ["ADD"], "harmful": [], "old": "kept"},
            [TO_LYON],
            [HOME_ENDING, DOG_ROW, new()],
            {"actual": "REPLACE", "harmful": True, "overwrites": 1, "wrong": 1},
            id="an announced end that is not right is wrong",
        ),
        pytest.param(
            REPETITION,
            [IN_LYON],
            [HOME_ROW, DOG_ROW, new()],
            {"actual": "ADD", "duplicate": True},
            id="a repetition beside the known fact is a duplicate",
        ),
        pytest.param(
            REPETITION,
            [confirmed(HOME_ID), IN_LYON],
            [HOME_ROW, DOG_ROW, new(place=1)],
            {"actual": "KEEP", "duplicate": True},
            id="a repetition that is counted and stored as well is a duplicate",
        ),
        pytest.param(
            REPETITION,
            [confirmed(HOME_ID)],
            [HOME_ROW, DOG_ROW],
            {"actual": "KEEP", "right": True},
            id="a repetition that is counted is right",
        ),
        pytest.param(
            REPETITION,
            [skipped(HOME_ID)],
            [HOME_ROW, DOG_ROW],
            {"actual": "SKIP", "right": True},
            id="a repetition that is skipped is right",
        ),
        pytest.param(
            ADDITION | {"harmful": ["KEEP", "SKIP"]},
            [confirmed(DOG_ID)],
            [HOME_ROW, DOG_ROW],
            {"actual": "KEEP", "harmful": True, "news_lost": True},
            id="news that are counted as a repetition of another fact are harmful",
        ),
        pytest.param(
            JOKE,
            [added("Alice lives on the moon.")],
            [HOME_ROW, DOG_ROW, new("Alice lives on the moon.")],
            {"actual": "ADD", "unfounded": True},
            id="a fact from a joke is unfounded",
        ),
        pytest.param(
            JOKE | {"right": ["NONE", "ADD"]},
            [added("Alice lives on the moon.")],
            [HOME_ROW, DOG_ROW, new("Alice lives on the moon.")],
            {"actual": "ADD", "unfounded": True},
            id="an unfounded fact is not right where its outcome is",
        ),
        pytest.param(
            JOKE, [], [HOME_ROW, DOG_ROW], {"actual": "NONE", "right": True}, id="nothing from a joke is right"
        ),
        pytest.param(
            MOVE,
            [added(LYON, unresolved=True)],
            [HOME_ROW, DOG_ROW, new()],
            {"actual": "UNRESOLVED", "stale": True},
            id="what could not be decided has a word of its own",
        ),
        pytest.param(
            MOVE,
            [HELD],
            [HOME_ROW, DOG_ROW, WAITING],
            {"actual": "PENDING", "right": True, "guarded": True, "held_back": 1},
            id="an overwrite that was held back is right where it would have been",
        ),
        pytest.param(
            ADDITION,
            [HELD],
            [HOME_ROW, DOG_ROW, WAITING],
            {"actual": "PENDING", "held_back": 1, "held_wrong": 1},
            id="a wrong overwrite that was held back does no harm and is not right",
        ),
        pytest.param(
            MOVE | {"right": ["ADD", "PENDING"], "harmful": [], "old": "either"},
            [HELD],
            [HOME_ROW, DOG_ROW, WAITING],
            {"actual": "PENDING", "right": True, "held_back": 1},
            id="pending is right where the case names it",
        ),
        pytest.param(
            MOVE | {"right": ["RETRACT"], "harmful": [], "new": "either", "says": []},
            [added("Alice is sad."), extended("The dog too.", DOG_ID), retracted(HOME_ID)],
            [HOME_ENDED, DOG_ROW, new("Alice is sad.")],
            {"actual": "RETRACT", "right": True, "overwrites": 1},
            id="the end weighs most whatever else was said",
        ),
        pytest.param(
            ADDITION,
            [IN_LYON],
            [HOME_ROW, DOG_ROW, new(status="superseded", ending=True)],
            {"actual": "ADD", "right": True},
            id="late news are kept as history",
        ),
        pytest.param(
            ADDITION,
            [IN_LYON],
            [HOME_ROW, DOG_ROW, new(status="archived")],
            {"actual": "ADD", "news_lost": True},
            id="news that were archived are lost",
        ),
        pytest.param(
            ADDITION,
            [added("Alice lives in Lyons."), replaced(LYON, OWN_ID), confirmed(OWN_ID)],
            [HOME_ROW, DOG_ROW, new(place=1)],
            {"actual": "ADD", "right": True},
            id="events among the facts of one turn count as added",
        ),
        pytest.param(
            ADDITION,
            [IN_LYON, confirmed(DOG_ID)],
            [HOME_ROW, DOG_ROW, new()],
            {"actual": "ADD", "right": True},
            id="a repetition of another fact weighs less than an addition",
        ),
        pytest.param(
            ADDITION,
            [IN_LYON, confirmed(HOME_ID)],
            [HOME_ROW, DOG_ROW, new()],
            {"actual": "KEEP"},
            id="a repetition of what is concerned weighs more than an addition",
        ),
    ],
)
def test_a_case_has_the_figures_of_what_its_turn_did(
    given: dict[str, Any], drafts: list[Any], after: list[Row], expected: dict[str, Any]
) -> None:
    figures = {"id": "move-99", "right": False} | expected
    assert scored(given, commit("turn", *drafts), after) == Score.model_validate(figures)


def test_a_failed_turn_has_an_outcome_of_its_own() -> None:
    turn = commit("turn", outcome="failed", reason="invalid_reply")
    assert scored(MOVE, turn, [HOME_ROW, DOG_ROW]).actual == "FAILED"


@pytest.mark.parametrize("concerns", [[0], [0, 1]])
def test_a_case_whose_known_statement_is_missing_is_never_right(concerns: list[int]) -> None:
    found = scored(JOKE | {"concerns": concerns}, commit("turn"), [DOG_ROW], known=(commit("known-0"), DOG))
    assert (found.actual, found.unmet, found.right) == ("UNMET", True, False)


def test_a_known_statement_that_was_merged_or_repeated_is_met_in_what_stands_for_it() -> None:
    both = commit("known-1", merged("Alice lives in Bern with a dog.", HOME_ID))
    kept = row(fact_id_at(both), "known-1", "Alice lives in Bern with a dog.")
    ended = row(fact_id_at(both), "known-1", kept.text, "superseded", ending=True)
    observed = CaseResult(
        known=(HOME, both),
        turn=commit("turn", replaced(LYON, fact_id_at(both))),
        before=[HOME_ENDED, kept],
        after=[HOME_ENDED, ended, new()],
    )
    assert score(Case.model_validate(MOVE | {"concerns": [0, 1]}), observed).right


def test_rates_are_of_the_cases_that_they_can_happen_in() -> None:
    figures = (
        (MOVE, {"actual": "ADD", "right": False, "stale": True}),
        (REPETITION, {"actual": "REPLACE", "right": False, "overwrites": 2, "wrong": 1}),
        (JOKE, {"actual": "NONE", "right": True}),
        (MOVE, {"actual": "UNMET", "right": False}),
        (REPETITION, {"actual": "UNMET", "right": False}),
    )
    cases = [
        ScoredCase(case=Case.model_validate(given), score=Score.model_validate({"id": "move-99"} | score))
        for given, score in figures
    ]
    made = compute_rates(cases)
    assert (made.right, made.unmet) == (Share(count=1, of=5), Share(count=2, of=5))
    assert (made.wrong_overwrites, made.wrong_overwrite_cases) == (Share(count=1, of=2), Share(count=1, of=5))
    assert (made.lost_updates, made.stale) == (Share(count=1, of=2), Share(count=1, of=1))
    assert (made.news_lost, made.duplicates) == (Share(count=0, of=2), Share(count=0, of=1))
    assert (made.unfounded, made.harmful) == (Share(count=0, of=1), Share(count=0, of=5))
    assert confusion(cases)["KEEP"] == {"REPLACE": 1, "UNMET": 1}
