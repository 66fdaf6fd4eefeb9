"""Dry runs: what a turn would do and cost, without anything being stored or published."""

import asyncio
from typing import TYPE_CHECKING, Unpack

from mnemolog.client.arguments import TurnArgs
from mnemolog.client.base import ClientBase, scoped
from mnemolog.client.turn_builder import Messages
from mnemolog.errors import WaitTimeoutError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.trace import FactTexts, fact_ids_of_commit
from mnemolog.projections.queries.turn_status import fact_texts
from mnemolog.projections.queries.write_result import write_result
from mnemolog.schemas.turn import Turn

if TYPE_CHECKING:
    from mnemolog.schemas.commit import Commit


class DryRunMixin(ClientBase):
    """Runs the stages' functions on one turn in this process."""

    @scoped
    async def dry_run(
        self,
        messages: Messages,
        *,
        verbose: bool = True,
        timeout: float = 120.0,  # noqa: ASYNC109 - the error says what did not finish
        **turn: Unpack[TurnArgs],
    ) -> WriteResult:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still being processed are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` after `timeout` seconds, and what building a model
        raises.
        """
        built = self._build_turn(messages, turn)
        try:
            async with asyncio.timeout(timeout):
                return await self._run_dry(built, verbose=verbose)
        except TimeoutError as error:
            raise WaitTimeoutError(
                f"the dry run did not finish within {timeout:g} s: are the models and Postgres reachable?"
            ) from error

    async def _run_dry(self, turn: Turn, *, verbose: bool) -> WriteResult:
        async with self._connections.read_pool().connection():
            pass  # raises where Postgres is away or has no tables: the stages would wait for it
        commit = await (await self._connections.dry_run()).decide(turn)
        return write_result(commit, await self._texts(commit) if verbose else None)

    async def _texts(self, commit: "Commit") -> FactTexts:
        """The texts of the facts in a commit: known ones, and those that the turn itself brings."""
        fresh = {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
        return fresh | await self._query(fact_texts, commit.scope, fact_ids_of_commit(commit))
