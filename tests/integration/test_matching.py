"""Candidates: the nearest facts of exactly one scope and those of a key, and how a source and its scope stand."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from projections.matching import CANDIDATES_OF_KEY, Matcher, Standing, Wanted
from projections.policies import SetPolicies
from projections.pools import Pool, open_pool
from projections.projector import LogRecord, Projector
from schemas.commit import Commit
from schemas.facts import content_hash
from schemas.scope import Scope
from schemas.vector import Vector
from tests.builders import (
    ALICE,
    BOB,
    MODEL,
    added,
    commit,
    contradicted,
    day,
    fact_of,
    merged,
    noise,
    replaced,
    similar,
)

pytestmark = pytest.mark.postgres

FLOOR = 0.65


def wanted(vector: Vector, content_hash: str = "no such hash", **more: Any) -> Wanted:
    return Wanted(**{"vector": vector, "content_hash": content_hash, "floor": FLOOR} | more)


QUESTION = wanted(similar(1))


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-matching") as pool:
        yield pool


@pytest.fixture
def matcher(pool: Pool) -> Matcher:
    return Matcher(pool, limit=3)


async def project(pool: Pool, *commits: Commit) -> None:
    log = [LogRecord(offset=offset, value=committed.to_bytes()) for offset, committed in enumerate(commits)]
    await Projector(pool).apply(0, log)


def known(*cosines: float, scope: Scope = ALICE, source: str = "t1") -> Commit:
    return commit(source, *(added(f"fact at {cosine}", vector=similar(cosine)) for cosine in cosines), scope=scope)


async def test_the_nearest_come_first_and_the_far_not_at_all(pool: Pool, matcher: Matcher) -> None:
    committed = known(0.5, 0.9, 0.7)
    await project(pool, committed)
    found = await matcher.match(ALICE, [QUESTION], at=day(1))
    ((first, second),) = found.candidates
    assert (first.fact_id, second.fact_id) == (fact_of(committed, 1), fact_of(committed, 2))
    assert [first.similarity, second.similarity] == pytest.approx([0.9, 0.7], abs=1e-3)
    assert (first.text, first.confidence, first.content_hash) == ("fact at 0.9", 0.95, content_hash("fact at 0.9"))
    assert found.scope_version == 1


async def test_each_query_has_its_own_candidates_in_one_answer(pool: Pool, matcher: Matcher) -> None:
    await project(pool, known(0.9, 0.8), commit("t2", added("elsewhere", vector=similar(0))))
    questions = [wanted(similar(-1)), QUESTION, wanted(similar(0)), wanted(noise("x", 3, model="other"))]
    found = await matcher.match(ALICE, questions, at=day(1))
    assert [[item.text for item in candidates] for candidates in found.candidates] == [
        [],
        ["fact at 0.9", "fact at 0.8"],
        ["elsewhere"],
        [],
    ]
    assert found.scope_version == 2


async def test_no_more_than_the_limit(pool: Pool, matcher: Matcher) -> None:
    await project(pool, known(0.99, 0.98, 0.97, 0.96, 0.95))
    found = await matcher.match(ALICE, [QUESTION], at=day(1))
    assert [item.text for item in found.candidates[0]] == ["fact at 0.99", "fact at 0.98", "fact at 0.97"]


@pytest.mark.parametrize(
    "other",
    [
        BOB,
        Scope(tenant="acme", user_id="alice"),
        Scope(user_id="alice", agent_id="a"),
        Scope(user_id="alice", app_id="a"),
        Scope(user_id="alice", run_id="r"),
    ],
)
async def test_no_other_scope_is_looked_at(pool: Pool, matcher: Matcher, other: Scope) -> None:
    await project(pool, commit("t1", added("fact at 1.0", vector=similar(1), key="home_city"), scope=other))
    asked = [wanted(similar(1), content_hash("fact at 1.0"), key="home_city")]
    found = await matcher.match(ALICE, asked, at=day(1))
    assert found.candidates == ((),)
    assert found.scope_version == 0
    assert (await matcher.match(other, asked, at=day(1))).candidates != ((),)


async def test_equal_words_are_found_whatever_the_vector(pool: Pool, matcher: Matcher) -> None:
    drafts = (
        added("same words", vector=similar(-1)),
        added("Same words.", vector=noise("x", 5, model="other")),
        added("other words", vector=noise("x", 5)),  # of this model's name, but of other dimensions
    )
    await project(pool, commit("t1", *drafts))
    found = await matcher.match(ALICE, [wanted(similar(1), content_hash("same words"))], at=day(1))
    assert {(item.text, item.similarity) for item in found.candidates[0]} == {("same words", 1), ("Same words.", 1)}


async def test_ended_facts_are_no_candidates(pool: Pool, matcher: Matcher) -> None:
    first = commit("t1", added("was true", vector=similar(1)))
    second = commit("t2", replaced("is true", fact_of(first), vector=similar(0.9)))
    third = commit("t3", added("until day 5", vector=similar(0.8), valid_until=day(5)))
    await project(pool, first, second, third)
    early = await matcher.match(ALICE, [QUESTION], at=day(4))
    late = await matcher.match(ALICE, [QUESTION], at=day(5))
    assert [item.text for item in early.candidates[0]] == ["is true", "until day 5"]
    assert [item.text for item in late.candidates[0]] == ["is true"]


async def test_what_was_merged_or_never_true_is_no_candidate(pool: Pool, matcher: Matcher) -> None:
    first = commit("t1", added("a part", vector=similar(1)), added("an error", vector=similar(0.95)))
    whole = commit("t2", merged("the whole", fact_of(first), vector=similar(0.9)))
    mended = commit("t3", contradicted("mended", fact_of(first, 1), vector=similar(0.8)))
    await project(pool, first, whole, mended)
    found = await matcher.match(ALICE, [QUESTION], at=day(4))
    assert [item.text for item in found.candidates[0]] == ["the whole", "mended"]


async def test_vectors_of_two_models_are_not_compared(pool: Pool, matcher: Matcher) -> None:
    foreign = similar(1).model_copy(update={"model": "other"})
    await project(pool, known(0.9), commit("t2", added("of another model", vector=foreign)))
    found = await matcher.match(ALICE, [QUESTION], at=day(1))
    assert [item.text for item in found.candidates[0]] == ["fact at 0.9"]


async def test_a_vector_without_a_direction_is_near_nothing(pool: Pool, matcher: Matcher) -> None:
    nowhere = Vector.of(MODEL, [0.0, 0.0, 0.0])
    await project(pool, known(1.0), commit("t2", added("nowhere", vector=nowhere)))
    found = await matcher.match(ALICE, [wanted(nowhere), QUESTION], at=day(1))
    assert [[item.text for item in candidates] for candidates in found.candidates] == [[], ["fact at 1.0"]]
