"""A running pipeline for end-to-end tests: turns of people, a scripted model, and the rows that come of them."""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.queries.results import Result
from mnemolog.settings import Settings
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.model_replies import facts_reply
from tests.support.harnesses.worker_harness import OUTCOME_SECONDS, running_worker
from tests.support.servers.openai_server import OpenAiServer
from tests.support.servers.scripted_model import ResolutionPrompt, ScriptedDecision, ScriptedModel

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


class PipelineHarness:
    """A worker with all stages over real servers, a client of it, and the model behind HTTP that both talk to."""

    def __init__(
        self, settings: Settings, pool: Pool, memory: AsyncMemoryClient, server: OpenAiServer, model: ScriptedModel
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.memory = memory
        self.server = server
        self.model = model

    @classmethod
    @asynccontextmanager
    async def started(cls, settings: StreamsSettings) -> AsyncIterator["PipelineHarness"]:
        async with cls.without_worker(settings) as harness, running_worker(harness.settings):
            yield harness

    @classmethod
    @asynccontextmanager
    async def without_worker(cls, settings: StreamsSettings) -> AsyncIterator["PipelineHarness"]:
        """As `started`; the test starts and stops workers itself."""
        model = ScriptedModel()
        with OpenAiServer(model) as server:
            ours = {"provider": "openai", "base_url": server.base_url, "expiry_interval": 0.2}
            whole = Settings(**settings.model_dump() | ours)
            assert whole.postgres is not None
            async with (
                AsyncMemoryClient(settings=whole) as memory,
                open_pool(whole.postgres, min_size=1, max_size=8, application_name="test") as pool,
            ):
                yield cls(whole, pool, memory, server, model)

    def person(self, name: str, **scope: str) -> "Person":
        return Person(self, name, {"user_id": name, **scope})

    async def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """What `query` finds, as an SQL user would see it."""
        async with self.pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            return await (await cursor.execute(query.encode(), parameters)).fetchall()


@dataclass(slots=True)
class Person:
    """A user with a scope of their own; each turn is a day after the one before."""

    harness: PipelineHarness
    name: str
    scope: dict[str, Any]
    turns_said: int = field(default=0)

    async def say(
        self,
        *facts: Mapping[str, Any],
        decisions: Mapping[str, ScriptedDecision] | None = None,
        answers: Sequence[str] = (),
        **turn: Any,
    ) -> Result:
        """Publish one turn and wait for its end.

        `facts` are what the model extracts, `decisions` what it decides, by the text of the new fact;
        `answers` are its replies, one after the other, to the prompts about the first fact.
        """
        turn = {"turn_id": f"{self.name}-{self.turns_said}", "occurred_at": day(self.turns_said), **turn}
        self.turns_said += 1
        model, first = self.harness.model, " ".join(facts[0]["text"].split()) if facts else ""
        model.extractions.setdefault(turn["turn_id"], facts_reply(*facts))
        model.decisions.update(decisions or {})
        if answers:
            model.answers[first] = deque(answers)
        messages = turn.pop("messages", None) or [{"role": "user", "content": one["excerpt"]} for one in facts]
        accepted = await self.harness.memory.add(messages, **self.scope, speaker=self.name.capitalize(), **turn)
        result = await self.harness.memory.wait(
            accepted.turn_id,
            user_id=self.scope["user_id"],
            tenant=self.scope.get("tenant"),
            verbose=True,
            timeout=OUTCOME_SECONDS,
        )
        if answers:
            del model.answers[first]
        return result

    async def facts(self) -> dict[str, dict[str, Any]]:
        """Every fact of the scope as it is now, by its text, in the order of the statements that brought them."""
        query = """
            SELECT * FROM facts WHERE (tenant, user_id, agent_id, app_id, run_id) = (%s, %s, %s, %s, %s)
            ORDER BY recorded_at, ordinal
        """
        names = ("tenant", "user_id", "agent_id", "app_id", "run_id")
        own = {"tenant": "default"} | self.scope
        found = await self.harness.rows(query, *(own.get(name, "") for name in names))
        return {row["text"]: row for row in found}

    async def statuses(self) -> dict[str, str]:
        """The status of each fact by its text."""
        return {text: row["status"] for text, row in (await self.facts()).items()}

    def questions_about(self, text: str) -> list[ResolutionPrompt]:
        """The resolution prompts about the new fact `text`, re-prompts too."""
        return [ResolutionPrompt.of(request) for request in self.harness.model.requests_about(text)]
