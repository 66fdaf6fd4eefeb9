"""What begins later: facts, search, profile and as-of agree about it; and no active fact is missing in a profile."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.facts import FACT_SECTIONS, facts, facts_as_of, profile
from mnemolog.projections.queries.results import Fact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import MAX_TOP_K, SearchOptions, search
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, added, commit, day, fact_id_at, pending, replaced
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

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

    def is_listed(self, at: int) -> bool:
        return self.ends is None or self.ends > at

    def section(self, at: int) -> str:
        return "upcoming" if self.begins > at else SECTION_OF_CATEGORY.get(self.category, "other")


KNOWN = st.builds(
    Known,
    category=st.sampled_from([*CATEGORIES, "hobby"]),
    begins=DAYS,
    ends=st.none() | DAYS,
    is_pending=st.sampled_from([False, False, True]),
)


class KnownFacts:
    """Facts in scopes of their own, asked about with every query."""

    def __init__(self, db: ProjectedDatabase) -> None:
        self._db = db
        self._numbers = itertools.count()

    async def check(self, known: Sequence[Known], at: int) -> None:
        scope = Scope(user_id=f"user-{next(self._numbers)}")
        times = [(day(one.begins), None if one.ends is None else day(one.ends)) for one in known]
        drafts = [
            (partial(pending, f"Fact {place}.", UNKNOWN) if one.is_pending else partial(added, f"Fact {place}."))(
                category=one.category, true_from=begins, valid_until=ends
            )
            for place, (one, (begins, ends)) in enumerate(zip(known, times, strict=True))
        ]
        await self._db.apply(commit(scope.owner, *drafts, scope=scope))
        mine, conn = ScopeFilter.of_scope(scope), self._db.conn
        listed = {place: one for place, one in enumerate(known) if one.is_listed(at)}
        active = {place: one for place, one in listed.items() if not one.is_pending}
        assert marks(await facts(conn, mine, at=day(at))) == {place: one.begins > at for place, one in active.items()}
        found = await search(conn, mine, "fact", None, SearchOptions(top_k=MAX_TOP_K), at=day(at))
        assert marks([hit.fact for hit in found]) == {place: one.begins > at for place, one in listed.items()}
        held = await facts_as_of(conn, mine, believed_at=day(9), true_at=day(at))
        assert marks(held) == {place: False for place, one in active.items() if one.begins <= at}
        sections = {(place, one.section(at)): 1 for place, one in active.items()}
        assert places(await profile(conn, mine, day(at))) == sections


def marks(found: Sequence[Fact]) -> dict[int, bool]:
    return {_place(fact.text): fact.begins_later for fact in found}


def places(known: Profile) -> Counter[tuple[int, str]]:
    """How often each fact is in each section."""
    named = (*FACT_SECTIONS, "upcoming")
    return Counter((_place(entry["text"]), section) for section in named for entry in getattr(known, section))


def _place(text: str) -> int:
    return int(text.removeprefix("Fact ").removesuffix("."))


def test_all_readers_agree_and_each_active_fact_is_in_one_section(database: str) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        known_facts = KnownFacts(runner.run(stack.enter_async_context(ProjectedDatabase.open(database))))

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(known=st.lists(KNOWN, min_size=1, max_size=20), at=DAYS)
        def check(known: list[Known], at: int) -> None:
            runner.run(known_facts.check(known, at))

        try:
            check()
        finally:
            runner.run(stack.aclose())


async def test_an_announced_move_is_listed_beside_the_home_that_still_holds(db: ProjectedDatabase) -> None:
    home = commit("1", added("Lives in Berlin.", key="home_city", category="identity"))
    move = commit("2", replaced("Moves to Munich.", fact_id_at(home), ended_at=day(9), true_from=day(9)), at=day(1))
    await db.apply(home, move)
    mine = ScopeFilter.of_scope(ALICE)

    async def listed(at: datetime) -> list[tuple[str, bool]]:
        return [(fact.text, fact.begins_later) for fact in await facts(db.conn, mine, at=at)]

    assert await listed(day(2)) == [("Lives in Berlin.", False), ("Moves to Munich.", True)]
    assert await listed(day(9)) == [("Moves to Munich.", False)]
    known = await profile(db.conn, mine, day(2))
    assert [entry["text"] for entry in known.upcoming] == ["Moves to Munich."]
