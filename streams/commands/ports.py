"""What commands ask of the tables, as Protocols; the stores have these methods.

Each call is one round trip or a few, and waits while Postgres is unavailable.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.command import Promote, Undo
from mnemolog.schemas.filters.model import Filter
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import (
    DueExpiry,
    EventHistory,
    LoggedEvent,
    PendingCase,
    PromotableFacts,
    ScopeFacts,
)
from mnemolog.streams.ends.moved_ends import EndedFactReader
from mnemolog.streams.ends.undone_values import RivalReader


class FactReader(EndedFactReader, RivalReader, Protocol):
    """Reads known facts."""

    async def user_names(self, scope: Scope, user_words: Collection[str]) -> Sequence[str]:
        """The names of the user that exactly `scope` knows; `user_words` are subjects that say "the user"."""

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`."""

    async def conflicting_fact_ids(self, fact_id: UUID) -> Sequence[UUID]:
        """The facts that an unresolved fact was added beside."""

    async def scope_facts(
        self, scope: Scope, *, key: str | None, category: str | None, wanted: Filter, at: datetime, limit: int
    ) -> ScopeFacts:
        """The open facts of exactly `scope` that a filter lets through at `at`, of a key or category if given."""

    async def passing_facts(self, fact_ids: Sequence[UUID], wanted: Filter) -> Sequence[UUID]:
        """Those of `fact_ids` that a filter would let through if they were active."""


class PromotionReader(Protocol):
    """Reads what a promote command selects."""

    async def promotable_facts(
        self, into: Scope, payload: Promote, *, at: datetime, min_importance: float, limit: int
    ) -> PromotableFacts:
        """The first `limit` of the selected facts, those that can be promoted `into` a scope first."""


class EventReader(Protocol):
    """Reads what events did to facts."""

    async def undo_targets(self, scope: Scope, undo: Undo, *, limit: int) -> list[LoggedEvent]:
        """The events that an undo selects, in the log's order."""

    async def history_of(self, scope: Scope, fact_ids: Sequence[UUID]) -> EventHistory:
        """All events that name these facts, and the facts' states before and after them."""

    async def events(self, event_ids: Sequence[UUID]) -> list[LoggedEvent]:
        """These events, in the log's order."""


class ExpiryReader(Protocol):
    """Reads which facts are still active or pending although their end has passed."""

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        """The next `limit` of them after `after`."""
