"""The ends of turns and commands, and what they did, asked of a real Postgres."""

from typing import Any

import pytest

from mnemolog.projections.errors import AmbiguousTurnError, QueryError, UnknownTurnError
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.write_result import first_messages, turn_status, why_not
from mnemolog.schemas.command import Delete
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.scope import Scope
from mnemolog.texts import missing_sentence
from tests.support.builders.commits import (
    BOB,
    added,
    command_commit,
    commit,
    day,
    fact_id_at,
    retracted,
    skipped,
    weighed_candidate,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


async def test_a_turn_is_pending_until_its_end_and_of_several_attempts_the_last_one_counts(
    db: ProjectedDatabase,
) -> None:
    hit = LimitHit(name="active_facts", level="scope", count=1, limit=1)

    async def result() -> tuple[Any, ...]:
        found = await turn_status(db.conn, "default", "1")
        return found.status, found.attempt, found.success, found.error, found.limit and found.limit.count

    await db.journal_turns("1")
    assert await turn_status(db.conn, "default", "1") == Result(turn_id="1", status="pending")
    assert (await why_not(db.conn, "default", "1")).missing[0].reason == "not_decided_yet"
    await db.apply(commit("1", outcome="failed", reason="reply_invalid", detail="no JSON after two re-prompts"))
    assert await result() == ("failed", 1, False, "reply_invalid: no JSON after two re-prompts", None)
    await db.apply(commit("1", outcome="rejected", reason="limit", limit=hit, attempt=2))
    assert (await result())[::4] == ("rejected", 1)
    await db.apply(commit("1", added("A."), attempt=3, at=day(1)))
    assert await result() == ("stored", 3, True, None, None)
    assert (await turn_status(db.conn, "default", "1")).duration_ms == 2000


async def test_commands_and_records_without_a_scope_have_their_results(db: ProjectedDatabase) -> None:
    known, position = commit("1", added("Lives in Bern.")), "conversation_turns/0/7"
    fact_id = fact_id_at(known)
    await db.apply(known, command_commit("c1", Delete(fact_ids=(fact_id,)), retracted(fact_id), at=day(1)))
    result = await turn_status(db.conn, "default", "c1")
    assert (result.status, result.success, result.order, result.facts_deleted) == ("done", True, "delete", 1)
    await db.apply(commit(position, scope=None, outcome="failed", reason="not_a_record"))
    assert (await turn_status(db.conn, "default", position)).status == "failed"


async def test_a_verbose_result_and_why_not_have_the_texts_of_the_facts_of_the_scope(db: ProjectedDatabase) -> None:
    known = commit("1", added("Has one cat."))
    theirs = commit("1", added("Secret."), scope=BOB)
    both = (weighed_candidate(fact_id_at(known)), weighed_candidate(fact_id_at(theirs)))
    again = with_decision(skipped(fact_id_at(known), "Has a cat."), candidates=both)
    await db.apply(known, theirs, commit("2", again, at=day(1)))
    assert (await turn_status(db.conn, "default", "2")).trace is None
    trace = (await turn_status(db.conn, "default", "2", verbose=True)).trace
    assert trace is not None
    assert [one.text for one in trace.decisions[0].retrieved] == ["Has one cat.", None]
    (one,) = (await why_not(db.conn, "default", "2")).missing
    assert missing_sentence(one) == 'skipped as a duplicate of "Has one cat." (equal words)'


async def test_unknown_turns_and_those_of_other_tenants_are_not_told(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", scope=Scope(tenant="other", user_id="alice")))
    for turn_id in ("1", "2"):
        with pytest.raises(UnknownTurnError, match="check the id and the tenant"):
            await turn_status(db.conn, "default", turn_id)
    with pytest.raises(QueryError):
        await turn_status(db.conn, "default", "\x00")


async def test_one_id_of_two_agents_is_told_apart_by_the_agent(db: ProjectedDatabase) -> None:
    agents = [Scope(agent_id=name) for name in ("bot", "clerk")]
    shared = Scope(user_id="alice", agent_id="bot")
    await db.apply(*(commit("1", added(f"Of {one.owner}."), scope=one) for one in (*agents, shared)))
    await db.journal_turns("1", scope=agents[0])
    for agent in ("bot", "clerk"):
        found = await turn_status(db.conn, "default", "1", agent_id=agent)
        assert ([one.text for one in found.changes], found.agent_id) == ([f"Of default//{agent}."], agent)
    assert (await turn_status(db.conn, "default", "1", "alice", "clerk")).user_id == "alice"
    assert len(await first_messages(db.conn, "default", "1", agent_id="bot") or ()) == 1
    assert await first_messages(db.conn, "default", "1", agent_id="clerk") is None


async def test_one_id_of_two_users_asks_for_the_user(db: ProjectedDatabase) -> None:
    await db.apply(commit("1"), commit("1", added("B."), scope=BOB))
    with pytest.raises(AmbiguousTurnError, match="default/alice, default/bob"):
        await turn_status(db.conn, "default", "1")
    assert (await turn_status(db.conn, "default", "1", "bob")).status == "stored"
