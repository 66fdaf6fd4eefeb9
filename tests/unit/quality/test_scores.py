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


MOVED, OLD_AND_NEW, HELD_BACK = [HOME_ENDED, DOG_ROW, new()], [HOME_ROW, DOG_ROW, new()], [HOME_ROW, DOG_ROW, WAITING]
MOON = added("Alice lives on the moon.")
LATE = new(status="superseded", ending=True)
KEPT = MOVE | {"harmful": [], "old": "kept"}


def scored(
    given: dict[str, Any], turn: Commit, after: Sequence[Row], *, known: Sequence[Commit] = (HOME, DOG)
) -> Score:
    before = [one for one, source in ((HOME_ROW, HOME), (DOG_ROW, DOG)) if source in known]
    return score(Case.model_validate(given), CaseResult(known=known, turn=turn, before=before, after=after))


# What is said of a case, what its turn did, all facts after it, and its outcome with its figures.
TABLE: dict[str, tuple[dict[str, Any], list[Any], list[Row], str]] = {
    "a replacement is right": (MOVE, [TO_LYON], MOVED, "REPLACE right overwrites"),
    "news without their word are lost": (MOVE | {"says": ["Oslo"]}, [TO_LYON], MOVED, "REPLACE overwrites news_lost"),
    "without words to look for any fact has the news": (
        MOVE | {"says": []},
        [TO_LYON],
        MOVED,
        "REPLACE right overwrites",
    ),
    "no fact has the news": (MOVE | {"says": []}, [TO_LYON], [HOME_ENDED, DOG_ROW], "REPLACE overwrites news_lost"),
    "beside a new fact the old one is stale": (MOVE, [IN_LYON], OLD_AND_NEW, "ADD stale"),
    "held until a later end": (MOVE, [TO_LYON], [HOME_ENDING, DOG_ROW, new()], "REPLACE overwrites stale"),
    "the end of another fact is wrong whatever else is right": (
        *(MOVE, [replaced(LYON, HOME_ID, DOG_ID)], [HOME_ENDED, DOG_ENDED, new()]),
        "REPLACE harmful overwrites=2 wrong",
    ),
    "an end in a harmful way is wrong": (
        *(MOVE, [contradicted(LYON, HOME_ID)], [HOME_GONE, DOG_ROW, new()]),
        "CONTRADICT harmful overwrites wrong",
    ),
    "the end of what is to be kept is wrong": (
        *(KEPT | {"right": ["EXTEND"]}, [TO_LYON], MOVED),
        "REPLACE harmful overwrites wrong",
    ),
    "a merge of what is to be kept": (KEPT | {"right": ["EXTEND"]}, [merged(LYON, HOME_ID)], MOVED, "MERGE overwrites"),
    "an announced end of what is to be kept is right while that stands": (
        *(KEPT | {"right": ["REPLACE", "ADD"]}, [TO_LYON], [HOME_ENDING, DOG_ROW, new()]),
        "REPLACE right overwrites",
    ),
    "and wrong once that has gone": (
        *(KEPT | {"right": ["REPLACE", "ADD"]}, [TO_LYON], MOVED),
        "REPLACE harmful overwrites wrong",
    ),
    "an announced end that is not right is wrong": (
        *(KEPT | {"right": ["ADD"]}, [TO_LYON], [HOME_ENDING, DOG_ROW, new()]),
        "REPLACE harmful overwrites wrong",
    ),
    "a repetition beside the known fact": (REPETITION, [IN_LYON], OLD_AND_NEW, "ADD duplicate"),
    "a repetition that is counted and stored as well": (
        *(REPETITION, [confirmed(HOME_ID), IN_LYON], [HOME_ROW, DOG_ROW, new(place=1)]),
        "KEEP duplicate",
    ),
    "a repetition that is counted": (REPETITION, [confirmed(HOME_ID)], [HOME_ROW, DOG_ROW], "KEEP right"),
    "a repetition that is skipped": (REPETITION, [skipped(HOME_ID)], [HOME_ROW, DOG_ROW], "SKIP right"),
    "news that are counted for another fact": (
        *(ADDITION | {"harmful": ["KEEP", "SKIP"]}, [confirmed(DOG_ID)], [HOME_ROW, DOG_ROW]),
        "KEEP harmful news_lost",
    ),
    "a fact from a joke": (JOKE, [MOON], OLD_AND_NEW, "ADD unfounded"),
    "a fact from a joke whose outcome is right": (
        JOKE | {"right": ["NONE", "ADD"]},
        [MOON],
        OLD_AND_NEW,
        "ADD unfounded",
    ),
    "nothing from a joke": (JOKE, [], [HOME_ROW, DOG_ROW], "NONE right"),
    "what could not be decided": (MOVE, [added(LYON, unresolved=True)], OLD_AND_NEW, "UNRESOLVED stale"),
    "held back where it would have been right": (MOVE, [HELD], HELD_BACK, "PENDING right guarded held_back"),
    "held back where it would have been wrong": (ADDITION, [HELD], HELD_BACK, "PENDING held_back held_wrong"),
    "held back where an announced end would be right": (
        *(KEPT | {"right": ["REPLACE", "ADD"]}, [HELD], HELD_BACK),
        "PENDING right guarded held_back",
    ),
    "held back where the case names that": (
        *(KEPT | {"right": ["ADD", "PENDING"], "old": "either"}, [HELD], HELD_BACK),
        "PENDING right held_back",
    ),
    "the end weighs most whatever else was said": (
        MOVE | {"right": ["RETRACT"], "harmful": [], "new": "either", "says": []},
        [added("Alice is sad."), extended("The dog too.", DOG_ID), retracted(HOME_ID)],
        MOVED,
        "RETRACT right overwrites",
    ),
    "late news are kept as history": (ADDITION, [IN_LYON], [HOME_ROW, DOG_ROW, LATE], "ADD right"),
    "news that were archived": (ADDITION, [IN_LYON], [HOME_ROW, DOG_ROW, new(status="archived")], "ADD news_lost"),
    "events among the facts of one turn": (
        *(ADDITION, [IN_LYON, replaced(LYON, OWN_ID), confirmed(OWN_ID)], [HOME_ROW, DOG_ROW, new(place=1)]),
        "ADD right",
    ),
    "a repetition of another fact weighs less": (ADDITION, [IN_LYON, confirmed(DOG_ID)], OLD_AND_NEW, "ADD right"),
    "a repetition of what is concerned weighs more": (ADDITION, [IN_LYON, confirmed(HOME_ID)], OLD_AND_NEW, "KEEP"),
}


@pytest.mark.parametrize(("given", "drafts", "after", "expected"), TABLE.values(), ids=TABLE)
def test_a_case_has_the_figures_of_what_its_turn_did(
    given: dict[str, Any], drafts: list[Any], after: list[Row], expected: str
) -> None:
    """A figure is 1, or true, unless it is named with a number."""
    actual, *figures = expected.split()
    named = dict(figure.partition("=")[::2] for figure in figures)
    fields = {name: number or Score.model_fields[name].annotation is bool or 1 for name, number in named.items()}
    found = scored(given, commit("turn", *drafts), after)
    assert found == Score.model_validate({"id": "move-99", "actual": actual, "right": False} | fields)


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
