"""Facts, events and turns by whole ids and by their beginnings, on a real Postgres."""

from uuid import UUID, uuid4

import pytest

from mnemolog.projections.errors import (
    AmbiguousIdError,
    AmbiguousTurnError,
    QueryError,
    UnknownEventError,
    UnknownFactError,
    UnknownTurnError,
)
from mnemolog.projections.queries.ids import find_event, find_facts, find_turn, resolve_fact_id, short_ids
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, added, commit, event_id_at, fact_id_at
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TENANT = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
MINE = ScopeFilter.of_scope(ALICE)


async def test_facts_are_found_by_their_ids_and_their_beginnings_in_order(db: ProjectedDatabase) -> None:
    one = commit("1", *(added(f"Fact {number}.") for number in range(5)))
    await db.apply(one)
    wanted = fact_id_at(one, 1)
    for characters in (4, 8, 12, 13, 36):
        beginning = str(wanted)[:characters]
        for given in (beginning, beginning.upper(), beginning.replace("-", "")):
            assert await resolve_fact_id(db.conn, TENANT, given) == wanted
    (found,) = await find_facts(db.conn, TENANT, [wanted])
    assert (found.id, found.text, found.scope) == (str(wanted), "Fact 1.", ALICE)
    ids = [str(fact_id_at(one, number)) for number in (3, 0, 4)]
    assert [found.id for found in await find_facts(db.conn, MINE, ids)] == ids
    assert await find_facts(db.conn, MINE, []) == []


async def test_a_beginning_of_several_ids_names_them_and_is_shown_longer(db: ProjectedDatabase) -> None:
    one = commit("1", added("One thing."), added("Another."), added("A third."))
    await db.apply(one)
    third, event = fact_id_at(one, 2), event_id_at(one, 2)
    assert await short_ids(db.conn, [third, event]) == {third: str(third)[:8], event: str(event)[:8]}
    assert await short_ids(db.conn, []) == {}
    shown = {UUID(f"aaaaaaaa-bbbb-{tail}-8000-000000000000"): f"aaaaaaaa-bbbb-{tail}" for tail in ("5ccc", "5ccd")}
    for number, alike in enumerate(shown):
        await db.conn.execute("UPDATE facts SET fact_id = %s WHERE fact_id = %s", (alike, fact_id_at(one, number)))
    assert await short_ids(db.conn, list(shown)) == shown
    for fact_id, short in shown.items():
        assert await resolve_fact_id(db.conn, TENANT, short) == fact_id
    with pytest.raises(AmbiguousIdError, match=r"give more characters .*\(One thing\.\)") as caught:
        await resolve_fact_id(db.conn, TENANT, "aaaa")
    assert {found for found, _ in caught.value.candidates} == set(map(str, shown))


async def test_a_fact_of_another_scope_is_told_so_and_one_of_another_tenant_is_not(db: ProjectedDatabase) -> None:
    mine, of_bob = commit("1", added("Mine.")), commit("1", added("Bob's."), scope=BOB)
    await db.apply(mine, of_bob)
    alike = str(fact_id_at(mine))[:8] + str(fact_id_at(of_bob))[8:]
    await db.conn.execute("UPDATE facts SET fact_id = %s WHERE fact_id = %s", (alike, fact_id_at(of_bob)))
    assert await resolve_fact_id(db.conn, MINE, alike[:8]) == fact_id_at(mine)
    with pytest.raises(UnknownFactError, match="is not of user_id 'alice', but of user_id 'bob'"):
        await resolve_fact_id(db.conn, MINE, alike)
    elsewhere = ScopeFilter(tenant="other", user_id="**", agent_id="**", app_id="**", run_id="**")
    for given in (UUID(alike), alike[:8]):
        with pytest.raises(UnknownFactError, match="not known in tenant 'other': check the id"):
            await resolve_fact_id(db.conn, elsewhere, given)


async def test_what_is_no_id_is_refused_by_name(db: ProjectedDatabase) -> None:
    for given in ("abc", "not an id", "", "\x00abcd", "\ud83dabcd", "f" * 33, 7, None, b"abcd"):
        with pytest.raises(QueryError, match=r"fact_id|surrogate"):
            await resolve_fact_id(db.conn, TENANT, given)  # type: ignore[arg-type] # wrong ones too


async def test_an_event_is_found_by_the_beginning_of_its_id(db: ProjectedDatabase) -> None:
    one = commit("1", added("Lives in Bern."))
    await db.apply(one)
    found = await find_event(db.conn, TENANT, str(event_id_at(one))[:8])
    assert (found.id, found.text, found.scope) == (str(event_id_at(one)), "fact_added", ALICE)
    with pytest.raises(UnknownEventError, match="`history` and `explain`"):
        await find_event(db.conn, TENANT, uuid4())
    with pytest.raises(UnknownEventError):
        await find_event(db.conn, ScopeFilter.of_scope(BOB), UUID(found.id))


async def test_a_turn_is_found_by_the_beginning_of_its_id_but_a_whole_id_goes_first(db: ProjectedDatabase) -> None:
    await db.apply(commit("chat-1", added("A.")), commit("chat-10", added("B.")))
    await db.journal_turns("order-77", scope=BOB)
    assert (await find_turn(db.conn, TENANT, "chat-1")).id == "chat-1"
    assert (await find_turn(db.conn, TENANT, "chat-10")).scope == ALICE
    assert (await find_turn(db.conn, TENANT, "orde")).scope == BOB
    with pytest.raises(AmbiguousIdError, match=r"several turn ids begin with 'chat': .*chat-1 \(turn\), chat-10"):
        await find_turn(db.conn, TENANT, "chat")
    eve = ScopeFilter.of_scope(Scope(user_id="eve"))
    for within, unknown in ((TENANT, "ord"), (TENANT, "order-8"), (TENANT, "chat-1%"), (eve, "chat-1")):
        with pytest.raises(UnknownTurnError):
            await find_turn(db.conn, within, unknown)
    await db.apply(commit("chat-1", added("B."), scope=BOB))
    with pytest.raises(AmbiguousTurnError, match="give the user_id"):
        await find_turn(db.conn, TENANT, "chat-1")
    assert (await find_turn(db.conn, MINE, "chat-1")).scope == ALICE
