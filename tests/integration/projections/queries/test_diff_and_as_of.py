"""What a diff tells agrees with what is known at both ends of its interval, over random histories."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.diff import Change, Diff, diff
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    Draft,
    added,
    commit,
    contradicted,
    corrected,
    day,
    event_id_at,
    expired,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    retracted,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

LAST = 12
"""The day of the last event; true times lie on days before and after it as well."""
LATER = day(100)
JUST_BEFORE = timedelta(microseconds=1)
KINDS = ("added", "late", "replaced", "contradicted", "merged", "retracted", "deleted", "expired", "corrected")
HELD = ("pending", "confirmed", "rejected", "undone")


@dataclass(frozen=True)
class Step:
    """One event on the `target`th fact from the last on, with the days of its beginning and end."""

    kind: str
    target: int
    begins: int
    ends: int


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from([*KINDS, *HELD, "replaced", "replaced"]),
        target=st.integers(0, 2),
        begins=st.integers(0, LAST + 3),
        ends=st.integers(0, LAST + 3),
    ),
    min_size=3,
    max_size=LAST,
)


class Histories:
    """Random histories, each of a person of its own."""

    def __init__(self, db: ProjectedDatabase) -> None:
        self._db = db
        self._commands = CommandHarness(db)
        self._numbers = itertools.count()

    async def check(self, steps: Sequence[Step], since: int, until: int) -> None:
        scope = Scope(user_id=f"user-{next(self._numbers)}")
        await self._live(scope, steps)
        mine, start, end = ScopeFilter.of_scope(scope), day(since), day(until)
        await self._check_truth(mine, start, end)
        await self._check_belief(mine, start, end)

    async def _live(self, scope: Scope, steps: Sequence[Step]) -> None:
        known: list[UUID] = []
        commits: list[Commit] = []
        for number, step in enumerate(steps):
            source, at = f"{scope.user_id}-{number}", day(number)
            if step.kind == "undone":
                if commits:
                    named = event_id_at(commits[step.target % len(commits)])
                    await self._commands.execute(source, Undo(event_id=named), at=at, scope=scope)
                continue
            target = known[-1 - step.target % len(known)] if known else UUID(int=1)
            one = commit(source, _draft(step, f"Fact {number}.", target), at=at, scope=scope)
            await self._db.apply(one)
            commits.append(one)
            known.extend(fact.fact_id for event in one.events if (fact := event.new_fact))

    async def _check_truth(self, mine: ScopeFilter, start: datetime, end: datetime) -> None:
        """As it is known at last: what became or ceased to be so leads from the one end to the other."""
        found = await diff(self._db.conn, mine, start, end, axis="true")
        changes = [change for _, change in found.in_order]
        before, after = await self._true_at(mine, start), await self._true_at(mine, end)
        assert all(start <= change.at < end for change in changes)
        assert after - before <= _named(changes)
        assert before - after <= _old(changes)
        assert not _old(changes) & after
        assert _named(changes) <= await self._believed(mine)

    async def _check_belief(self, mine: ScopeFilter, start: datetime, end: datetime) -> None:
        """What was learned, and what began or ended meanwhile, leads from the one end to the other."""
        found = await diff(self._db.conn, mine, start, end)
        before, after = await self._known_at(mine, start), await self._known_at(mine, end)
        assert _ids(found, "gained") == after - before
        assert _ids(found, "lost") == before - after
        changes = [change for _, change in found.in_order]
        touched = _named(changes) | _old(changes)
        timed = await diff(self._db.conn, mine, start, end, axis="true")
        turned = {change.fact_id for _, change in timed.in_order} | _old([change for _, change in timed.in_order])
        rest = (_ids(found, "gained") | _ids(found, "lost")) - touched - turned
        assert not rest or await self._only_time_has_passed(mine, rest, start, end)

    async def _only_time_has_passed(
        self, mine: ScopeFilter, fact_ids: set[UUID | None], start: datetime, end: datetime
    ) -> bool:
        """Whether the beginning or the end of each of these facts, as it was known at the end, is in the interval."""
        rows = [one for one in await facts(self._db.conn, mine, all_versions=True, at=LATER) if one.fact_id in fact_ids]
        return all(
            any(start <= moment < end for moment in (one.true_from, one.valid_until, one.true_to) if moment)
            for one in rows
        )

    async def _true_at(self, mine: ScopeFilter, moment: datetime) -> set[UUID | None]:
        found = await facts_as_of(self._db.conn, mine, believed_at=LATER, true_at=moment - JUST_BEFORE)
        return {fact.fact_id for fact in found}

    async def _known_at(self, mine: ScopeFilter, moment: datetime) -> set[UUID | None]:
        ends = moment - JUST_BEFORE
        return {one.fact_id for one in await facts_as_of(self._db.conn, mine, believed_at=ends, true_at=ends)}

    async def _believed(self, mine: ScopeFilter) -> set[UUID | None]:
        every = await facts(self._db.conn, mine, all_versions=True, at=LATER)
        return {None} | {one.fact_id for one in every if one.believed_from and not one.believed_to}


def _draft(step: Step, text: str, target: UUID) -> Draft:
    begins, ends = day(step.begins), day(step.ends)
    drafts: dict[str, Draft] = {
        "added": added(text, true_from=begins, valid_until=ends if step.ends > step.begins else None),
        "late": added(text, true_from=min(begins, ends), ended_at=ends, ended_by=target),
        "replaced": replaced(text, target, ended_at=ends, true_from=begins),
        "contradicted": contradicted(text, target, true_from=begins),
        "merged": merged(text, target, true_from=begins),
        "retracted": retracted(target, ended_at=ends, text=text, true_from=begins),
        "deleted": retracted(target),
        "expired": expired(target, ended_at=ends),
        "corrected": corrected(text, target, true_from=begins),
        "pending": pending(text, target, action="replace", ended_at=ends, true_from=begins),
        "confirmed": pending_confirmed(target, action="replace", ended_at=ends),
        "rejected": pending_rejected(target),
    }
    return drafts[step.kind]


def _named(changes: Sequence[Change]) -> set[UUID | None]:
    return {change.fact_id for change in changes}


def _old(changes: Sequence[Change]) -> set[UUID | None]:
    return {old.fact_id for change in changes for old in change.old}


def _ids(found: Diff, name: str) -> set[UUID | None]:
    return {fact.fact_id for fact in getattr(found, name)}


def test_a_diff_leads_from_what_is_known_at_one_end_to_the_other(database: str) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        histories = Histories(runner.run(stack.enter_async_context(ProjectedDatabase.open(database))))

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(steps=STEPS, ends=st.tuples(st.integers(0, LAST + 3), st.integers(0, LAST + 3)).map(sorted))
        def check(steps: list[Step], ends: list[int]) -> None:
            runner.run(histories.check(steps, *ends))

        try:
            check()
        finally:
            runner.run(stack.aclose())
