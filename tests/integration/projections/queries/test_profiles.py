"""Profiles as they are published, asked of a real Postgres, against what was seen when they were."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import FACT_SECTIONS, facts, profile, published_profile
from mnemolog.projections.queries.results import Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Delete, EndSession, SetPolicy
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import Reversal
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    EventPlace,
    added,
    command_commit,
    commit,
    confirmed,
    contradicted,
    day,
    event_id_at,
    fact_id_at,
    policy_set,
    replaced,
    retracted,
    undone,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)
CATEGORIES = ("identity", "hard_preference", "soft_preference", "task_context", "health", "professional", "other")


def policy(scope: Scope = ALICE, **rules: Any) -> Commit:
    rule = Policy(**rules)
    return command_commit("policy", SetPolicy(level="scope", policy=rule), policy_set(rule), scope=scope, at=day(-1))


def end_session(number: int, *, at: float, scope: Scope = ALICE) -> Commit:
    return command_commit(f"end{number}", EndSession(), at=day(at), scope=scope)


def texts(known: Profile) -> list[str]:
    return [entry["text"] for entry in known.other]


def turn(number: int, *, at: float | None = None, scope: Scope = ALICE) -> Commit:
    return commit(f"t{number}", added(f"Fact {number}."), at=day(number if at is None else at), scope=scope)


async def published(db: ProjectedDatabase, at: float = 50) -> Profile:
    return await published_profile(db.conn, MINE, day(at))


async def test_without_a_policy_a_profile_is_published_with_each_change(db: ProjectedDatabase) -> None:
    await db.apply(turn(1), turn(2))
    known = await published(db)
    assert (sorted(texts(known)), known.published_at) == (["Fact 1.", "Fact 2."], None)


async def test_every_value_and_change_has_its_source(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Lives in Bern.", category="identity", excerpt="I live in Bern"))
    moved = replaced("Lives in Rome.", fact_id_at(first), category="identity", excerpt="I moved to Rome")
    await db.apply(first, commit("t2", moved, at=day(1)))
    known = await published(db)
    assert [(one["source_id"], one["excerpt"]) for one in known.identity] == [("t2", "I moved to Rome")]
    assert [(one["source_id"], one["excerpt"]) for one in known.recent_changes] == [("t2", "I moved to Rome")]


async def test_by_turns_it_is_published_after_each_fifth_unless_told_otherwise(db: ProjectedDatabase) -> None:
    await db.apply(policy(publish_profile="every_turns"), *map(turn, range(1, 5)))
    assert await published(db) == Profile()
    nothing, failed = commit("t5", at=day(5)), commit("f", at=day(4.5), outcome="failed", reason="invalid_reply")
    await db.apply(failed, nothing, *map(turn, range(6, 10)))
    known = await published(db)
    assert (sorted(texts(known)), known.published_at) == ([f"Fact {one}." for one in range(1, 5)], nothing.decided_at)
    await db.apply(turn(10))
    assert len(texts(await published(db))) == 9


async def test_the_end_of_a_session_publishes_and_only_that_of_this_scope(db: ProjectedDatabase) -> None:
    await db.apply(policy(publish_profile="session_end"), *map(turn, range(1, 8)))
    await db.apply(end_session(1, at=8, scope=BOB))
    assert await published(db) == Profile()
    await db.apply(end_session(2, at=9), turn(10))
    assert len(texts(await published(db))) == 7
    rejected = end_session(3, at=11).model_copy(update={"outcome": "rejected", "reason": "invalid_command"})
    await db.apply(rejected)
    assert len(texts(await published(db))) == 7


async def test_what_has_ended_since_is_not_shown_and_what_was_denied_since_is(db: ProjectedDatabase) -> None:
    first = commit("t1", added("A guest stays.", valid_until=day(5)), added("Owns a dog."))
    await db.apply(policy(publish_profile="session_end"), first, end_session(1, at=1))
    await db.apply(commit("t2", contradicted("Owns no dog.", fact_id_at(first, 1)), at=day(2)))
    assert sorted(texts(await published(db, at=3))) == ["A guest stays.", "Owns a dog."]
    assert texts(await published(db, at=6)) == ["Owns a dog."]


async def test_what_was_deleted_since_is_not_shown(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Owns a dog."), added("Owns a cat."))
    await db.apply(policy(publish_profile="session_end"), first, end_session(1, at=1))
    delete = Delete(fact_ids=(fact_id_at(first, 1),))
    await db.apply(command_commit("c1", delete, retracted(fact_id_at(first, 1)), at=day(2)))
    assert texts(await published(db, at=3)) == ["Owns a dog."]


async def test_a_change_whose_text_was_deleted_since_is_shown_no_more(db: ProjectedDatabase) -> None:
    first = commit("t1", *(added(f"Lives in {city}.") for city in ("Bern", "Rome", "Ulm")))
    moved = commit("t2", *(replaced(f"Left {one}.", fact_id_at(first, one)) for one in range(2)), at=day(1))
    over = commit("t3", retracted(fact_id_at(first, 2), ended_at=day(1)), at=day(1.5))
    await db.apply(policy(publish_profile="session_end"), first, moved, over, end_session(1, at=2))
    assert said(await published(db)) == {"Lives in Bern.", "Left 0.", "Lives in Rome.", "Left 1.", "Lives in Ulm."}
    gone = fact_id_at(moved)
    await db.apply(command_commit("c1", Delete(fact_ids=(gone,)), retracted(gone), at=day(3)))
    assert said(await published(db)) == {"Lives in Rome.", "Left 1.", "Lives in Ulm."}


def said(known: Profile) -> set[str]:
    """The texts of the changes, and of what they ended."""
    return {text for one in known.recent_changes for text in (one["text"], *(old["text"] for old in one["old"]))}


async def test_an_undo_is_not_seen_before_the_next_publication(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Lives in Bern."))
    moved = commit("t2", replaced("Lives in Rome.", fact_id_at(first)), at=day(1))
    back = undone(event_id_at(moved), Reversal(fact_id=fact_id_at(moved), now="active", before=None))
    await db.apply(policy(publish_profile="session_end"), first, moved, end_session(1, at=2))
    seen = await published(db)
    await db.apply(commit("t3", back, at=day(3)))
    assert await published(db) == seen
    assert (texts(seen), [change["text"] for change in seen.recent_changes]) == (["Lives in Rome."], ["Lives in Rome."])
    await db.apply(end_session(2, at=4))
    assert (texts(await published(db)), (await published(db)).recent_changes) == ([], [])


async def test_a_wider_scope_has_no_profile(db: ProjectedDatabase) -> None:
    with pytest.raises(QueryError, match="instead of"):
        await published_profile(db.conn, ScopeFilter(user_id="*"), day(1))


def said_earlier(target: UUID, begins: datetime) -> Draft:
    """The fact is told again, as true for longer than was known."""

    def draft(place: EventPlace) -> MemoryEvent:
        return confirmed(target)(place).model_copy(update={"true_from": begins})

    return draft


def history(source: Random, length: int) -> Iterator[Commit]:
    """Turns that add, repeat, replace, deny and end facts, and commands that undo."""
    known: list[Commit] = []
    for number in range(length):
        target = fact_id_at(source.choice(known)) if known else None
        category = source.choice(CATEGORIES)
        new: dict[str, Any] = {"category": category, "valid_until": source.choice([None, None, day(45), day(60)])}
        draft = source.choice(
            [added(f"New {number}.", **new)]
            if target is None
            else [
                added(f"New {number}.", **new),
                said_earlier(target, day(-source.randint(1, 9))),
                replaced(f"Instead {number}.", target, ended_at=day(number), category=category),
                contradicted(f"No {number}.", target, category=category),
                retracted(target),
            ]
        )
        made = commit(f"s{number}", draft, at=day(number))
        if made.events[0].new_fact is not None:
            known.append(made)
        yield made


@pytest.mark.parametrize("seed", range(8))
async def test_a_published_profile_is_the_one_that_was_seen_when_it_was_published(
    db: ProjectedDatabase, seed: int
) -> None:
    source, at = Random(seed), day(50)
    every = source.randint(2, 4)
    await db.apply(policy(publish_profile="every_turns", profile_every=every))
    expected = Profile()
    for number, made in enumerate(history(source, 24), start=1):
        await db.apply(made)
        if number % every == 0:
            seen = await profile(db.conn, MINE, at)
            expected = replace(seen, updated_at=made.decided_at, published_at=made.decided_at)
        known = await facts(db.conn, MINE, all_versions=True, at=at)
        gone = {str(fact.fact_id): fact.state_since for fact in known if fact.status == "retracted"}
        assert without_sources(await published_profile(db.conn, MINE, at)) == without(gone, expected)


def without(gone: Mapping[str, datetime], known: Profile) -> Profile:
    """Without what was deleted; a change that is itself the deletion stays."""
    sections = {name: getattr(known, name) for name in (*FACT_SECTIONS, "upcoming")}
    left: dict[str, Any] = {
        name: [one for one in found if one["fact_id"] not in gone] for name, found in sections.items()
    }
    changes = [
        one
        for one in known.recent_changes
        if known.published_at is None or gone.get(one["fact_id"], known.published_at) <= known.published_at
    ]
    return replace(known, **left, recent_changes=changes)


def without_sources(known: Profile) -> Profile:
    lists = {name: getattr(known, name) for name in Profile.__slots__ if isinstance(getattr(known, name), list)}
    bare: dict[str, Any] = {
        name: [{key: value for key, value in one.items() if key not in ("source_id", "excerpt")} for one in found]
        for name, found in lists.items()
    }
    return replace(known, **bare)
