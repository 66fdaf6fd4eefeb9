"""Candidates of many turns in one statement: each turn gets what it gets alone. Facts and questions are random."""

import random
from collections.abc import Iterator

import pytest

from mnemolog.projections.stores.facts import CandidateFinder, CandidateRequest
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import CandidateQuery
from tests.support.builders.commits import added, commit, day, fact_id_at, pending, vector_with_similarity
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

SCOPES = (
    *(Scope(user_id=f"user{number}") for number in range(4)),
    Scope(tenant="acme", user_id="user0"),
    Scope(user_id="user0", agent_id="helper"),
    Scope(agent_id="helper"),
)
UNKNOWN = Scope(user_id="nobody")
KEYS = (None, "home_city", "name", "age")
SUBJECTS = (None, "user", "Ann", "Ann Lee", "Tom")
SPEAKERS = (None, "Ann", "Tom", "user")
TURNS = 24


def _commits(chance: random.Random) -> Iterator[Commit]:
    for number in range(60):
        scope = chance.choice(SCOPES)
        texts = [f"word{chance.randrange(30)} of {number % 7}" for _ in range(chance.randint(1, 4))]
        drafts = [
            added(
                text,
                vector=vector_with_similarity(chance.uniform(-1, 1)),
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


def _request(chance: random.Random) -> CandidateRequest:
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
        scope=chance.choice((*SCOPES, UNKNOWN)),
        queries=queries,
        at=day(chance.randrange(400)),
        speaker=chance.choice(SPEAKERS),
    )


@pytest.mark.parametrize("seed", range(4))
async def test_each_of_many_turns_gets_what_it_gets_alone(db: ProjectedDatabase, seed: int) -> None:
    chance = random.Random(seed)
    await db.apply(*_commits(chance))
    finder = CandidateFinder(db.pool, limit=3, user_words=("user",))
    requests = [_request(chance) for _ in range(TURNS)]
    alone = [await finder.find(request) for request in requests]
    assert await finder.find_many(requests) == alone
    assert [len(found.candidates) for found in alone] == [len(request.queries) for request in requests]
    found = [candidate for lists in alone for candidates in lists.candidates for candidate in candidates]
    assert len(found) > TURNS
    assert any(candidate.challenged_by for candidate in found)
    assert len({lists.user_names for lists in alone}) > 1
