"""Lookups of several records in one statement: what is asked while one runs goes to Postgres together in the next."""

from typing import Any, Final

from mnemolog.projections.database import Pool
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.faults import RECORD_ERRORS
from mnemolog.projections.stores.facts import (
    CandidateFinder,
    CandidateLists,
    CandidateRequest,
    SourceQuery,
    SourceStatus,
)
from mnemolog.projections.stores.turns import PolicyStore
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.scope import Scope
from mnemolog.streams.micro_batcher import MicroBatcher
from mnemolog.streams.text.differences import USER_WORDS

MAX_TURNS_AT_ONCE: Final = 32
"""A turn of a large scope delays the other turns of its statement, so these are not too many."""
LOOKUP_OPTIONS: Final[dict[str, Any]] = {
    "max_wait": 0.0,
    "max_concurrent": 2,
    "isolate_on": (*RECORD_ERRORS, StatementTimeoutError),
}


class SharedCandidateFinder(CandidateFinder):
    """As its base; a batch asks for candidates, and for the status of sources, in one statement each.

    A turn or source at fault is asked for alone.
    """

    def __init__(self, pool: Pool, *, limit: int) -> None:
        super().__init__(pool, limit=limit, user_words=USER_WORDS)
        self._statuses: MicroBatcher[SourceQuery, SourceStatus] = MicroBatcher(self.source_statuses, **LOOKUP_OPTIONS)
        self._candidates: MicroBatcher[CandidateRequest, CandidateLists] = MicroBatcher(
            self.find_many, max_items=MAX_TURNS_AT_ONCE, **LOOKUP_OPTIONS
        )

    async def find(self, request: CandidateRequest) -> CandidateLists:
        return await self._candidates.submit(request)

    async def source_status(self, owner: str, source_id: str, scope: Scope | None) -> SourceStatus:
        return await self._statuses.submit((owner, source_id, scope))

    async def close(self) -> None:
        await self._statuses.close()
        await self._candidates.close()


class SharedPolicies(PolicyStore):
    """As its base; a batch asks for the policies of its scopes in one statement. A scope at fault is asked alone."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._batcher: MicroBatcher[Scope, StoredPolicies] = MicroBatcher(self.stored_policies, **LOOKUP_OPTIONS)

    async def effective_policy(self, scope: Scope, defaults: EffectivePolicy) -> EffectivePolicy:
        return (await self._batcher.submit(scope)).overlay(defaults)

    async def close(self) -> None:
        await self._batcher.close()
