"""What feedback takes: results, facts and whole ids; the scope of what was shown."""

from typing import Any

import pytest

from mnemolog.client.administration import read_shown
from mnemolog.client.search import SearchResult
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.context import ContextRules, compose
from mnemolog.projections.search.search import Hit, Score
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import day
from tests.support.builders.hits import known_fact
from tests.support.harnesses.offline_client import OfflineClient

FIRST, SECOND = known_fact("Alice likes tea.", run_id="r1"), known_fact("Alice lives in Bern.")
SCORE = Score(
    mode="lexical", total=1, vector_rank=None, similarity=None, vector_part=0, text_rank=1, text_score=1, text_part=1
)
HITS = tuple(Hit(fact=fact, score=SCORE) for fact in (FIRST, SECOND))
RESULT = SearchResult(hits=HITS, mode="lexical", notice=None, threshold=0, below_threshold=0)
CONTEXT = compose([], [FIRST, SECOND], ContextRules(), at=day(1))
BOTH = [FIRST.fact_id, SECOND.fact_id]


def test_ids_are_found_in_their_order_and_each_once_and_what_is_none_is_named() -> None:
    same: list[Any] = [RESULT, CONTEXT, HITS, [FIRST, SECOND], BOTH, list(map(str, BOTH)), [*BOTH, BOTH[0]]]
    for given in same:
        assert read_shown("shown", given)[0] == BOTH
    assert read_shown("used", FIRST)[0] == BOTH[:1]
    faults: list[tuple[Any, str]] = [
        ([str(BOTH[0])[:8]], r"shown\.0 must be a fact or its whole id"),
        ([3], r"shown\.0 must be a fact or its whole id \(32 hex digits\)"),
        ({}, "shown must be a result, facts or whole ids, not a dict"),
        (None, "shown must be a result"),
    ]
    for given, fault in faults:
        with pytest.raises(InvalidCommandError, match=fault):
            read_shown("shown", given)


async def test_the_scope_is_that_of_what_was_shown_unless_somebody_is_named() -> None:
    client = OfflineClient()
    for given in (RESULT, [FIRST], CONTEXT, (hit for hit in HITS)):
        await client.admin.feedback(given, used=FIRST)
    await client.admin.feedback(RESULT, used=FIRST, user_id="bob")
    known = Scope(user_id="alice", run_id="r1")
    assert [command.scope for command in client.commands] == [known, known, known, known, Scope(user_id="bob")]
    with pytest.raises(InvalidCommandError, match="give a user_id or an agent_id"):
        await client.admin.feedback(BOTH, used=FIRST)
