"""Facts, profiles and the ends of turns, asked of a real Postgres."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import orjson
import pytest

from mnemolog.projections.errors import AmbiguousTurnError, QueryError, UnknownFactError, UnknownTurnError
from mnemolog.projections.queries.facts import facts, facts_as_of, profile
from mnemolog.projections.queries.results import Fact, Profile, Tokens, WriteResult
from mnemolog.projections.queries.scope_filter import ANY_VALUE, ScopeFilter
from mnemolog.projections.queries.write_result import first_messages, turn_status
from mnemolog.schemas.command import Delete
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    command_commit,
    commit,
    confirmed,
    contradicted,
    day,
    fact_id_at,
    merged,
    pending,
    replaced,
    retracted,
    skipped,
    weighed_candidate,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)


def texts(found: list[Fact]) -> list[str]:
    return [fact.text for fact in found]


async def test_facts_are_those_that_hold_and_all_versions_on_demand(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern.", key="home_city", value="Bern"), added("Visits.", valid_until=day(3)))
    await db.apply(first, commit("2", replaced("Lives in Rome.", fact_id_at(first), ended_at=day(1)), at=day(1)))
    assert texts(await facts(db.conn, MINE, at=day(2))) == ["Visits.", "Lives in Rome."]
    assert texts(await facts(db.conn, MINE, at=day(3))) == ["Lives in Rome."]
    versions = {one.text: one for one in await facts(db.conn, MINE, all_versions=True, at=day(3))}
    assert list(versions)[2] == "Lives in Rome."
    old = versions["Lives in Bern."]
    assert (old.key, old.value, old.status, old.user_id, old.agent_id) == (
        "home_city",
        "Bern",
        "superseded",
        "alice",
        None,
    )
    assert (old.true_to, old.closed_at, old.believed_to) == (day(1), versions["Lives in Rome."].believed_from, None)
    assert orjson.loads(orjson.dumps(old))["text"] == "Lives in Bern."


async def pages(db: ProjectedDatabase, *, limit: int, between: Sequence[Commit] = ()) -> AsyncIterator[list[Fact]]:
    """The pages of a list; before each of them but the first, one more commit is stored."""
    commits, after = iter(between), None
    while page := await facts(db.conn, MINE, at=day(1), limit=limit, after=after):
        yield page
        after = page[-1].fact_id
        if more := next(commits, None):
            await db.apply(more)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
async def test_pages_have_each_fact_once_while_facts_are_stored(db: ProjectedDatabase, limit: int) -> None:
    """Also facts of one turn, which were recorded at the same time; and where a page's last fact is ended meanwhile."""
    first = commit("1", *(added(f"Likes tea {number}.") for number in range(5)))
    await db.apply(first, commit("b", added("Bob's."), scope=BOB))
    there = [fact.fact_id for fact in await facts(db.conn, MINE, at=day(1))]
    last_of_page = there[limit - 1] if limit <= 5 else there[-1]
    ending = commit("2", retracted(last_of_page), at=day(1))
    late = commit("0", added("Came late, of an earlier time."), at=START_TIME - timedelta(days=1))
    found = [fact async for page in pages(db, limit=limit, between=[ending, late]) for fact in page]
    assert [fact.fact_id for fact in found if fact.fact_id in there] == there
    assert len({fact.fact_id for fact in found}) == len(found)


async def test_a_page_goes_on_after_a_fact_of_the_tenant_alone(db: ProjectedDatabase) -> None:
    mine, other = (
        commit("1", added("A."), added("B.")),
        commit("2", added("C."), scope=Scope(tenant="other", user_id="x")),
    )
    await db.apply(mine, other)
    assert texts(await facts(db.conn, MINE, at=day(1), after=fact_id_at(mine))) == ["B."]
    with pytest.raises(UnknownFactError):
        await facts(db.conn, MINE, at=day(1), after=fact_id_at(other))
    for limit in (0, -1):
        with pytest.raises(QueryError, match="give 1 or more"):
            await facts(db.conn, MINE, at=day(1), limit=limit)


async def test_facts_of_one_turn_are_listed_in_the_order_of_their_statements(db: ProjectedDatabase) -> None:
    said = [f"Likes tea {number}." for number in range(12)]
    turn = commit("1", *(added(text, category="soft_preference") for text in said))
    assert sorted(fact_id_at(turn, place) for place in range(12)) != [fact_id_at(turn, place) for place in range(12)]
    await db.apply(turn)
    await db.apply(commit("2", replaced("Likes tea best.", fact_id_at(turn), fact_id_at(turn, 5)), at=day(1)))
    assert texts(await facts(db.conn, MINE, all_versions=True, at=day(2))) == [*said, "Likes tea best."]
    left = [text for place, text in enumerate(said) if place not in (0, 5)]
    assert texts(await facts(db.conn, MINE, at=day(2))) == [*left, "Likes tea best."]
    assert texts(await facts_as_of(db.conn, MINE, believed_at=day(0.5), true_at=day(0.5))) == said
    known = await profile(db.conn, MINE, day(2))
    assert [entry["text"] for entry in known.soft_preferences if entry["text"] in said] == left
    assert [old["text"] for old in known.recent_changes[0]["old"]] == [said[0], said[5]]


async def test_a_profile_shows_what_holds_with_its_source(db: ProjectedDatabase) -> None:
    first = commit(
        "1",
        added("Is called Alice.", category="identity", key="name", value="Alice"),
        added("Plans a trip.", category="task_context", valid_until=day(3)),
    )
    await db.apply(first)
    known = await profile(db.conn, MINE, day(1))
    (name,) = known.identity
    assert (name["value"], name["confidence"], name["fact_id"]) == ("Alice", 0.95, str(fact_id_at(first)))
    assert [entry["text"] for entry in known.current_tasks] == ["Plans a trip."]
    assert known.updated_at == first.decided_at
    assert (await profile(db.conn, MINE, day(3))).current_tasks == []


async def test_a_profile_belongs_to_one_scope(db: ProjectedDatabase) -> None:
    assert await profile(db.conn, MINE, day(0)) == Profile()
    with pytest.raises(QueryError, match="instead of"):
        await profile(db.conn, ScopeFilter(user_id="alice", run_id=ANY_VALUE), day(0))


async def test_the_result_of_a_turn_tells_what_it_did_and_cost(db: ProjectedDatabase) -> None:
    known = commit("1", *(added(f"Fact {number}.") for number in range(6)))
    steps = (
        Step(stage="extract", milliseconds=300, llm_calls=1, input_tokens=500, output_tokens=60),
        Step(stage="embed", milliseconds=20, embedding_calls=0.25, input_tokens=30),
        Step(stage="resolve", milliseconds=200, llm_calls=1, input_tokens=200, output_tokens=40),
    )
    turn = commit(
        "2",
        added("New."),
        skipped(fact_id_at(known, 0), "Said again."),
        confirmed(fact_id_at(known, 1)),
        merged("Richer.", fact_id_at(known, 2), fact_id_at(known, 3)),
        replaced("Now.", fact_id_at(known, 4), reason="she moved"),
        contradicted("Indeed.", fact_id_at(known, 5)),
        steps=steps,
    )
    await db.apply(known, turn)
    result = await turn_status(db.conn, "default", "2")
    assert [(one.event, one.text) for one in result.memories] == [
        ("fact_added", "New."),
        ("fact_skipped", "Said again."),
        ("fact_confirmed", "the same in other words"),
        ("facts_merged", "Richer."),
        ("fact_replaced", "Now."),
        ("fact_contradicted", "Indeed."),
    ]
    assert [one.fact_id for one in result.memories[:3]] == [
        fact_id_at(turn, 0),
        fact_id_at(known, 0),
        fact_id_at(known, 1),
    ]
    assert (result.memories[4].targets, result.memories[4].reason) == ((fact_id_at(known, 4),), "she moved")
    counts = (result.facts_added, result.facts_updated, result.facts_unchanged, result.facts_deleted, result.skipped)
    assert counts == (4, 3, 2, 1, 1)
    assert (result.status, result.success, result.error) == ("facts", True, None)
    assert (result.llm_calls, result.embedding_calls, result.tokens) == (2, 0.25, Tokens(input=730, output=100))
    assert result.tokens.total == 830
    assert result.milliseconds == {"extract": 300, "embed": 20, "resolve": 200}
    assert result.duration_ms == 2000
    assert orjson.loads(orjson.dumps(result))["memories"][0]["event"] == "fact_added"


async def test_a_verbose_result_has_the_texts_of_what_was_retrieved(db: ProjectedDatabase) -> None:
    known = commit("1", added("Has one cat."))
    theirs = commit("1", added("Secret."), scope=BOB)
    both = (weighed_candidate(fact_id_at(known)), weighed_candidate(fact_id_at(theirs)))
    await db.apply(
        known, theirs, commit("2", with_decision(skipped(fact_id_at(known), "Has a cat."), candidates=both), at=day(1))
    )
    assert (await turn_status(db.conn, "default", "2")).trace is None
    trace = (await turn_status(db.conn, "default", "2", verbose=True)).trace
    assert trace is not None
    assert [one.text for one in trace.decisions[0].retrieved] == ["Has one cat.", None]


async def test_of_several_attempts_the_last_one_counts(db: ProjectedDatabase) -> None:
    hit = LimitHit(name="active_facts", level="scope", count=1, limit=1)
    await db.apply(commit("1", outcome="rejected", reason="limit", limit=hit))
    first = await turn_status(db.conn, "default", "1")
    assert (first.status, first.limit and first.limit.count) == ("rejected", 1)
    await db.apply(commit("1", added("A."), attempt=2, at=day(1)))
    second = await turn_status(db.conn, "default", "1")
    assert (second.status, second.attempt, second.limit) == ("facts", 2, None)


async def test_a_command_has_its_result(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."))
    await db.apply(
        known, command_commit("c1", Delete(fact_ids=(fact_id_at(known),)), retracted(fact_id_at(known)), at=day(1))
    )
    result = await turn_status(db.conn, "default", "c1")
    assert (result.status, result.success, result.order, result.facts_deleted) == ("done", True, "delete", 1)


async def test_pending_facts_are_no_facts_yet(db: ProjectedDatabase) -> None:
    known = commit("1", added("A."))
    await db.apply(known, commit("2", pending("Not A.", fact_id_at(known)), at=day(1)))
    assert texts(await facts(db.conn, MINE, at=day(2))) == ["A."]
    versions = await facts(db.conn, MINE, all_versions=True, at=day(2))
    assert [(one.text, one.believed_from is None) for one in versions] == [("A.", False), ("Not A.", True)]


async def test_a_turn_is_pending_until_its_end(db: ProjectedDatabase) -> None:
    await db.journal_turns("1")
    assert await turn_status(db.conn, "default", "1") == WriteResult(turn_id="1", status="pending")
    await db.apply(commit("1"))
    assert (await turn_status(db.conn, "default", "1")).status == "no_facts"


async def test_a_failed_turn_says_why(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", outcome="failed", reason="reply_invalid", detail="no JSON after two re-prompts"))
    result = await turn_status(db.conn, "default", "1")
    assert (result.success, result.error) == (False, "reply_invalid: no JSON after two re-prompts")


async def test_a_record_without_a_scope_is_found_by_its_position(db: ProjectedDatabase) -> None:
    position = "conversation_turns/0/7"
    await db.apply(commit(position, scope=None, outcome="failed", reason="not_a_record"))
    assert (await turn_status(db.conn, "default", position)).status == "failed"


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
        assert ([one.text for one in found.memories], found.agent_id) == ([f"Of default//{agent}."], agent)
    assert (await turn_status(db.conn, "default", "1", "alice", "clerk")).user_id == "alice"
    assert len(await first_messages(db.conn, "default", "1", agent_id="bot") or ()) == 1
    assert await first_messages(db.conn, "default", "1", agent_id="clerk") is None


async def test_one_id_of_two_users_asks_for_the_user(db: ProjectedDatabase) -> None:
    await db.apply(commit("1"), commit("1", added("B."), scope=BOB))
    with pytest.raises(AmbiguousTurnError, match="default/alice, default/bob"):
        await turn_status(db.conn, "default", "1")
    assert (await turn_status(db.conn, "default", "1", "bob")).status == "facts"
