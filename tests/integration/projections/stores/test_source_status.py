"""What a stage asks of a source and its scope before it decides: attempts, policies and names of the user."""

from typing import Any

import pytest

from mnemolog.projections.stores.facts import (
    CandidateFinder,
    CandidateLists,
    CandidateRequest,
    SourceQuery,
    SourceStatus,
)
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import Reversal
from mnemolog.schemas.policy import LimitHit, Policy, StoredPolicies
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.streams.text.differences import USER_WORDS
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    contradicted,
    day,
    event_id_at,
    fact_id_at,
    policy_set,
    replaced,
    undone,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
ORIGIN = Origin(topic="conversation_turns", partition=0, offset=0)
AGAIN = ORIGIN.model_copy(update={"offset": 7})
LIMIT = LimitHit(name="active_facts", level="scope", count=6, limit=5)
NAMED: dict[str, Any] = {"key": "name", "speaker": None}


async def test_each_source_has_its_status_alone_and_among_many(db: ProjectedDatabase) -> None:
    """Only a turn that was refused for a limit, or that failed, may come again."""
    await db.apply(
        commit("done", added("A.")),
        commit("empty"),
        commit("over", outcome="rejected", reason="limit", limit=LIMIT),
        commit("refused", outcome="rejected", reason="no_scope"),
        commit("over once", outcome="rejected", reason="limit", limit=LIMIT),
        commit("over once", added("In the end."), attempt=2, origin=AGAIN),
        commit("failed", outcome="failed", reason="invalid_reply"),
        commit("command", outcome="failed", source_kind="command"),
        *(commit("failed twice", outcome="failed", attempt=attempt) for attempt in (1, 2)),
        commit("failed twice", added("At last."), attempt=3),
    )
    expected = {
        "done": (1, False, ORIGIN),
        "empty": (1, False, ORIGIN),
        "over": (1, True, ORIGIN),
        "refused": (1, False, ORIGIN),
        "over once": (2, False, AGAIN),
        "failed": (1, True, ORIGIN),
        "command": (1, False, ORIGIN),
        "failed twice": (3, False, ORIGIN),
    }
    asked: dict[SourceQuery, SourceStatus] = {
        ("default/bob", "done", BOB): SourceStatus(scope_version=0),
        ("topic/0/1", "topic/0/1", None): SourceStatus(scope_version=0),
        ("default/alice", "unknown", ALICE): SourceStatus(scope_version=3),
    }
    for source_id, (attempt, retryable, origin) in expected.items():
        status = SourceStatus(scope_version=3, attempt=attempt, retryable=retryable, origin=origin)
        asked["default/alice", source_id, ALICE] = status
    finder = CandidateFinder(db.pool)
    assert {one: await finder.source_status(*one) for one in asked} == asked
    twice = [*asked, *asked]
    assert await finder.source_statuses(twice) == [asked[one] for one in twice]
    assert [status.committed for status in asked.values()] == [False] * 3 + [True] * len(expected)


async def test_the_policies_in_force_come_with_the_source_status(db: ProjectedDatabase) -> None:
    cautious, sparing = Policy(confidence="cautious"), Policy(add_only=True, note="archive")
    tenants = commit("p1", policy_set(cautious, level="tenant"), scope=tenant_scope("default"))
    await db.apply(tenants, commit("p2", policy_set(sparing)))
    for scope, policies in {
        ALICE: StoredPolicies(tenant=cautious, scope=sparing),
        BOB: StoredPolicies(tenant=cautious),
        Scope(tenant="acme", user_id="alice"): StoredPolicies(),
    }.items():
        assert (await CandidateFinder(db.pool).source_status(scope.owner, "t", scope)).policies == policies


async def looked_up(db: ProjectedDatabase, *, speaker: str | None = None, scope: Scope = ALICE) -> CandidateLists:
    query = CandidateQuery(vector=vector_with_similarity(1), content_hash="none", min_similarity=0.99)
    request = CandidateRequest(scope=scope, queries=[query], at=day(9), speaker=speaker)
    return await CandidateFinder(db.pool, user_words=USER_WORDS).find(request)


async def names(db: ProjectedDatabase, speaker: str | None = None, scope: Scope = ALICE) -> tuple[str, ...]:
    return (await looked_up(db, speaker=speaker, scope=scope)).user_names


def speaks(source: str, speaker: str | None, at: float, scope: Scope = ALICE) -> Commit:
    return commit(source, added(f"Said in {source}.", speaker=speaker), scope=scope, at=day(at))


async def test_the_first_speaker_of_a_scope_who_has_a_name_is_its_user(db: ProjectedDatabase) -> None:
    assert [await names(db, speaker) for speaker in (None, "Alice", "User")] == [(), ("Alice",), ()]
    await db.apply(speaks("1", None, 1), speaks("2", "user", 1))
    assert await names(db, "Alice") == ("Alice",)
    agent = Scope(agent_id="helper")
    await db.apply(
        speaks("3", "Alice", 2), speaks("4", "Tom", 3), speaks("5", "Bob", 0, BOB), speaks("6", "Alice", 1, agent)
    )
    assert [await names(db, speaker) for speaker in (None, "Tom", "user")] == [("Alice",)] * 3
    assert await names(db, scope=BOB) == ("Bob",)
    assert await names(db, "Alice", agent) == ()  # an agent is no user


@pytest.mark.parametrize("together", [True, False])
async def test_a_turn_without_facts_names_its_speaker(db: ProjectedDatabase, together: bool) -> None:
    """The order is that of the log, and a speaker moves the version on: whoever looked before looks again."""
    log = [
        commit("1", speaker="user", at=day(3)),
        commit("2", speaker="Alice", at=day(2)),
        commit("3", speaker="Tom", at=day(1)),
        *(commit(f"guest {number}", speaker=f"Guest {number}", at=day(4)) for number in range(9)),
        commit("4", speaker="Tom", at=day(5)),
    ]
    for part in [log] if together else [[one] for one in log]:
        await db.apply(*part)
    found = await looked_up(db, speaker="Tom")
    assert (found.user_names, found.scope_version) == (("Alice",), 13)
    kept = ["user", "Alice", "Tom", *(f"Guest {number}" for number in range(5))]
    assert await db.rows("SELECT speakers FROM scopes") == [(kept,)]


async def test_an_undone_turn_still_names_its_speaker(db: ProjectedDatabase) -> None:
    first = speaks("1", "Alice", 1)
    reversal = Reversal(fact_id=fact_id_at(first), now="active", before=None)
    await db.apply(first, commit("u", undone(event_id_at(first), reversal), at=day(2)), speaks("2", "Tom", 3))
    assert await names(db) == ("Alice",)


async def test_facts_about_the_user_name_the_user_also_by_a_former_name(db: ProjectedDatabase) -> None:
    known = commit(
        "1",
        added("Alice's name is Ali.", value="Ali", subject="Alice", **NAMED),
        added("The user's name is Alice Kovac.", value="Alice Kovac", subject="der Nutzer", **NAMED),
        added("The dog's name is Rex.", value="Rex", subject="the dog", **NAMED),
        added("Is called Anna.", value="Anna", **NAMED),
    )
    married = replaced("Is called Alice Meyer now.", fact_id_at(known, 1), value="Alice Meyer", **NAMED)
    never = contradicted("Is not called Anna.", fact_id_at(known, 3), speaker=None)
    await db.apply(known, speaks("2", "Alice", 2), commit("3", married, never, at=day(3)))
    assert await names(db) == ("Ali", "Alice", "Alice Kovac", "Alice Meyer")


async def test_the_names_are_bounded(db: ProjectedDatabase) -> None:
    given = [added(f"Is called N{number:02}.", value=f"N{number:02}", **NAMED) for number in range(25)]
    await db.apply(commit("1", *given, added("Is called something long.", value="x" * 101, **NAMED)))
    found = await names(db, "Alice")
    assert (len(found), found[0]) == (21, "Alice")
