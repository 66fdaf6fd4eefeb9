"""Whatever is asked: a clear error or an honest result, in bounded time, and nothing of other owners is read."""

import time
from typing import Final

import pytest

from mnemolog.errors import QueryError
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.support.builders.commits import ALICE, BOB, added, commit, day, vector_with_similarity
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

ASKED: Final = vector_with_similarity(1)
SECONDS: Final = 5.0
"""Far more than any of these needs, and far less than what grows with the square of its length."""
TEXTS: Final = {
    "1 MB of one word": "tea" * 350_000,
    "1 MB of words": " ".join(f"w{number}" for number in range(150_000)),
    "1 MB of spaces": "tea" + " " * 1_000_000,
    "1 MB of apostrophes": "'" * 1_000_000,
    "only stop words": "is the and of",
    "only emoji": "🎉👩‍👩‍👧‍👦🇨🇭",
    "Arabic": "أين تعيش؟",
    "Chinese": "她住在哪里",
    "Thai": "เธออาศัยอยู่ที่ไหน",
    "Devanagari": "वह कहाँ रहती है?",
    "combining marks": "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢" * 200,
    "right to left marks": "\u202etea\u202c",
    "U+0000": "a\x00b",
    "tsquery syntax": "a & !b <-> (c | d):*AB '''",
    "back slashes": "\\" * 5000,
    "placeholders": "%s %(text)s {filter} $1 $$",
    "names with signs": "O'Brien's (son) -- [x]* .+ \\M",
}


@pytest.mark.parametrize("name", TEXTS)
async def test_any_text_is_answered_in_bounded_time(db: ProjectedDatabase, name: str) -> None:
    await db.apply(commit("1", added("tea", subject="O'Brien")), commit("2", added("tea of Bob"), scope=BOB))
    for vector in (None, ASKED):
        started = time.perf_counter()
        found = await search(
            db.conn, ScopeFilter.of_scope(ALICE), TEXTS[name], vector, SearchOptions(explain=True), at=day(9)
        )
        assert time.perf_counter() - started < SECONDS
        assert {hit.fact.user_id for hit in found} <= {"alice"}


@pytest.mark.parametrize("first", ["東", "ก"])
async def test_a_long_question_is_read_once_for_all_names(db: ProjectedDatabase, first: str) -> None:
    people = (added(f"tea {number}", subject=f"Tom{number}", speaker=f"Ann{number}") for number in range(300))
    await db.apply(*(commit(str(place), one) for place, one in enumerate(people)))
    question = "Ann7 " + "".join(chr(ord(first) + number % 40) for number in range(9_990))
    started = time.perf_counter()
    found = await search(db.conn, ScopeFilter.of_scope(ALICE), f"{question} tea", None, at=day(9))
    assert time.perf_counter() - started < SECONDS
    assert found.hits[0].fact.speaker == "Ann7"


async def test_an_unknown_scope_is_empty(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("tea")))
    found = await search(db.conn, ScopeFilter(user_id="nobody"), "tea", ASKED, SearchOptions(explain=True), at=day(9))
    assert (found.hits, found.below_threshold, found.left_out) == ((), 0, {})
    with pytest.raises(QueryError, match="name a user_id or an agent_id"):
        ScopeFilter(run_id="r1")
