"""Candidates: the nearest facts of exactly one scope and those of a key, and the status of a source and its scope."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.stores.facts import CandidateFinder, CandidateRequest, SourceQuery, SourceStatus
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.policy import LimitHit, Policy, StoredPolicies
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, CandidateQuery
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import (
    ALICE,
    BOB,
    MODEL,
    added,
    commit,
    contradicted,
    day,
    fact_id_at,
    merged,
    pending,
    pending_rejected,
    policy_set,
    pseudo_random_vector,
    replaced,
    skipped,
    vector_with_similarity,
)

pytestmark = pytest.mark.postgres

FLOOR = 0.65
ORIGIN = Origin(topic="conversation_turns", partition=0, offset=0)


def wanted(vector: Vector, content_hash: str = "no such hash", **more: Any) -> CandidateQuery:
    given: dict[str, Any] = {"vector": vector, "content_hash": content_hash, "min_similarity": FLOOR}
    return CandidateQuery(**given | more)


QUESTION = wanted(vector_with_similarity(1))


def asked_in(scope: Scope, queries: list[CandidateQuery], *, at: datetime) -> CandidateRequest:
    return CandidateRequest(scope=scope, queries=queries, at=at)


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-matching") as pool:
        yield pool


@pytest.fixture
def matcher(pool: Pool) -> CandidateFinder:
    return CandidateFinder(pool, limit=3)


async def project(pool: Pool, *commits: Commit) -> None:
    """Append to the log, and project."""
    projector = Projector(pool)
    start = (await projector.next_offsets()).get(0, 0)
    log = [LogRecord(offset=offset, value=committed.to_bytes()) for offset, committed in enumerate(commits, start)]
    await projector.apply({0: log})


def known(*cosines: float, scope: Scope = ALICE, source: str = "t1") -> Commit:
    return commit(
        source, *(added(f"fact at {cosine}", vector=vector_with_similarity(cosine)) for cosine in cosines), scope=scope
    )


async def test_the_nearest_come_first_and_the_far_not_at_all(pool: Pool, matcher: CandidateFinder) -> None:
    committed = known(0.5, 0.9, 0.7)
    await project(pool, committed)
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(1)))
    ((first, second),) = found.candidates
    assert (first.fact_id, second.fact_id) == (fact_id_at(committed, 1), fact_id_at(committed, 2))
    assert [first.similarity, second.similarity] == pytest.approx([0.9, 0.7], abs=1e-3)
    assert (first.text, first.confidence, first.content_hash) == ("fact at 0.9", 0.95, content_hash("fact at 0.9"))
    assert found.scope_version == 1


async def test_each_query_has_its_own_candidates_in_one_answer(pool: Pool, matcher: CandidateFinder) -> None:
    await project(pool, known(0.9, 0.8), commit("t2", added("elsewhere", vector=vector_with_similarity(0))))
    questions = [
        wanted(vector_with_similarity(-1)),
        QUESTION,
        wanted(vector_with_similarity(0)),
        wanted(pseudo_random_vector("x", 3, model="other")),
    ]
    found = await matcher.find(asked_in(ALICE, questions, at=day(1)))
    assert [[item.text for item in candidates] for candidates in found.candidates] == [
        [],
        ["fact at 0.9", "fact at 0.8"],
        ["elsewhere"],
        [],
    ]
    assert found.scope_version == 2


async def test_no_more_than_the_limit(pool: Pool, matcher: CandidateFinder) -> None:
    await project(pool, known(0.99, 0.98, 0.97, 0.96, 0.95))
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(1)))
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
async def test_no_other_scope_is_looked_at(pool: Pool, matcher: CandidateFinder, other: Scope) -> None:
    await project(
        pool, commit("t1", added("fact at 1.0", vector=vector_with_similarity(1), key="home_city"), scope=other)
    )
    asked = [wanted(vector_with_similarity(1), content_hash("fact at 1.0"), key="home_city")]
    found = await matcher.find(asked_in(ALICE, asked, at=day(1)))
    assert found.candidates == ((),)
    assert found.scope_version == 0
    assert (await matcher.find(asked_in(other, asked, at=day(1)))).candidates != ((),)


async def test_equal_words_are_found_whatever_the_vector(pool: Pool, matcher: CandidateFinder) -> None:
    drafts = (
        added("same words", vector=vector_with_similarity(-1)),
        added("Same words.", vector=pseudo_random_vector("x", 5, model="other")),
        added("other words", vector=pseudo_random_vector("x", 5)),  # of this model's name, but of other dimensions
    )
    await project(pool, commit("t1", *drafts))
    found = await matcher.find(
        asked_in(ALICE, [wanted(vector_with_similarity(1), content_hash("same words"))], at=day(1))
    )
    assert {(item.text, item.similarity) for item in found.candidates[0]} == {("same words", 1), ("Same words.", 1)}


async def test_ended_facts_are_no_candidates(pool: Pool, matcher: CandidateFinder) -> None:
    first = commit("t1", added("was true", vector=vector_with_similarity(1)))
    second = commit("t2", replaced("is true", fact_id_at(first), vector=vector_with_similarity(0.9)))
    third = commit("t3", added("until day 5", vector=vector_with_similarity(0.8), valid_until=day(5)))
    await project(pool, first, second, third)
    early = await matcher.find(asked_in(ALICE, [QUESTION], at=day(4)))
    late = await matcher.find(asked_in(ALICE, [QUESTION], at=day(5)))
    assert [item.text for item in early.candidates[0]] == ["is true", "until day 5"]
    assert [item.text for item in late.candidates[0]] == ["is true"]


async def test_what_was_merged_or_never_true_is_no_candidate(pool: Pool, matcher: CandidateFinder) -> None:
    first = commit(
        "t1", added("a part", vector=vector_with_similarity(1)), added("an error", vector=vector_with_similarity(0.95))
    )
    whole = commit("t2", merged("the whole", fact_id_at(first), vector=vector_with_similarity(0.9)))
    mended = commit("t3", contradicted("mended", fact_id_at(first, 1), vector=vector_with_similarity(0.8)))
    await project(pool, first, whole, mended)
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(4)))
    assert [item.text for item in found.candidates[0]] == ["the whole", "mended"]


async def test_vectors_of_two_models_are_not_compared(pool: Pool, matcher: CandidateFinder) -> None:
    foreign = vector_with_similarity(1).model_copy(update={"model": "other"})
    await project(pool, known(0.9), commit("t2", added("of another model", vector=foreign)))
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(1)))
    assert [item.text for item in found.candidates[0]] == ["fact at 0.9"]


async def test_a_vector_without_a_direction_is_near_nothing(pool: Pool, matcher: CandidateFinder) -> None:
    nowhere = Vector.from_values(MODEL, [0.0, 0.0, 0.0])
    await project(pool, known(1.0), commit("t2", added("nowhere", vector=nowhere)))
    found = await matcher.find(asked_in(ALICE, [wanted(nowhere), QUESTION], at=day(1)))
    assert [[item.text for item in candidates] for candidates in found.candidates] == [[], ["fact at 1.0"]]


@pytest.mark.parametrize("model", [MODEL, "other"])
async def test_a_fact_of_the_same_key_is_found_however_far_it_is(
    pool: Pool, matcher: CandidateFinder, model: str
) -> None:
    drafts = (
        added("lives in Bern", vector=vector_with_similarity(-0.5, model=model), key="home_city", value="Bern"),
        added("likes Bern", vector=vector_with_similarity(-0.5), key="likes"),
        added("no key", vector=vector_with_similarity(-0.5)),
    )
    await project(pool, commit("t1", *drafts))
    found = await matcher.find(
        asked_in(ALICE, [wanted(vector_with_similarity(1), key="home_city"), QUESTION], at=day(1))
    )
    ((city,), without_key) = found.candidates
    assert (city.text, city.key, city.value) == ("lives in Bern", "home_city", "Bern")
    assert city.similarity == pytest.approx(-0.5 if model == MODEL else 0, abs=1e-3)
    assert without_key == ()


async def test_facts_of_a_key_come_on_top_of_the_nearest_and_are_bounded(pool: Pool, matcher: CandidateFinder) -> None:
    near = [added(f"near {n}", vector=vector_with_similarity(0.9 - n / 100)) for n in range(4)]
    far = [added(f"far {n}", vector=vector_with_similarity(-n / 10), key="age", subject=f"child {n}") for n in range(8)]
    both = added("near and of the key", vector=vector_with_similarity(0.95), key="age")
    await project(pool, commit("t1", *near, *far, both))
    asked = [wanted(vector_with_similarity(1), key="age", subject="child 7")]
    found = await matcher.find(asked_in(ALICE, asked, at=day(1)))
    texts = [item.text for item in found.candidates[0]]
    assert texts[:3] == ["near and of the key", "near 0", "near 1"]
    assert texts[3:] == ["far 0", "far 1", "far 2", "far 7"]  # the subject first, then the nearest
    assert len(texts) == 3 + MAX_CANDIDATES_OF_KEY - 1


async def test_each_fact_has_its_own_floor(pool: Pool, matcher: CandidateFinder) -> None:
    await project(pool, known(0.9, 0.5))
    questions = [QUESTION, wanted(vector_with_similarity(1), min_similarity=0.4)]
    found = await matcher.find(asked_in(ALICE, questions, at=day(1)))
    assert [len(candidates) for candidates in found.candidates] == [1, 2]


async def test_pending_facts_are_candidates_and_tell_whom_they_challenge(pool: Pool, matcher: CandidateFinder) -> None:
    first = commit(
        "t1",
        added("lives in Bern", vector=vector_with_similarity(1), key="home_city"),
        added("else", vector=vector_with_similarity(0.8)),
    )
    old, beside = fact_id_at(first), fact_id_at(first, 1)
    second = commit(
        "t2", pending("lives in Rome", old, action="replace", vector=vector_with_similarity(0.9)), at=day(1)
    )
    await project(pool, first, second)
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(2)))
    challenged, challenger, third = found.candidates[0]
    assert (challenger.fact_id, challenger.status) == (fact_id_at(second), "pending_confirmation")
    assert challenger.challenged_by == ()
    assert (challenged.status, challenged.challenged_by) == ("active", (fact_id_at(second),))
    assert (third.fact_id, third.challenged_by) == (beside, ())
    settled = commit("t3", pending_rejected(fact_id_at(second)), at=day(3))
    await project(pool, settled)
    found = await matcher.find(asked_in(ALICE, [QUESTION], at=day(4)))
    assert [(item.fact_id, item.challenged_by) for item in found.candidates[0]] == [(old, ()), (beside, ())]


async def test_a_candidate_tells_all_that_a_decision_needs(pool: Pool, matcher: CandidateFinder) -> None:
    fact = added(
        "The key is at Zoe's until May.",
        unresolved=True,
        vector=vector_with_similarity(0.9),
        excerpt="at Zoe's",
        category="task_context",
        subject="the key",
        valid_until=day(100),
        single_valued=True,
        authority="human",
    )
    await project(pool, commit("t1", fact))
    ((known_one,),) = (await matcher.find(asked_in(ALICE, [QUESTION], at=day(1)))).candidates
    assert (known_one.excerpt, known_one.category, known_one.subject) == ("at Zoe's", "task_context", "the key")
    assert (known_one.valid_until, known_one.true_to, known_one.true_from) == (day(100), None, day(0))
    assert (known_one.unresolved, known_one.single_valued, known_one.authority) == (True, True, "human")


async def test_a_candidate_has_the_words_with_which_it_began(pool: Pool, matcher: CandidateFinder) -> None:
    fact = added("Ana works at Acme.", excerpt="I work at Acme.", vector=vector_with_similarity(0.9))
    first = commit("t9", fact, at=day(9))
    known_id, asked = fact_id_at(first), asked_in(ALICE, [QUESTION], at=day(20))
    await project(pool, first, commit("t12", skipped(known_id, "I'm still at Acme."), at=day(12)))
    ((known_one,),) = (await matcher.find(asked)).candidates
    assert (known_one.true_from, known_one.excerpt) == (day(9), "I work at Acme.")
    await project(pool, commit("t3", skipped(known_id, "I work at Acme now.", true_from=day(3)), at=day(3)))
    ((known_one,),) = (await matcher.find(asked)).candidates
    assert (known_one.true_from, known_one.excerpt) == (day(3), "I work at Acme now.")


async def test_how_a_source_and_its_scope_stand(pool: Pool, matcher: CandidateFinder) -> None:
    await project(pool, known(1.0), known(0.9, source="t2"), commit("t3"))
    done = await matcher.source_status("default/alice", "t3", ALICE)
    assert done == SourceStatus(scope_version=2, attempt=1, origin=ORIGIN)
    assert done.committed
    assert not (await matcher.source_status("default/alice", "t4", ALICE)).committed
    assert await matcher.source_status("default/alice", "t4", ALICE) == SourceStatus(scope_version=2)
    assert await matcher.source_status("default/bob", "t3", BOB) == SourceStatus(scope_version=0)
    assert await matcher.source_status("topic/0/1", "topic/0/1", None) == SourceStatus(scope_version=0)


async def test_a_turn_that_was_refused_for_a_limit_may_come_again(pool: Pool, matcher: CandidateFinder) -> None:
    hit = LimitHit(name="active_facts", level="scope", count=6, limit=5)
    again = ORIGIN.model_copy(update={"offset": 7})
    await project(
        pool,
        commit("t1", outcome="rejected", reason="limit", limit=hit),
        commit("t2", outcome="rejected", reason="no_scope"),
        commit("t3", outcome="rejected", reason="limit", limit=hit),
        commit("t3", added("in the end"), attempt=2, origin=again),
    )
    first = await matcher.source_status("default/alice", "t1", ALICE)
    assert (first.committed, first.attempt, first.retryable, first.origin) == (True, 1, True, ORIGIN)
    assert not (await matcher.source_status("default/alice", "t2", ALICE)).retryable
    last = await matcher.source_status("default/alice", "t3", ALICE)
    assert (last.attempt, last.retryable, last.origin) == (2, False, again)


async def test_a_turn_that_failed_may_come_again_and_a_command_may_not(pool: Pool, matcher: CandidateFinder) -> None:
    await project(
        pool,
        commit("t1", outcome="failed", reason="invalid_reply"),
        commit("c1", outcome="failed", source_kind="command"),
        commit("t2", outcome="failed"),
        commit("t2", outcome="failed", attempt=2),
        commit("t2", added("in the end"), attempt=3),
    )
    found = [await matcher.source_status("default/alice", source_id, ALICE) for source_id in ("t1", "c1", "t2")]
    assert [(status.attempt, status.retryable) for status in found] == [(1, True), (1, False), (3, False)]


async def test_the_policies_in_force_come_with_the_source_status(pool: Pool, matcher: CandidateFinder) -> None:
    cautious, sparing = Policy(confidence="cautious"), Policy(add_only=True, note="archive")
    await project(
        pool,
        commit("p1", policy_set(cautious, level="tenant"), scope=tenant_scope("default")),
        commit("p2", policy_set(sparing)),
    )
    assert (await matcher.source_status("default/alice", "t", ALICE)).policies == StoredPolicies(
        tenant=cautious, scope=sparing
    )
    assert (await matcher.source_status("default/bob", "t", BOB)).policies == StoredPolicies(tenant=cautious)
    other = Scope(tenant="acme", user_id="alice")
    assert (await matcher.source_status("acme/alice", "t", other)).policies == StoredPolicies()


async def test_many_sources_are_asked_for_in_one_statement(pool: Pool, matcher: CandidateFinder) -> None:
    await project(pool, known(1.0), known(0.9, source="t2"), commit("t3"))
    asked: list[SourceQuery] = [
        ("default/bob", "t3", BOB),
        ("default/alice", "t3", ALICE),
        ("topic/0/1", "topic/0/1", None),
        ("default/alice", "t4", ALICE),
        ("default/alice", "t3", ALICE),
    ]
    assert await matcher.source_statuses(asked) == [await matcher.source_status(*one) for one in asked]
