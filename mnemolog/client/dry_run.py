"""Dry runs: what a turn would do and cost, without anything being stored or published."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mnemolog.client.base import ClientBase
from mnemolog.client.turn_builder import Messages, TurnDraft, build_turn
from mnemolog.errors import WaitTimeoutError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.trace import FactTexts, fact_ids_of_commit
from mnemolog.projections.queries.turn_status import fact_texts
from mnemolog.projections.queries.write_result import write_result
from mnemolog.schemas.turn import Overrides, Turn
from mnemolog.settings import Settings

if TYPE_CHECKING:
    from mnemolog.schemas.commit import Commit
    from mnemolog.streams.runtime.dry_run import DryRun


class DryRunMixin(ClientBase):
    """Turns as the stages would take them, in this process."""

    _dry_run: "DryRun | None" = None

    async def dry_run(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        infer: bool = True,
        occurred_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        turn_id: str | None = None,
        speaker: str | None = None,
        valid_until: datetime | None = None,
        recalled: Sequence[str] = (),
        overrides: Overrides | Mapping[str, Any] | None = None,
        verbose: bool = True,
        timeout: float = 120.0,  # noqa: ASYNC109 - what is late is told
    ) -> WriteResult:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still on their way are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` where models and tables have not answered within
        `timeout` seconds, and whatever building a model raises.
        """
        draft = TurnDraft(
            messages=messages,
            turn_id=turn_id or self._new_id(),
            occurred_at=occurred_at or self._now(),
            tenant=tenant or self._settings.tenant,
            user_id=user_id,
            agent_id=agent_id,
            app_id=app_id,
            run_id=run_id,
            infer=infer,
            metadata=metadata or {},
            valid_until=valid_until,
            speaker=speaker,
            recalled=recalled,
            overrides=overrides,
        )
        turn = build_turn(draft, max_bytes=self._settings.max_turn_bytes)
        try:
            async with asyncio.timeout(timeout):
                return await self._run_dry(turn, verbose=verbose)
        except TimeoutError as error:
            raise WaitTimeoutError(
                f"the models and Postgres had no answer to the dry run within {timeout:g} s: are they reachable?"
            ) from error

    async def close(self) -> None:
        await super().close()
        if self._dry_run is not None:
            await self._dry_run.close()
            self._dry_run = None

    async def _run_dry(self, turn: Turn, *, verbose: bool) -> WriteResult:
        async with self._open_read_pool().connection():
            pass  # the tables are there: what follows would wait for a server that is away
        commit = await (await self._open_dry_run()).decide(turn)
        return write_result(commit, await self._texts(commit) if verbose else None)

    async def _texts(self, commit: "Commit") -> FactTexts:
        """The texts of what was looked at: known facts, and those that the turn itself brings."""
        fresh = {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
        async with self._open_read_pool().connection() as connection:
            return fresh | await fact_texts(connection, commit.scope, fact_ids_of_commit(commit))

    async def _open_dry_run(self) -> "DryRun":
        """The stages, made at the first dry run and kept; a model is loaded in a thread."""
        async with self._connect_lock:
            if self._dry_run is None:
                settings = self._with_discovered_servers(self._settings.postgres)
                self._dry_run = await asyncio.to_thread(_build_dry_run, settings, self._now)
                await self._dry_run.open()
            return self._dry_run


def _build_dry_run(settings: Settings, now: Callable[[], datetime]) -> "DryRun":
    # Only here: who runs nothing dry does not wait for the libraries.
    from mnemolog.streams.runtime.dry_run import DryRun  # noqa: PLC0415

    return DryRun(settings, clock=now)
