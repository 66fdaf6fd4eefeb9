"""Turns of one user that wait together, with one fact each."""

import asyncio
from collections.abc import Sequence
from typing import Final

from mnemolog.projections.queries.results import Result
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.pipeline_harness import START, PipelineHarness
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS
from tests.support.servers.kafka_client import wait_until

BACKLOG: Final = 20
SAID: Final = (
    *("Kayaks leak", "Pianos rust", "Tents burn", "Looms creak", "Drums echo", "Canoes sink", "Easels wobble"),
    *("Kilns crack", "Lathes hum", "Harps break", "Sleds slide", "Cellos groan", "Anvils ring", "Barges drift"),
    *("Organs wheeze", "Cranes lift", "Wagons roll", "Flutes whistle", "Ladders bend", "Mirrors shine", "Quilts fray"),
)
"""No two of them have a word in common: nothing is to be decided about them."""


class Backlog:
    """Turns of a user with one fact each, which are published while the first one is asked about."""

    def __init__(self, harness: PipelineHarness, name: str, *, turns: int = BACKLOG, tenant: str = "default") -> None:
        self.harness = harness
        self.name = name
        self.tenant = tenant
        self.texts = list(SAID[: turns + 1])
        said = [fact_json(text, subject=text) for text in self.texts]
        for number, fact in enumerate(said):
            harness.model.extractions[f"{name}-{number}"] = facts_reply(fact)
        self.turns = [
            Turn(
                turn_id=f"{name}-{number}",
                scope=Scope(tenant=tenant, user_id=name),
                messages=(Message(role="user", content=fact["excerpt"]),),
                occurred_at=START,
                speaker=name.capitalize(),
            )
            for number, fact in enumerate(said)
        ]

    async def run(self) -> list[Result]:
        """Publish the first turn, the others once it is asked about, and wait for all; gives the ends of the others.

        Only that first reply is late: the others have all arrived by then.
        """
        server = self.harness.server
        server.latency, before = 1.0, server.requests["chat"]
        await self.harness.memory.add_many(self.turns[:1])

        async def is_asked() -> bool:
            return server.requests["chat"] > before

        await wait_until(is_asked)
        await self.harness.memory.add_many(self.turns[1:])
        server.latency = 0.0
        _, *ends = await self.ends()
        return ends

    async def ends(self, attempt: int = 1, turns: Sequence[Turn] | None = None) -> list[Result]:
        """How these turns ended at an attempt, or all of them."""
        waiting = (
            self.harness.memory.wait(
                turn.turn_id,
                user_id=self.name,
                tenant=self.tenant,
                attempt=attempt,
                verbose=True,
                timeout=OUTCOME_SECONDS,
            )
            for turn in (self.turns if turns is None else turns)
        )
        return await asyncio.gather(*waiting)

    async def facts(self) -> list[str]:
        """The texts of the facts, in the order in which they were committed."""
        query = "SELECT text FROM facts WHERE (tenant, user_id) = (%s, %s) ORDER BY recorded_at, ordinal"
        return [row["text"] for row in await self.harness.rows(query, self.tenant, self.name)]
