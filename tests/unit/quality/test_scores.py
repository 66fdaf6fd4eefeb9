"""The definitions of the rates, each on a case that was made up for it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.commit import Commit
from tests.quality.cases import Case
from tests.quality.rates import ScoredCase, compute_rates, confusion
from tests.quality.scores import CaseResult, Row, Score, score
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


def case(**fields: Any) -> Case:
    """A move, unless said otherwise; the dog is known as well."""
    move = {
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
    return Case.model_validate(move | fields)


REPETITION: dict[str, Any] = {"right": ["KEEP", "SKIP"], "harmful": [], "old": "kept", "new": "absent", "says": []}
JOKE: dict[str, Any] = {"right": ["NONE"], "harmful": ["REPLACE"], "old": "kept", "new": "absent", "says": []}


def row(fact_id: UUID, source_id: str, text: str, *, status: str = "active", ending: bool = False) -> Row:
    return Row(fact_id=fact_id, source_id=source_id, text=text, status=status, ending=ending)


HOME_ROW = row(HOME_ID, "known-0", "Alice lives in Bern.")
DOG_ROW = row(DOG_ID, "known-1", "Alice has a dog.")
HOME_ENDED = row(HOME_ID, "known-0", "Alice lives in Bern.", status="superseded", ending=True)
DOG_ENDED = row(DOG_ID, "known-1", "Alice has a dog.", status="superseded", ending=True)


def scored(given: Case, turn: Commit, *after: Row, known: tuple[Commit, ...] = (HOME, DOG)) -> Score:
    before = [one for one, source in ((HOME_ROW, HOME), (DOG_ROW, DOG)) if source in known]
    return score(given, CaseResult(known=known, turn=turn, before=before, after=[*after]))


def new(turn: Commit, text: str, **fields: Any) -> Row:
    return row(fact_id_at(turn), turn.source_id, text, **fields)


def test_a_replacement_is_right() -> None:
    turn = commit("turn", replaced("Alice lives in Lyon.", HOME_ID))
    found = scored(case(), turn, HOME_ENDED, DOG_ROW, new(turn, "Alice lives in Lyon."))
    assert found == Score(id="move-99", actual="REPLACE", right=True, overwrites=1)


def test_news_without_their_word_are_lost() -> None:
    turn = commit("turn", replaced("Alice has moved.", HOME_ID))
    found = scored(case(), turn, HOME_ENDED, DOG_ROW, new(turn, "Alice has moved."))
    assert (found.news_lost, found.stale, found.right) == (True, False, False)


def test_what_was_added_beside_leaves_the_old_one_stale() -> None:
    turn = commit("turn", added("Alice lives in Lyon."))
    found = scored(case(), turn, HOME_ROW, DOG_ROW, new(turn, "Alice lives in Lyon."))
    assert (found.actual, found.stale, found.news_lost, found.right) == ("ADD", True, False, False)


def test_what_ended_is_stale_while_it_is_held_until_a_later_end() -> None:
    turn = commit("turn", replaced("Alice lives in Lyon.", HOME_ID))
    announced = row(HOME_ID, "known-0", "Alice lives in Bern.", ending=True)
    found = scored(case(), turn, announced, DOG_ROW, new(turn, "Alice lives in Lyon."))
    assert (found.actual, found.stale, found.right) == ("REPLACE", True, False)


def test_news_without_words_to_look_for_are_any_fact() -> None:
    turn = commit("turn", replaced("Alice has moved.", HOME_ID))
    given = case(says=[])
    assert scored(given, turn, HOME_ENDED, DOG_ROW, new(turn, "Alice has moved.")).right
    assert scored(given, turn, HOME_ENDED, DOG_ROW).news_lost


def test_ending_a_fact_that_is_not_concerned_is_wrong() -> None:
    turn = commit("turn", replaced("Alice lives in Lyon.", HOME_ID, DOG_ID))
    found = scored(case(), turn, HOME_ENDED, DOG_ENDED, new(turn, "Alice lives in Lyon."))
    assert (found.overwrites, found.wrong, found.harmful, found.right) == (2, 1, True, False)


def test_ending_a_fact_in_a_harmful_way_is_wrong() -> None:
    turn = commit("turn", contradicted("Alice lives in Lyon.", HOME_ID))
    gone = row(HOME_ID, "known-0", "Alice lives in Bern.", status="archived")
    found = scored(case(), turn, gone, DOG_ROW, new(turn, "Alice lives in Lyon."))
    assert (found.wrong, found.harmful) == (1, True)


def test_ending_a_fact_that_is_to_be_kept_is_wrong_but_for_a_merge() -> None:
    given = case(right=["EXTEND"], harmful=[], old="kept")
    for draft, wrong in ((replaced("Lyon", HOME_ID), 1), (merged("Bern and Lyon", HOME_ID), 0)):
        turn = commit("turn", draft)
        assert scored(given, turn, HOME_ENDED, DOG_ROW, new(turn, "Lyon")).wrong == wrong


def test_an_announced_end_of_what_is_to_be_kept_is_right_only_while_that_stands() -> None:
    given = case(right=["REPLACE", "ADD"], harmful=[], old="kept")
    turn = commit("turn", replaced("Alice lives in Lyon.", HOME_ID))
    announced = row(HOME_ID, "known-0", "Alice lives in Bern.", ending=True)
    assert scored(given, turn, announced, DOG_ROW, new(turn, "Alice lives in Lyon.")).right
    assert scored(given, turn, HOME_ENDED, DOG_ROW, new(turn, "Alice lives in Lyon.")).wrong == 1
    never = case(right=["ADD"], harmful=[], old="kept")
    assert scored(never, turn, announced, DOG_ROW, new(turn, "Alice lives in Lyon.")).wrong == 1


def test_a_repetition_beside_the_known_fact_is_a_duplicate() -> None:
    turn = commit("turn", added("Alice's home is in Bern."))
    found = scored(case(**REPETITION), turn, HOME_ROW, DOG_ROW, new(turn, "Alice's home is in Bern."))
    assert (found.duplicate, found.unfounded, found.right) == (True, False, False)


def test_a_repetition_that_is_counted_and_stored_as_well_is_a_duplicate() -> None:
    turn = commit("turn", confirmed(HOME_ID), added("Alice's home is in Bern."))
    beside = row(fact_id_at(turn, 1), "turn", "Alice's home is in Bern.")
    found = scored(case(**REPETITION), turn, HOME_ROW, DOG_ROW, beside)
    assert (found.actual, found.duplicate, found.right) == ("KEEP", True, False)


@pytest.mark.parametrize(("draft", "word"), [(confirmed(HOME_ID), "KEEP"), (skipped(HOME_ID), "SKIP")])
def test_a_repetition_that_is_counted_is_right(draft: Any, word: str) -> None:
    found = scored(case(**REPETITION), commit("turn", draft), HOME_ROW, DOG_ROW)
    assert (found.actual, found.right) == (word, True)


def test_a_repetition_that_is_counted_for_another_fact_is_not_right_where_that_is_harmful() -> None:
    given = case(right=["ADD"], harmful=["KEEP", "SKIP"], old="kept")
    found = scored(given, commit("turn", confirmed(DOG_ID)), HOME_ROW, DOG_ROW)
    assert (found.actual, found.harmful, found.news_lost, found.right) == ("KEEP", True, True, False)


def test_a_fact_from_a_joke_is_unfounded() -> None:
    turn = commit("turn", added("Alice lives on the moon."))
    found = scored(case(**JOKE), turn, HOME_ROW, DOG_ROW, new(turn, "Alice lives on the moon."))
    assert (found.unfounded, found.duplicate, found.right) == (True, False, False)
    allowed = case(**JOKE | {"right": ["NONE", "ADD"]})
    assert not scored(allowed, turn, HOME_ROW, DOG_ROW, new(turn, "Alice lives on the moon.")).right
    assert scored(case(**JOKE), commit("turn"), HOME_ROW, DOG_ROW).right


def test_a_case_whose_known_statement_is_missing_is_never_right() -> None:
    nothing = commit("known-0")
    found = scored(case(**JOKE), commit("turn"), DOG_ROW, known=(nothing, DOG))
    assert (found.actual, found.unmet, found.right) == ("UNMET", True, False)
    both = scored(case(**JOKE, concerns=[0, 1]), commit("turn"), DOG_ROW, known=(nothing, DOG))
    assert both.unmet


def test_a_known_statement_that_was_merged_or_repeated_is_met_in_what_stands_for_it() -> None:
    both = commit("known-1", merged("Alice lives in Bern with a dog.", HOME_ID))
    given = case(concerns=[0, 1])
    turn = commit("turn", replaced("Alice lives in Lyon.", fact_id_at(both)))
    kept = row(fact_id_at(both), "known-1", "Alice lives in Bern with a dog.")
    ended = row(fact_id_at(both), "known-1", kept.text, status="superseded", ending=True)
    observed = CaseResult(
        known=(HOME, both),
        turn=turn,
        before=[HOME_ENDED, kept],
        after=[HOME_ENDED, ended, new(turn, "Alice lives in Lyon.")],
    )
    assert score(given, observed).right


def test_a_failed_turn_is_told_as_that() -> None:
    turn = commit("turn", outcome="failed", reason="invalid_reply")
    assert scored(case(), turn, HOME_ROW, DOG_ROW).actual == "FAILED"


def test_what_could_not_be_decided_is_told_as_that() -> None:
    turn = commit("turn", added("Alice lives in Lyon.", unresolved=True))
    found = scored(case(), turn, HOME_ROW, DOG_ROW, new(turn, "Alice lives in Lyon."))
    assert (found.actual, found.stale, found.right) == ("UNRESOLVED", True, False)


def test_an_overwrite_that_was_held_back_is_right_where_it_would_have_been() -> None:
    turn = commit("turn", pending("Alice lives in Lyon.", HOME_ID, action="replace"))
    waits = new(turn, "Alice lives in Lyon.", status="pending_confirmation")
    found = scored(case(), turn, HOME_ROW, DOG_ROW, waits)
    assert (found.actual, found.right, found.guarded) == ("PENDING", True, True)
    assert (found.held_back, found.held_wrong, found.overwrites, found.stale) == (1, 0, 0, False)


def test_an_overwrite_that_was_held_back_and_would_be_wrong_does_no_harm_and_is_not_right() -> None:
    given = case(right=["ADD"], harmful=["REPLACE"], old="kept")
    turn = commit("turn", pending("Alice lives in Lyon.", HOME_ID, action="replace"))
    waits = new(turn, "Alice lives in Lyon.", status="pending_confirmation")
    found = scored(given, turn, HOME_ROW, DOG_ROW, waits)
    assert (found.right, found.harmful, found.wrong, found.held_back, found.held_wrong) == (False, False, 0, 1, 1)


def test_pending_is_right_where_the_case_names_it() -> None:
    given = case(right=["ADD", "PENDING"], harmful=[], old="either")
    turn = commit("turn", pending("Alice lives in Lyon.", HOME_ID, action="replace"))
    waits = new(turn, "Alice lives in Lyon.", status="pending_confirmation")
    found = scored(given, turn, HOME_ROW, DOG_ROW, waits)
    assert (found.right, found.guarded) == (True, False)


def test_the_end_weighs_most_whatever_else_was_said() -> None:
    given = case(right=["RETRACT"], harmful=[], new="either", says=[])
    turn = commit("turn", added("Alice is sad."), extended("The dog too.", DOG_ID), retracted(HOME_ID))
    assert scored(given, turn, HOME_ENDED, DOG_ROW, new(turn, "Alice is sad.")).actual == "RETRACT"


def test_late_news_are_kept_as_history() -> None:
    given = case(right=["ADD"], harmful=["REPLACE"], old="kept")
    turn = commit("turn", added("Alice lives in Lyon."))
    history = new(turn, "Alice lives in Lyon.", status="superseded", ending=True)
    assert scored(given, turn, HOME_ROW, DOG_ROW, history).right
    gone = new(turn, "Alice lives in Lyon.", status="archived")
    assert scored(given, turn, HOME_ROW, DOG_ROW, gone).news_lost


def test_events_among_the_facts_of_one_turn_count_as_added() -> None:
    own = fact_id_at(commit("turn"))
    turn = commit("turn", added("Alice lives in Lyons."), replaced("Alice lives in Lyon.", own), confirmed(own))
    given = case(right=["ADD"], old="kept")
    found = scored(given, turn, HOME_ROW, DOG_ROW, row(fact_id_at(turn, 1), "turn", "Alice lives in Lyon."))
    assert (found.actual, found.overwrites, found.right) == ("ADD", 0, True)


def test_what_is_said_of_another_fact_weighs_least() -> None:
    turn = commit("turn", added("Alice lives in Lyon."), confirmed(DOG_ID))
    given = case(right=["ADD"], old="kept")
    assert scored(given, turn, HOME_ROW, DOG_ROW, new(turn, "Alice lives in Lyon.")).actual == "ADD"
    both = commit("turn", added("Alice lives in Lyon."), confirmed(HOME_ID))
    assert scored(given, both, HOME_ROW, DOG_ROW, new(both, "Alice lives in Lyon.")).actual == "KEEP"


def test_rates_are_of_the_cases_that_they_can_happen_in() -> None:
    repeats, joke = case(**REPETITION, id="move-98"), case(**JOKE, id="move-97")
    scored = [
        ScoredCase(case=case(), score=Score(id="move-99", actual="ADD", right=False, stale=True)),
        ScoredCase(case=repeats, score=Score(id="move-98", actual="REPLACE", right=False, overwrites=2, wrong=1)),
        ScoredCase(case=joke, score=Score(id="move-97", actual="NONE", right=True)),
    ]
    made = compute_rates(scored)
    assert (made.right.count, made.right.of) == (1, 3)
    assert (made.wrong_overwrites.count, made.wrong_overwrites.of) == (1, 2)
    assert (made.lost_updates.count, made.lost_updates.of) == (1, 1)
    assert (made.duplicates.of, made.unfounded.of) == (1, 1)
    assert confusion(scored)["KEEP"] == {"REPLACE": 1}


def test_a_case_with_nothing_to_meet_can_go_neither_stale_nor_double() -> None:
    repeats = case(**REPETITION, id="move-98")
    scored = [ScoredCase(case=one, score=Score(id=one.id, actual="UNMET", right=False)) for one in (case(), repeats)]
    made = compute_rates(scored)
    assert (made.stale.of, made.duplicates.of, made.news_lost.of, made.unmet.count) == (0, 0, 1, 2)
