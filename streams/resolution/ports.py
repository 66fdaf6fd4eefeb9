"""What a decision asks of the tables beyond its candidates: ports, so that deciding stays pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import ClosedValue, PendingCase


class Lookups(Protocol):
    """Reads of known facts; each is one round trip, and waits while Postgres is away."""

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""
        ...

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """For each fact the `true_from` of itself and of the versions that it superseded, all the way back."""
        ...

    async def closed_values(self, scope: Scope, keys: Sequence[str], *, after: datetime) -> Sequence[ClosedValue]:
        """The values that these keys held in exactly `scope` and whose truth ended after `after`, bounded."""
        ...


class LimitCheck(Protocol):
    """The truth about limits; it is asked last, when it is known what a turn would do."""

    async def exceeded_limit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, *, added: int, ended: int, tokens: int
    ) -> LimitHit | None:
        """The first limit that a turn with so many new and ended facts and tokens would break, or None."""
        ...
