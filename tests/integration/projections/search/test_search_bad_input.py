"""Whatever is asked: a clear error or an honest result, in bounded time, and nothing of other owners is read."""

import time
from collections.abc import Mapping
from typing import Any, Final

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.errors import QueryError
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.search import search
from mnemolog.schemas.errors import MnemologError
from mnemolog.settings import Settings
from tests.support.builders.commits import ALICE, BOB, added, commit, day, vector_with_similarity
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

ASKED: Final = vector_with_similarity(1)
SECONDS: Final = 5.0
"""Far more than any of these needs, and far less than what grows with the square of its length."""
DEEP: dict[str, Any] = {"user_id": "a"}
for _ in range(50_000):
    DEEP = {"NOT": DEEP}
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
REFUSED: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "an empty question": ({"query": ""}, "the text to search for is empty"),
    "white space": ({"query": " \n\t"}, "the text to search for is empty"),
    "half an emoji": ({"query": "\ud83d"}, "surrogate"),
    "a negative top_k": ({"top_k": -1}, "top_k must be at least 1"),
    "no top_k": ({"top_k": 0}, "top_k must be at least 1"),
    "a threshold of NaN": ({"threshold": float("nan")}, "threshold must be"),
    "an infinite threshold": ({"threshold": float("inf")}, "threshold must be"),
    "weights of NaN": ({"weights": {"text": float("nan")}}, r"weights\.text must be"),
    "a deep filter": ({"filters": DEEP}, "deeper than 8 levels"),
    "a wide filter": (
        {"filters": {"OR": [{"key": str(number)} for number in range(100_000)]}},
        "more than 200 conditions",
    ),
    "a long list": ({"filters": {"key": {"in": [str(number) for number in range(2000)]}}}, "at most 1000 items"),
    "an unknown filter": ({"filters": {"OR": [{"nope": 1}]}}, r"OR\.0\.nope is not a known field"),
    "a filter of text": ({"filters": "x"}, "an object"),
    "a thousand scopes": (
        {"any": [{"run_id": str(number)} for number in range(1000)]},
        "any must be a list of 1 to 20",
    ),
    "no scopes": ({"any": []}, "any must be a list of 1 to 20"),
    "a scope of text": ({"any": ["r1"]}, r"any\[0\] must be an object"),
    "a scope of numbers": ({"any": [{"run_id": 1}]}, r"any\[0\] must be an object"),
    "a scope without a known id": ({"any": [{"session": "x"}]}, r"any\[0\] has no id 'session'"),
    "a scope of another tenant": ({"any": [{}, {"tenant": "other"}]}, "one tenant"),
    "a wildcard among scopes": ({"any": [{}, {"run_id": "*"}]}, "has a wildcard"),
    "an unknown state": ({"state": "gone"}, "state.0 must be"),
    "a half period": ({"period": ["2026-01-01T00:00:00Z"]}, r"period\.1 is missing"),
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


@pytest.mark.parametrize("name", REFUSED)
async def test_what_makes_no_sense_is_refused_with_a_clear_sentence(name: str) -> None:
    given, words = REFUSED[name]
    async with AsyncMemoryClient(settings=Settings(postgres="postgresql://nobody@127.0.0.1:9/x")) as client:
        started = time.perf_counter()
        with pytest.raises(MnemologError, match=words) as caught:
            await client.search(**{"query": "tea", "user_id": "alice", **given})
        assert time.perf_counter() - started < SECONDS
    assert isinstance(caught.value, ValueError)


async def test_an_unknown_scope_is_empty(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("tea")))
    found = await search(db.conn, ScopeFilter(user_id="nobody"), "tea", ASKED, SearchOptions(explain=True), at=day(9))
    assert (found.hits, found.below_threshold, found.left_out) == ((), 0, {})
    with pytest.raises(QueryError, match="name a user_id or an agent_id"):
        ScopeFilter(run_id="r1")
