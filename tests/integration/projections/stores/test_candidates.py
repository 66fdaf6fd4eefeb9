"""Candidates: the nearest facts of exactly one scope, those of a key and those of equal words."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from mnemolog.projections.stores.facts import CandidateFinder, CandidateLists, CandidateRequest
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, CandidateQuery
from mnemolog.schemas.vector import Vector
from mnemolog.streams.text.differences import USER_WORDS
from tests.support.builders.commits import (
    ALICE,
    BOB,
    MODEL,
    Draft,
    added,
    commit,
    contradicted,
    day,
    fact_id_at,
    merged,
    pending,
    pending_rejected,
    pseudo_random_vector,
    replaced,
    skipped,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
EAST = vector_with_similarity(1)
NOWHERE = Vector.from_values(MODEL, [0.0, 0.0, 0.0])


def wanted(vector: Vector = EAST, content_hash: str = "no such hash", **more: Any) -> CandidateQuery:
    given: dict[str, Any] = {"vector": vector, "content_hash": content_hash, "min_similarity": 0.65}
    return CandidateQuery(**given | more)


def near(text: str, cosine: float, **fields: Any) -> Draft:
    return added(text, vector=vector_with_similarity(cosine), **fields)


def known(*cosines: float) -> Commit:
    return commit("t1", *(near(str(cosine), cosine) for cosine in cosines))


async def find(
    db: ProjectedDatabase, *queries: CandidateQuery, scope: Scope = ALICE, at: float = 4.0
) -> CandidateLists:
    request = CandidateRequest(scope=scope, queries=queries or [wanted()], at=day(at))
    return await CandidateFinder(db.pool, limit=3).find(request)


WAS = commit("t1", near("was true", 1))
PARTS = commit("t1", near("a part", 1), near("an error", 0.95))


@pytest.mark.parametrize(
    ("log", "queries", "expected"),
    [
        pytest.param(
            [known(0.5, 0.9, 0.7)],
            [wanted(), wanted(min_similarity=0.4)],
            [["0.9", "0.7"], ["0.9", "0.7", "0.5"]],
            id="the nearest come first, down to the floor of each query",
        ),
        pytest.param(
            [known(0.9, 0.8), commit("t2", near("elsewhere", 0))],
            [
                wanted(vector_with_similarity(-1)),
                wanted(),
                wanted(vector_with_similarity(0)),
                wanted(pseudo_random_vector("x", 3, model="other")),
            ],
            [[], ["0.9", "0.8"], ["elsewhere"], []],
            id="each query has its own",
        ),
        pytest.param(
            [known(0.99, 0.98, 0.97, 0.96, 0.95)], [wanted()], [["0.99", "0.98", "0.97"]], id="no more than the limit"
        ),
        pytest.param(
            [
                WAS,
                commit("t2", replaced("is true", fact_id_at(WAS), vector=vector_with_similarity(0.9))),
                commit(
                    "t3", near("until day 4", 0.8, valid_until=day(4)), near("until later", 0.7, valid_until=day(5))
                ),
            ],
            [wanted()],
            [["is true", "until later"]],
            id="no fact that has ended",
        ),
        pytest.param(
            [
                PARTS,
                commit("t2", merged("the whole", fact_id_at(PARTS), vector=vector_with_similarity(0.9))),
                commit("t3", contradicted("mended", fact_id_at(PARTS, 1), vector=vector_with_similarity(0.8))),
            ],
            [wanted()],
            [["the whole", "mended"]],
            id="none that was merged or never true",
        ),
        pytest.param(
            [known(0.9), commit("t2", added("foreign", vector=vector_with_similarity(1, model="other")))],
            [wanted()],
            [["0.9"]],
            id="no vector of another model",
        ),
        pytest.param(
            [known(1.0), commit("t2", added("nowhere", vector=NOWHERE))],
            [wanted(NOWHERE), wanted()],
            [[], ["1.0"]],
            id="nothing for or with a vector without a direction",
        ),
    ],
)
async def test_which_facts_are_near(
    db: ProjectedDatabase, log: list[Commit], queries: list[CandidateQuery], expected: list[list[str]]
) -> None:
    await db.apply(*log)
    found = await find(db, *queries)
    assert [[item.text for item in candidates] for candidates in found.candidates] == expected
    assert found.scope_version == len(log)


async def test_no_other_scope_is_looked_at(db: ProjectedDatabase) -> None:
    others = [
        BOB,
        Scope(tenant="acme", user_id="alice"),
        *(Scope(user_id="alice", **{part: "a"}) for part in ("agent_id", "app_id", "run_id")),
    ]
    for place, other in enumerate(others):
        await db.apply(commit(f"t{place}", near("same", 1, key="home_city"), scope=other))
    asked = wanted(content_hash=content_hash("same"), key="home_city")
    found = await find(db, asked)
    assert (found.candidates, found.scope_version) == (((),), 0)
    for other in others:
        ((one,),) = (await find(db, asked, scope=other)).candidates
        assert one.text == "same"


async def test_equal_words_are_found_whatever_the_vector(db: ProjectedDatabase) -> None:
    drafts = (
        near("same words", -1),
        added("Same words.", vector=pseudo_random_vector("x", 5, model="other")),
        added("other words", vector=pseudo_random_vector("x", 5)),  # of this model's name, but of other dimensions
    )
    await db.apply(commit("t1", *drafts))
    (found,) = (await find(db, wanted(content_hash=content_hash("same words")))).candidates
    assert {(item.text, item.similarity) for item in found} == {("same words", 1), ("Same words.", 1)}


async def test_facts_of_the_same_key_are_found_however_far_they_are(db: ProjectedDatabase) -> None:
    city: dict[str, Any] = {"key": "home_city", "value": "Bern"}
    foreign = added("lived in Bern", vector=vector_with_similarity(-0.5, model="other"), **city)
    drafts = (near("lives in Bern", -0.5, **city), foreign, near("likes Bern", -0.5, key="likes"), near("no key", -0.5))
    await db.apply(commit("t1", *drafts))
    cities, without_key = (await find(db, wanted(key="home_city"), wanted())).candidates
    assert [(one.text, one.key, one.value) for one in cities] == [
        ("lived in Bern", "home_city", "Bern"),
        ("lives in Bern", "home_city", "Bern"),
    ]
    assert [one.similarity for one in cities] == pytest.approx([0, -0.5], abs=1e-3)
    assert without_key == ()


async def test_of_a_key_of_several_values_the_ends_are_found_however_far_they_are(db: ProjectedDatabase) -> None:
    allergy: dict[str, Any] = {"key": "allergy", "value": "nuts"}
    denial = near("eats nuts again", -0.5, action_hint="retract", **allergy)
    await db.apply(commit("t1", denial, near("is allergic to nuts", -0.5, **allergy)))
    ends, all_of_key = (await find(db, wanted(key="allergy", ends_only=True), wanted(key="allergy"))).candidates
    assert [one.text for one in ends] == ["eats nuts again"]
    assert {one.text for one in all_of_key} == {"eats nuts again", "is allergic to nuts"}


async def test_facts_of_a_key_come_on_top_of_the_nearest_and_are_bounded(db: ProjectedDatabase) -> None:
    close = [near(f"near {n}", 0.9 - n / 100) for n in range(4)]
    far = [near(f"far {n}", -n / 10, key="age", subject=f"child {n}") for n in range(8)]
    await db.apply(commit("t1", *close, *far, near("near and of the key", 0.95, key="age")))
    found = await find(db, wanted(key="age", subject="child 7"))
    texts = [item.text for item in found.candidates[0]]
    assert texts[:3] == ["near and of the key", "near 0", "near 1"]
    assert texts[3:] == ["far 0", "far 1", "far 2", "far 7"]  # the subject first, then the nearest
    assert len(texts) == 3 + MAX_CANDIDATES_OF_KEY - 1


async def test_the_home_of_friends_does_not_push_out_the_home_of_the_user(db: ProjectedDatabase) -> None:
    """However the home is stated, and however it is asked for."""
    stated = (None, "The user", "Alice")
    scopes = [Scope(user_id=f"alice{number}") for number in range(len(stated))]
    home: dict[str, Any] = {"key": "home_city", "speaker": "Alice"}
    friends = [
        near(f"Friend {number} lives near.", 0.9, subject=f"Friend {number}", **home)
        for number in range(MAX_CANDIDATES_OF_KEY + 2)
    ]
    for scope, subject in zip(scopes, stated, strict=True):
        await db.apply(commit("1", *friends, near("Lives far away.", 0, subject=subject, **home), scope=scope))
    requests = [
        CandidateRequest(
            scope=scope, queries=[wanted(min_similarity=0.99, key="home_city", subject=subject)], at=day(9)
        )
        for scope in scopes
        for subject in (None, "the user", "der Nutzer", "alice")
    ]
    for lists in await CandidateFinder(db.pool, user_words=USER_WORDS).find_many(requests):
        (candidates,) = lists.candidates
        assert len(candidates) == MAX_CANDIDATES_OF_KEY
        assert "Lives far away." in [one.text for one in candidates]


async def test_pending_facts_are_candidates_and_the_facts_that_they_challenge_name_them(db: ProjectedDatabase) -> None:
    first = commit("t1", near("lives in Bern", 1, key="home_city"), near("else", 0.8))
    old, beside = fact_id_at(first), fact_id_at(first, 1)
    rome = pending("lives in Rome", old, action="replace", vector=vector_with_similarity(0.9))
    second = commit("t2", rome, at=day(1))
    await db.apply(first, second)
    (found,) = (await find(db)).candidates
    assert [(one.fact_id, one.status, one.challenged_by) for one in found] == [
        (old, "active", (fact_id_at(second),)),
        (fact_id_at(second), "pending_confirmation", ()),
        (beside, "active", ()),
    ]
    await db.apply(commit("t3", pending_rejected(fact_id_at(second)), at=day(3)))
    (found,) = (await find(db)).candidates
    assert [(one.fact_id, one.challenged_by) for one in found] == [(old, ()), (beside, ())]


async def test_a_candidate_has_all_that_a_decision_needs(db: ProjectedDatabase) -> None:
    text = "The key is at Zoe's until May."
    fields = {"excerpt": "at Zoe's", "category": "task_context", "subject": "the key", "valid_until": day(100)}
    more: dict[str, Any] = {"unresolved": True, "single_valued": True, "authority": "human"}
    said = commit("t1", near(text, 0.9, **fields, **more))
    await db.apply(said)
    ((one,),) = (await find(db)).candidates
    assert (one.fact_id, one.text, one.content_hash, one.confidence) == (
        fact_id_at(said),
        text,
        content_hash(text),
        0.95,
    )
    assert one.similarity == pytest.approx(0.9, abs=1e-3)
    assert {name: getattr(one, name) for name in fields | more} == fields | more
    assert (one.true_from, one.true_to) == (day(0), None)


async def test_a_candidate_has_the_words_with_which_it_began(db: ProjectedDatabase) -> None:
    first = commit("t9", near("Ana works at Acme.", 0.9, excerpt="I work at Acme."), at=day(9))
    again, earlier = "I'm still at Acme.", "I work at Acme now."
    await db.apply(first, commit("t12", skipped(fact_id_at(first), again), at=day(12)))
    ((one,),) = (await find(db, at=20)).candidates
    assert (one.true_from, one.excerpt) == (day(9), "I work at Acme.")
    await db.apply(commit("t3", skipped(fact_id_at(first), earlier, true_from=day(3)), at=day(3)))
    ((one,),) = (await find(db, at=20)).candidates
    assert (one.true_from, one.excerpt) == (day(3), earlier)


SCOPES = (
    *(Scope(user_id=f"user{number}") for number in range(4)),
    Scope(tenant="acme", user_id="user0"),
    Scope(user_id="user0", agent_id="helper"),
    Scope(agent_id="helper"),
)
KEYS = (None, "home_city", "name", "age")
SUBJECTS = (None, "user", "Ann", "Ann Lee", "Tom")
SPEAKERS = (None, "Ann", "Tom", "user")
TURNS = 24


def random_commits(chance: random.Random) -> Iterator[Commit]:
    for number in range(60):
        scope = chance.choice(SCOPES)
        texts = [f"word{chance.randrange(30)} of {number % 7}" for _ in range(chance.randint(1, 4))]
        drafts = [
            near(
                text,
                chance.uniform(-1, 1),
                key=chance.choice(KEYS),
                value=text,
                subject=chance.choice(SUBJECTS),
                speaker=chance.choice(SPEAKERS),
                valid_until=chance.choice((None, day(100), day(300))),
            )
            for text in texts
        ]
        first = commit(f"t{number}", *drafts, scope=scope, at=day(number))
        yield first
        if number % 5 == 0:
            vector = vector_with_similarity(chance.uniform(0, 1))
            held = pending("challenger", fact_id_at(first), action="replace", vector=vector)
            yield commit(f"p{number}", held, scope=scope, at=day(number))


def random_request(chance: random.Random) -> CandidateRequest:
    queries = [
        CandidateQuery(
            vector=vector_with_similarity(chance.uniform(-1, 1)),
            content_hash=content_hash(f"word{chance.randrange(30)} of {chance.randrange(7)}"),
            min_similarity=chance.uniform(-1, 1),
            key=chance.choice(KEYS),
            subject=chance.choice(SUBJECTS),
        )
        for _ in range(chance.randint(1, 5))
    ]
    return CandidateRequest(
        scope=chance.choice((*SCOPES, Scope(user_id="nobody"))),
        queries=queries,
        at=day(chance.randrange(400)),
        speaker=chance.choice(SPEAKERS),
    )


@pytest.mark.parametrize("seed", range(3))
async def test_each_of_many_turns_gets_what_it_gets_alone(db: ProjectedDatabase, seed: int) -> None:
    chance = random.Random(seed)
    await db.apply(*random_commits(chance))
    finder = CandidateFinder(db.pool, limit=3, user_words=("user",))
    requests = [random_request(chance) for _ in range(TURNS)]
    alone = [await finder.find(request) for request in requests]
    assert await finder.find_many(requests) == alone
    assert [len(found.candidates) for found in alone] == [len(request.queries) for request in requests]
    found = [candidate for lists in alone for candidates in lists.candidates for candidate in candidates]
    assert len(found) > TURNS
    assert any(candidate.challenged_by for candidate in found)
    assert len({lists.user_names for lists in alone}) > 1
