"""Makes the commands that expire facts whose end has passed, in sweeps over the tables.

Queries exclude such facts from the very second of their end; the commands only bring the log up to date.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final
from uuid import UUID

import orjson

from mnemolog.schemas.command import MAX_ITEMS, Command, Expire
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import DueExpiry
from mnemolog.streams.commands.context import ExpiryReader, PublishCommand

BATCH_SIZE: Final = 500
CLOCK_MARGIN: Final = timedelta(seconds=30)
"""How slow the clock of the worker that carries a command out may be."""
REPEAT_AFTER: Final = timedelta(minutes=15)
"""How long a command may be under way before it is sent again."""
MAX_REQUESTED: Final = 100_000


@dataclass(slots=True)
class ExpirySweep:
    """Publishes expire commands for facts of the scopes that `owns_scope`; other workers do so for theirs.

    `publish` returns when the broker has the command.
    """

    facts: ExpiryReader
    publish: PublishCommand = field(kw_only=True)
    owns_scope: Callable[[Scope], bool] = field(default=lambda _: True, kw_only=True)
    batch_size: int = field(default=BATCH_SIZE, kw_only=True)
    _after: DueExpiry | None = field(default=None, init=False)
    _requested: dict[UUID, datetime] = field(default_factory=dict, init=False)

    @property
    def has_more(self) -> bool:
        """Whether the last sweep stopped before the end; the next one continues there."""
        return self._after is not None

    async def sweep(self, now: datetime) -> int:
        """Look at the next facts whose end has passed; returns for how many of them a command was sent."""
        self._requested = {fact_id: sent for fact_id, sent in self._requested.items() if sent > now - REPEAT_AFTER}
        if len(self._requested) >= MAX_REQUESTED:
            self._after = None
            return 0
        page = await self.facts.due_expiries(now - CLOCK_MARGIN, after=self._after, limit=self.batch_size)
        due = [expiry for expiry in page if expiry.fact_id not in self._requested and self.owns_scope(expiry.scope)]
        await asyncio.gather(*(self.publish(command) for command in expire_commands(due, now)))
        self._requested |= dict.fromkeys((expiry.fact_id for expiry in due), now)
        self._after = page[-1] if len(page) == self.batch_size else None
        return len(due)


def expire_commands(due: Sequence[DueExpiry], now: datetime) -> Iterator[Command]:
    """One command for up to a hundred facts of a scope.

    The command id includes the date: repeats of the day are dropped, the next day tries again, for a worker whose clock
    was slow by more than `CLOCK_MARGIN`.
    """

    def sort_key(expiry: DueExpiry) -> tuple[tuple[str, ...], datetime, UUID]:
        return tuple(expiry.scope.columns.values()), expiry.ends_at, expiry.fact_id

    for scope, expiries in groupby(sorted(due, key=sort_key), key=lambda expiry: expiry.scope):
        of_scope = list(expiries)
        for start in range(0, len(of_scope), MAX_ITEMS):
            share = of_scope[start : start + MAX_ITEMS]
            payload = Expire(fact_ids=tuple(expiry.fact_id for expiry in share))
            ends = ((str(expiry.fact_id), expiry.ends_at.isoformat()) for expiry in share)
            named = [scope.columns, f"{now.astimezone(UTC):%Y-%m-%d}", *ends]
            command_id = f"expire-{hashlib.sha256(orjson.dumps(named)).hexdigest()[:32]}"
            yield Command(command_id=command_id, scope=scope, issued_at=now, order=payload)
