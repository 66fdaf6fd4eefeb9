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


def with_equal_beginnings(characters: int) -> tuple[str, str]:
    """Ids of turns whose first facts have equal beginnings."""
    seen: dict[str, str] = {}
    for number in range(100_000):
        beginning = str(fact_id_at(commit(f"n{number}", added("x"))))[:characters]
        if beginning in seen:
            return seen[beginning], f"n{number}"
        seen[beginning] = f"n{number}"
    raise AssertionError


@pytest.mark.parametrize("characters", [4, 8, 12, 13, 36])
async def test_a_fact_is_found_by_the_beginning_of_its_id(db: ProjectedDatabase, characters: int) -> None:
    one = commit("1", added("Lives in Bern."), added("Has a cat."))
    await db.apply(one)
    wanted = fact_id_at(one, 1)
    for given in (
        str(wanted)[:characters],
        str(wanted)[:characters].upper(),
        str(wanted)[:characters].replace("-", ""),
    ):
        assert await resolve_fact_id(db.conn, TENANT, given) == wanted
    (found,) = await find_facts(db.conn, TENANT, [wanted])
    assert (found.id, found.text, found.scope) == (str(wanted), "Has a cat.", ALICE)


async def test_many_are_found_at_once_in_their_order(db: ProjectedDatabase) -> None:
    one = commit("1", *(added(f"Fact {number}.") for number in range(5)))
    await db.apply(one)
    ids = [str(fact_id_at(one, number)) for number in (3, 0, 4)]
    assert [found.id for found in await find_facts(db.conn, MINE, ids)] == ids
    assert await find_facts(db.conn, MINE, []) == []


async def test_an_ambiguous_beginning_names_the_candidates(db: ProjectedDatabase) -> None:
    first, second = with_equal_beginnings(4)
    known = [commit(first, added("One thing.")), commit(second, added("Another."))]
    await db.apply(*known)
    beginning = str(fact_id_at(known[0]))[:4]
    with pytest.raises(AmbiguousIdError, match=r"give more characters .*\(One thing\.\)") as caught:
        await resolve_fact_id(db.conn, TENANT, beginning)
    assert {one for one, _ in caught.value.candidates} == {str(fact_id_at(one)) for one in known}


async def test_other_scopes_do_not_make_it_ambiguous(db: ProjectedDatabase) -> None:
    mine = commit("1", added("Mine."))
    await db.apply(mine, commit("1", added("Bob's."), scope=BOB))
    assert await resolve_fact_id(db.conn, MINE, str(fact_id_at(mine))[:8]) == fact_id_at(mine)


async def test_a_fact_of_another_scope_is_told_so_and_one_of_another_tenant_is_not(db: ProjectedDatabase) -> None:
    of_bob = commit("1", added("Bob's."), scope=BOB)
    await db.apply(of_bob)
    with pytest.raises(UnknownFactError, match="is not of user_id 'alice', but of user_id 'bob'"):
        await resolve_fact_id(db.conn, MINE, fact_id_at(of_bob))
    elsewhere = ScopeFilter(tenant="other", user_id="**", agent_id="**", app_id="**", run_id="**")
    for given in (fact_id_at(of_bob), str(fact_id_at(of_bob))[:8]):
        with pytest.raises(UnknownFactError, match="not known in tenant 'other': check the id"):
            await resolve_fact_id(db.conn, elsewhere, given)


@pytest.mark.parametrize("given", ["abc", "not an id", "", "\x00abcd", "\ud83dabcd", "f" * 33, 7, None, b"abcd"])
async def test_what_is_no_id_is_refused_by_name(db: ProjectedDatabase, given: object) -> None:
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
    for unknown in ("ord", "order-8", "chat-1%"):
        with pytest.raises(UnknownTurnError):
            await find_turn(db.conn, TENANT, unknown)
    with pytest.raises(UnknownTurnError):
        await find_turn(db.conn, ScopeFilter.of_scope(Scope(user_id="eve")), "chat-1")


async def test_a_turn_of_several_users_asks_whose(db: ProjectedDatabase) -> None:
    await db.apply(commit("chat-1", added("A.")), commit("chat-1", added("B."), scope=BOB))
    with pytest.raises(AmbiguousTurnError, match="give the user_id"):
        await find_turn(db.conn, TENANT, "chat-1")
    assert (await find_turn(db.conn, MINE, "chat-1")).scope == ALICE


async def test_a_short_id_is_as_long_as_it_has_to_be(db: ProjectedDatabase) -> None:
    first, second = with_equal_beginnings(5)
    known = [commit(first, added("One thing.")), commit(second, added("Another.")), commit("1", added("A third."))]
    await db.apply(known[2])
    third = fact_id_at(known[2])
    assert await short_ids(db.conn, [third, event_id_at(known[2])]) == {
        third: str(third)[:8],
        event_id_at(known[2]): str(event_id_at(known[2]))[:8],
    }
    assert await short_ids(db.conn, []) == {}


async def test_ids_that_begin_alike_are_shown_longer_and_found_again(db: ProjectedDatabase) -> None:
    one = commit("1", added("Lives in Bern."), added("Has a cat."))
    await db.apply(one)
    shown = {UUID(f"aaaaaaaa-bbbb-{tail}-8000-000000000000"): f"aaaaaaaa-bbbb-{tail}" for tail in ("5ccc", "5ccd")}
    for number, alike in enumerate(shown):
        await db.conn.execute("UPDATE facts SET fact_id = %s WHERE fact_id = %s", (alike, fact_id_at(one, number)))
    assert await short_ids(db.conn, list(shown)) == shown
    for fact_id, short in shown.items():
        assert await resolve_fact_id(db.conn, TENANT, short) == fact_id
