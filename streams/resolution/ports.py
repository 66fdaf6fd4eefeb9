"""What resolution asks of the tables and of the reservations, as Protocols; the stores have these methods."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, TurnUsage
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import CandidateQuery, PendingCase
from mnemolog.streams.ends import EndedFactReader


class Lookups(EndedFactReader, Protocol):
    """Reads known facts. Each call is one round trip, and waits while Postgres is unavailable."""

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """For each fact the `true_from` of itself and of the versions that it superseded, all the way back."""

    async def conflicting_fact_ids(self, fact_id: UUID) -> Sequence[UUID]:
        """The facts that an unresolved fact was put beside, the likeliest first."""

    async def ended_candidates(
        self, scope: Scope, queries: Sequence[CandidateQuery], *, after: datetime, user_names: Sequence[str]
    ) -> Sequence[Sequence[Candidate]]:
        """For each query the facts of exactly `scope` near it, or of its key, that have ended after `after`, bounded.

        `user_names` are all subjects that mean the user.
        """


class ChallengeReader(Protocol):
    """Reads what held overwrites challenge, in one round trip."""

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """The open cases of `scope` that challenge one of these facts, each with all open facts that it challenges."""


class Reservations(Protocol):
    """Counts what a scope and its tenant use, with what turns have reserved that are not projected yet."""

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        """The first limit that leaves a turn published `at` nothing over."""

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; without one it is reserved."""

    async def check(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; nothing is reserved."""
