"""Profiles, present and as they were published, asked of a real Postgres, against what was seen when they were."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.queries.facts import FACT_SECTIONS, facts, facts_as_of, profile, published_profile
from mnemolog.projections.queries.results import Fact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import MAX_TOP_K, SearchOptions, search
from mnemolog.schemas.command import (
    CommandPayload,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    EndSession,
    SetPolicy,
    Undo,
    Update,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import Policy, ProfilePublishing
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    added,
    command_commit,
    commit,
    contradicted,
    day,
    expired,
    fact_id_at,
    merged,
    pending,
    policy_set,
    replaced,
    retracted,
    skipped,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)
SECTION_OF_CATEGORY = {
    "identity": "identity",
    "hard_preference": "hard_preferences",
    "soft_preference": "soft_preferences",
    "task_context": "current_tasks",
    "health": "sensitive_topics",
    "finance": "sensitive_topics",
    "professional": "work",
    "relationship": "relationships",
}
DAYS = st.integers(0, 6)
UNKNOWN = UUID(int=1)
"""What pending facts would overwrite: it is not known any more."""


@dataclass(frozen=True)
class Known:
    """A fact with its times in days; `is_pending` of one that waits for a confirmation."""

    category: str
    begins: int
    ends: int | None
    is_pending: bool

    def section(self, at: int) -> str:
        return "upcoming" if self.begins > at else SECTION_OF_CATEGORY.get(self.category, "other")


KNOWN = st.builds(
    Known,
    category=st.sampled_from([*CATEGORIES, "hobby"]),
    begins=DAYS,
    ends=st.none() | DAYS,
    is_pending=st.sampled_from([False, False, True]),
)


async def check_readers(db: ProjectedDatabase, scope: Scope, known: Sequence[Known], at: int) -> None:
    drafts = [
        (partial(pending, f"{place}", UNKNOWN) if one.is_pending else partial(added, f"{place}"))(
            category=one.category,
            true_from=day(one.begins),
            valid_until=None if one.ends is None else day(one.ends),
            search_text="fact",
        )
        for place, one in enumerate(known)
    ]
    await db.apply(commit(scope.owner, *drafts, scope=scope))
    mine, conn = ScopeFilter.of_scope(scope), db.conn
    listed = {place: one for place, one in enumerate(known) if one.ends is None or one.ends > at}
    active = {place: one for place, one in listed.items() if not one.is_pending}
    assert marks(await facts(conn, mine, at=day(at))) == {place: one.begins > at for place, one in active.items()}
    found = await search(conn, mine, "fact", None, SearchOptions(limit=MAX_TOP_K), at=day(at))
    assert marks(hit.fact for hit in found) == {place: one.begins > at for place, one in listed.items()}
    held = await facts_as_of(conn, mine, believed_at=day(9), true_at=day(at))
    assert marks(held) == {place: False for place, one in active.items() if one.begins <= at}
    shown = await profile(conn, mine, day(at))
    places = [(int(entry["text"]), name) for name in (*FACT_SECTIONS, "upcoming") for entry in getattr(shown, name)]
    assert Counter(places) == {(place, one.section(at)): 1 for place, one in active.items()}


def marks(found: Any) -> dict[int, bool]:
    """What begins later, by the place of each fact."""
    facts_found: Iterator[Fact] = iter(found)
    return {int(fact.text): fact.begins_later for fact in facts_found}


def test_all_readers_agree_and_each_active_fact_is_in_one_section(database: str) -> None:
    numbers = itertools.count()
    with database_for_examples(database) as (db, run):

        @settings(max_examples=60)
        @given(known=st.lists(KNOWN, min_size=1, max_size=20), at=DAYS)
        def check(known: list[Known], at: int) -> None:
            run(check_readers(db, Scope(user_id=f"user-{next(numbers)}"), known, at))

        check()


def policy(**rules: Any) -> Commit:
    rule = Policy(**rules)
    return command_commit("policy", SetPolicy(level="scope", policy=rule), policy_set(rule), at=day(-1))


def end_session(number: int, *, at: float, scope: Scope = ALICE) -> Commit:
    return command_commit(f"end{number}", EndSession(), at=day(at), scope=scope)


def turn(number: int) -> Commit:
    return commit(f"t{number}", added(f"Fact {number}."), at=day(number))


async def published(db: ProjectedDatabase, at: float = 50) -> Profile:
    return await published_profile(db.conn, MINE, day(at))


def texts(known: Profile) -> list[str]:
    return sorted(entry["text"] for entry in known.other)


async def test_without_a_policy_a_profile_is_published_with_each_change_and_has_its_sources(
    db: ProjectedDatabase,
) -> None:
    assert await profile(db.conn, MINE, day(0)) == await published(db) == Profile()
    city: dict[str, Any] = {"category": "identity", "key": "home_city"}
    first = commit("t1", added("Lives in Bern.", excerpt="I live in Bern", value="Bern", **city))
    moved = replaced("Lives in Rome.", fact_id_at(first), excerpt="I moved to Rome", value="Rome", **city)
    second = commit("t2", moved, at=day(1))
    await db.apply(first, second)
    known = await published(db)
    (entry,) = known.identity
    assert (entry["value"], entry["confidence"], entry["fact_id"]) == ("Rome", 0.95, str(fact_id_at(second)))
    for one in (entry, *known.recent_changes):
        assert (one["source_id"], one["excerpt"]) == ("t2", "I moved to Rome")
    assert (known.published_at, known.updated_at, len(known.recent_changes)) == (None, second.decided_at, 1)


async def test_by_turns_it_is_published_after_each_fifth_unless_told_otherwise(db: ProjectedDatabase) -> None:
    await db.apply(policy(publish_profile="every_turns"), *map(turn, range(1, 5)))
    assert await published(db) == Profile()
    nothing, failed = commit("t5", at=day(5)), commit("f", at=day(4.5), outcome="failed", reason="invalid_reply")
    await db.apply(failed, nothing, *map(turn, range(6, 10)))
    known = await published(db)
    assert (texts(known), known.published_at) == ([f"Fact {one}." for one in range(1, 5)], nothing.decided_at)
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


TOLD = "Alice takes lithium."


def of_secret(order: type[Delete | Correct | Update], place: int = 0) -> Callable[[list[Commit]], CommandPayload]:
    """A command about the fact of the commit at `place`."""

    def made(commits: list[Commit]) -> CommandPayload:
        fact_id = fact_id_at(commits[place])
        edit = Edit(fact_id=fact_id, text="Alice sings.")
        if order is Delete:
            return Delete(fact_ids=(fact_id,))
        return Correct(edit=edit) if order is Correct else Update(edits=(edit,))

    return made


MERGED = commit("t2", merged("Alice takes lithium at noon.", fact_id_at(commit("t1", added(TOLD))), category="health"))
REPLACED = commit("t2", replaced("No lithium, but tea.", fact_id_at(commit("t1", added(TOLD))), category="health"))
TAKEN_BACK: dict[str, tuple[list[Commit], list[Callable[[list[Commit]], CommandPayload]]]] = {
    "deleted": ([], [of_secret(Delete)]),
    "all deleted": ([], [lambda _: DeleteAll()]),
    "a category deleted": ([], [lambda _: DeleteAll(category="health")]),
    "corrected": ([], [of_secret(Correct)]),
    "corrected, and that deleted": ([], [of_secret(Correct), of_secret(Delete, -1)]),
    "updated": ([], [of_secret(Update)]),
    "undone": ([], [lambda _: Undo(source_id="t1")]),
    "merged, and that deleted": ([MERGED], [of_secret(Delete, 1)]),
    "merged, and that corrected": ([MERGED], [of_secret(Correct, 1)]),
    "merged, all deleted": ([MERGED], [lambda _: DeleteAll()]),
    "replaced, and both undone": ([REPLACED], [lambda _: Undo(source_id="t2"), lambda _: Undo(source_id="t1")]),
    "the merge undone, the rest deleted": ([MERGED], [lambda _: Undo(source_id="t2"), of_secret(Delete)]),
    "deleted, restored, deleted": ([], [of_secret(Delete), lambda _: Undo(source_id="c0"), of_secret(Delete)]),
}


@pytest.mark.parametrize("time", ["at_once", "session_end"])
@pytest.mark.parametrize("way", TAKEN_BACK)
async def test_what_was_taken_back_is_in_no_profile_and_in_no_context(
    db: ProjectedDatabase, way: str, time: ProfilePublishing
) -> None:
    more, orders = TAKEN_BACK[way]
    commits = [commit("t1", added(TOLD, category="health")), *more]
    await db.apply(policy(publish_profile=time, profile_every=1), *commits, end_session(1, at=2))
    assert "lithium" in repr(await published(db))
    harness = CommandHarness(db)
    for number, order in enumerate(orders):
        done = await harness.execute(f"c{number}", order(commits), at=day(10 + number))
        assert done.outcome == "done", done.detail
        commits.append(done)
    for known in (await published(db), await profile(db.conn, MINE, day(50))):
        assert "lithium" not in str([getattr(known, name) for name in Profile.__slots__])
    assert "lithium" not in str(await lasting_facts(db.conn, [MINE], day(50)))


MOVED_ON: dict[str, Callable[[UUID], Draft]] = {
    "replaced": lambda old: replaced("Rather tea.", old),
    "merged": lambda old: merged("Rather tea.", old),
    "denied": lambda old: contradicted("Rather tea.", old),
    "ended": lambda old: retracted(old, ended_at=day(1), text="Rather tea."),
    "expired": lambda old: expired(old, ended_at=day(1), text="Rather tea."),
}


@pytest.mark.parametrize("time", ["at_once", "session_end"])
@pytest.mark.parametrize("way", MOVED_ON)
async def test_what_moved_on_is_the_old_of_the_change_that_ended_it_and_nothing_else(
    db: ProjectedDatabase, way: str, time: ProfilePublishing
) -> None:
    first = commit("t1", added(TOLD, category="health"))
    moved = commit("t2", MOVED_ON[way](fact_id_at(first)), at=day(1))
    await db.apply(policy(publish_profile=time), first, moved, end_session(1, at=2))
    for denied in (False, True):
        if denied:
            await db.apply(commit("t3", contradicted("Never.", fact_id_at(moved)), at=day(3)))
        for known in (await published(db), await profile(db.conn, MINE, day(50))):
            assert TOLD not in str([getattr(known, name) for name in Profile.__slots__ if name != "recent_changes"])
            changes = [(one["text"], [old["text"] for old in one["old"]]) for one in known.recent_changes]
            assert [one for one in changes if TOLD in str(one)] == ([] if denied else [("Rather tea.", [TOLD])])
        lasting, listed = await lasting_facts(db.conn, [MINE], day(50)), await facts(db.conn, MINE, at=day(50))
        assert TOLD not in str((lasting, listed, await search(db.conn, MINE, TOLD, None, SearchOptions(), at=day(50))))


async def test_an_undone_merge_leaves_its_parts_in_a_published_profile(db: ProjectedDatabase) -> None:
    first = commit("t1", added(TOLD, category="health"))
    await db.apply(policy(publish_profile="session_end"), first, end_session(1, at=1), MERGED, end_session(2, at=2))
    assert [entry["text"] for entry in (await published(db)).sensitive_topics] == ["Alice takes lithium at noon."]
    await CommandHarness(db).execute("c1", Undo(source_id="t2"), at=day(3))
    for known in (await published(db), await profile(db.conn, MINE, day(50))):
        assert [entry["text"] for entry in known.sensitive_topics] == [TOLD]


def history(source: Random, length: int) -> Iterator[Commit]:
    """Turns that add, repeat, replace, deny and end facts, and commands that undo."""
    known: list[Commit] = []
    for number in range(length):
        target = fact_id_at(source.choice(known)) if known else None
        new: dict[str, Any] = {"category": source.choice([*SECTION_OF_CATEGORY, "other"])}
        term = source.choice([None, None, day(45), day(60)])
        draft = source.choice(
            [added(f"New {number}.", valid_until=term, **new)]
            if target is None
            else [
                added(f"New {number}.", valid_until=term, **new),
                skipped(target, true_from=day(-source.randint(1, 9))),
                replaced(f"Instead {number}.", target, ended_at=day(number), **new),
                contradicted(f"No {number}.", target, **new),
                retracted(target),
                retracted(target, ended_at=day(number)),
            ]
        )
        made = commit(f"s{number}", draft, at=day(number))
        if made.events[0].new_fact is not None:
            known.append(made)
        yield made


@pytest.mark.parametrize("seed", range(5))
async def test_a_published_profile_has_what_was_seen_when_it_was_published_as_far_as_it_is_still_so(
    db: ProjectedDatabase, seed: int
) -> None:
    source, at = Random(seed), day(50)
    every = source.randint(2, 4)
    await db.apply(policy(publish_profile="every_turns", profile_every=every))
    expected = Profile()
    for number, made in enumerate(history(source, 24), start=1):
        await db.apply(made)
        present = await profile(db.conn, MINE, at)
        if number % every == 0:
            expected = replace(present, updated_at=made.decided_at, published_at=made.decided_at)
        shown = without_sources(await published_profile(db.conn, MINE, at))
        assert replace(shown, recent_changes=[]) == replace(still_true(expected, present), recent_changes=[])
        rows = await db.rows("SELECT fact_id FROM facts WHERE status IN ('archived', 'undone')")
        denied = {str(fact_id) for (fact_id,) in rows}
        assert denied.isdisjoint(one["fact_id"] for one in shown.recent_changes)


def still_true(seen: Profile, present: Profile) -> Profile:
    """What was seen, as it is now."""
    known = {one["fact_id"] for name in (*FACT_SECTIONS, "upcoming") for one in getattr(seen, name)}
    left: dict[str, Any] = {
        name: [one for one in getattr(present, name) if one["fact_id"] in known]
        for name in (*FACT_SECTIONS, "upcoming")
    }
    return replace(seen, **left)


def without_sources(known: Profile) -> Profile:
    bare: dict[str, Any] = {
        name: [{key: value for key, value in one.items() if key not in ("source_id", "excerpt")} for one in found]
        for name in Profile.__slots__
        if isinstance(found := getattr(known, name), list)
    }
    return replace(known, **bare)
