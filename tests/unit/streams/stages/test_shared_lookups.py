"""What several records ask at once is asked in one statement; one that is at fault fails alone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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

    async def answer(self, names: list[str]) -> list[int]:
        self.asked.append(names)
        await self.gate.wait()
        if "bad" in names:
            raise psycopg.DataError("no column holds this")
        return list(map(int, names))

    async def source_statuses(self, sources: Sequence[SourceQuery]) -> list[SourceStatus]:
        names = [source_id for _, source_id, _ in sources]
        return [SourceStatus(scope_version=number) for number in await self.answer(names)]

    async def find_many(self, requests: Sequence[CandidateRequest]) -> list[CandidateLists]:
        names = [request.speaker or "" for request in requests]
        return [CandidateLists(scope_version=number, candidates=()) for number in await self.answer(names)]


def turn_of(speaker: str) -> CandidateRequest:
    return CandidateRequest(scope=Scope(user_id="u"), queries=(), at=datetime(2026, 3, 1, tzinfo=UTC), speaker=speaker)


Ask = Callable[[CountedFinder, str], Awaitable[SourceStatus | CandidateLists]]
status: Ask = lambda finder, name: finder.source_status("o", name, None)  # noqa: E731 -- two one-line questions
candidates: Ask = lambda finder, name: finder.find(turn_of(name))  # noqa: E731 -- as above


@pytest.mark.parametrize(
    ("ask", "sizes"),
    [(status, [1, 1, 4]), (candidates, [1, 1, MAX_TURNS_AT_ONCE, 1])],
    ids=["statuses", "candidates"],
)
async def test_what_is_asked_while_a_statement_runs_is_asked_in_the_next(ask: Ask, sizes: list[int]) -> None:
    finder, asking = CountedFinder(), []
    for number in range(sum(sizes)):
        asking.append(asyncio.ensure_future(ask(finder, str(number))))
        await asyncio.sleep(0.01 if number < 2 else 0)  # each of the first two goes alone: two run at once
    finder.gate.set()
    found = await asyncio.gather(*asking)
    assert [one.scope_version for one in found] == list(range(sum(sizes)))
    assert [len(names) for names in finder.asked] == sizes
    await finder.close()


@pytest.mark.parametrize("ask", [status, candidates], ids=["statuses", "candidates"])
async def test_a_source_at_fault_fails_alone(ask: Ask) -> None:
    finder = CountedFinder()
    finder.gate.set()
    found = await asyncio.gather(*(ask(finder, name) for name in ("1", "bad", "3", "4")), return_exceptions=True)
    assert [one.scope_version for one in found if not isinstance(one, BaseException)] == [1, 3, 4]
    assert isinstance(found[1], psycopg.DataError)
    await finder.close()
    with pytest.raises(BatcherClosedError):
        await ask(finder, "5")


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
