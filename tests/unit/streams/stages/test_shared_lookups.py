"""What several records ask at once is asked in one statement; one that is at fault fails alone."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest

from mnemolog.projections.stores.facts import CandidateLists, CandidateRequest, SourceQuery, SourceStatus
from mnemolog.schemas.policy import EffectivePolicy, Limits, Policy, StoredPolicies
from mnemolog.schemas.scope import Scope
from mnemolog.streams.errors import BatcherClosedError
from mnemolog.streams.stages.shared_lookups import MAX_TURNS_AT_ONCE, SharedCandidateFinder, SharedPolicies

NO_POOL = cast("Any", None)


class CountedFinder(SharedCandidateFinder):
    """Answers when it is let; the scope's version is the number of the source."""

    def __init__(self) -> None:
        super().__init__(NO_POOL, limit=10)
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()

    async def source_statuses(self, sources: Sequence[SourceQuery]) -> list[SourceStatus]:
        names = [source_id for _, source_id, _ in sources]
        self.asked.append(names)
        await self.gate.wait()
        if "bad" in names:
            raise psycopg.DataError("no column holds this")
        return [SourceStatus(scope_version=int(name)) for name in names]

    async def find_many(self, requests: Sequence[CandidateRequest]) -> list[CandidateLists]:
        names = [request.speaker or "" for request in requests]
        self.asked.append(names)
        await self.gate.wait()
        if "bad" in names:
            raise psycopg.DataError("no column holds this")
        return [CandidateLists(scope_version=int(name), candidates=()) for name in names]


def turn_of(speaker: str) -> CandidateRequest:
    return CandidateRequest(scope=Scope(user_id="u"), queries=(), at=datetime(2026, 3, 1, tzinfo=UTC), speaker=speaker)


async def test_what_is_asked_while_a_statement_runs_is_asked_in_the_next() -> None:
    finder = CountedFinder()
    asking = []
    for number in range(6):
        asking.append(asyncio.create_task(finder.source_status("o", str(number), None)))
        await asyncio.sleep(0.01 if number < 2 else 0)  # each of the first two goes alone: two run at once
    finder.gate.set()
    statuses = await asyncio.gather(*asking)
    assert [status.scope_version for status in statuses] == list(range(6))
    assert finder.asked == [["0"], ["1"], ["2", "3", "4", "5"]]
    await finder.close()


async def test_a_source_at_fault_fails_alone() -> None:
    finder = CountedFinder()
    finder.gate.set()
    asking = [asyncio.create_task(finder.source_status("o", name, None)) for name in ("1", "bad", "3", "4")]
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [one.scope_version for one in found if isinstance(one, SourceStatus)] == [1, 3, 4]
    assert isinstance(found[1], psycopg.DataError)
    await finder.close()
    with pytest.raises(BatcherClosedError):
        await finder.source_status("o", "5", None)


async def test_turns_that_look_for_candidates_share_statements() -> None:
    finder = CountedFinder()
    asking = []
    for number in range(2 + MAX_TURNS_AT_ONCE + 1):
        asking.append(asyncio.create_task(finder.find(turn_of(str(number)))))
        await asyncio.sleep(0.01 if number < 2 else 0)
    finder.gate.set()
    found = await asyncio.gather(*asking)
    assert [one.scope_version for one in found] == list(range(len(asking)))
    assert [len(names) for names in finder.asked] == [1, 1, MAX_TURNS_AT_ONCE, 1]
    await finder.close()


async def test_a_turn_at_fault_finds_no_candidates_alone() -> None:
    finder = CountedFinder()
    finder.gate.set()
    asking = [asyncio.create_task(finder.find(turn_of(name))) for name in ("1", "bad", "3", "4")]
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [one.scope_version for one in found if isinstance(one, CandidateLists)] == [1, 3, 4]
    assert isinstance(found[1], psycopg.DataError)
    await finder.close()
    with pytest.raises(BatcherClosedError):
        await finder.find(turn_of("5"))


def policies_of(scope: Scope) -> StoredPolicies:
    return StoredPolicies(scope=Policy(limits=Limits(active_facts=int(scope.user_id or ""))))


class CountedPolicies(SharedPolicies):
    def __init__(self) -> None:
        super().__init__(NO_POOL)
        self.asked: list[int] = []

    async def stored_policies(self, scopes: Sequence[Scope]) -> list[StoredPolicies]:
        self.asked.append(len(scopes))
        return [policies_of(scope) for scope in scopes]


async def test_each_scope_gets_its_own_policies() -> None:
    policies = CountedPolicies()
    scopes = [Scope(user_id=str(number)) for number in range(8)]
    found = await asyncio.gather(*(policies.effective_policy(scope, EffectivePolicy()) for scope in scopes))
    assert found == [policies_of(scope).overlay(EffectivePolicy()) for scope in scopes]
    assert len({str(one) for one in found}) == 8
    assert policies.asked == [8]
    await policies.close()
