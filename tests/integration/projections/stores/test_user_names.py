"""The names by which a scope knows its user, and whose facts of a key come first; on a real Postgres."""

from typing import Any

import pytest

from mnemolog.projections.stores.facts import CandidateFinder, CandidateLists, CandidateRequest
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import Reversal
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, CandidateQuery
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
    replaced,
    undone,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

NAMED: dict[str, Any] = {"key": "name", "speaker": None}


async def looked_up(
    db: ProjectedDatabase, *, speaker: str | None = None, subject: str | None = None, scope: Scope = ALICE
) -> CandidateLists:
    query = CandidateQuery(
        vector=vector_with_similarity(1), content_hash="none", min_similarity=0.99, key="home_city", subject=subject
    )
    request = CandidateRequest(scope=scope, queries=[query], at=day(9), speaker=speaker)
    return await CandidateFinder(db.pool, user_words=USER_WORDS).find(request)


def speaks(source: str, speaker: str | None, at: float, scope: Scope = ALICE) -> Commit:
    return commit(source, added(f"Said in {source}.", speaker=speaker), scope=scope, at=day(at))


async def test_the_first_speaker_of_a_scope_is_its_user(db: ProjectedDatabase) -> None:
    assert (await looked_up(db)).user_names == ()
    assert (await looked_up(db, speaker="Alice")).user_names == ("Alice",)
    await db.apply(speaks("1", None, 1), speaks("2", "Alice", 2), speaks("3", "Tom", 3), speaks("4", "Bob", 0, BOB))
    assert (await looked_up(db)).user_names == ("Alice",)
    assert (await looked_up(db, speaker="Tom")).user_names == ("Alice",)
    assert (await looked_up(db, scope=BOB)).user_names == ("Bob",)


async def test_a_speaker_who_is_called_the_user_is_not_named(db: ProjectedDatabase) -> None:
    assert (await looked_up(db, speaker="User")).user_names == ()
    await db.apply(speaks("1", "user", 1))
    assert (await looked_up(db, speaker="Alice")).user_names == ("Alice",)
    await db.apply(speaks("2", "Alice", 2))
    assert (await looked_up(db, speaker="user")).user_names == ("Alice",)


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
    assert (await looked_up(db)).user_names == ("Alice",)


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
    assert (await looked_up(db)).user_names == ("Ali", "Alice", "Alice Kovac", "Alice Meyer")


async def test_the_names_are_bounded(db: ProjectedDatabase) -> None:
    names = [added(f"Is called N{number:02}.", value=f"N{number:02}", **NAMED) for number in range(25)]
    too_long = added("Is called something long.", value="x" * 101, **NAMED)
    await db.apply(commit("1", *names, too_long))
    found = (await looked_up(db, speaker="Alice")).user_names
    assert len(found) == 21
    assert found[0] == "Alice"


async def test_a_scope_without_a_user_has_no_user_names(db: ProjectedDatabase) -> None:
    agent = Scope(agent_id="helper")
    await db.apply(speaks("1", "Alice", 1, agent))
    assert (await looked_up(db, scope=agent, speaker="Alice")).user_names == ()


@pytest.mark.parametrize("subject", [None, "the user", "der Nutzer", "alice"])
@pytest.mark.parametrize("stated", [None, "The user", "Alice"])
async def test_the_home_of_friends_does_not_push_out_that_of_the_user(
    db: ProjectedDatabase, subject: str | None, stated: str | None
) -> None:
    home: dict[str, Any] = {"key": "home_city", "speaker": "Alice"}
    friends = [
        added(f"Friend {number} lives near.", subject=f"Friend {number}", vector=vector_with_similarity(0.9), **home)
        for number in range(MAX_CANDIDATES_OF_KEY + 2)
    ]
    own = added("Lives far away.", subject=stated, vector=vector_with_similarity(0), **home)
    await db.apply(commit("1", *friends, own))
    (found,) = (await looked_up(db, subject=subject)).candidates
    assert len(found) == MAX_CANDIDATES_OF_KEY
    assert "Lives far away." in [known.text for known in found]
