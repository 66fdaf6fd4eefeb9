"""Has entities summarised over the real tables, by a model whose replies a test gives."""

from typing import Any
from uuid import UUID

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownEntityError
from mnemolog.projections.queries.entities import EntityDetails, EntitySummary
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import Command, CommandPayload, SetPolicy, SummariseEntity, tenant_scope
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import NamedEntity
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflicts, Prompt, SummaryTask, TaskPrompt
from tests.support.builders.commits import ALICE, day
from tests.support.builders.model_replies import decision_json, decisions_reply, summary_reply
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact


class SummaryHarness:
    """One turn or command a day. The model adds whatever conflicts, and repeats the facts that it is shown.

    `replies` are given before that to the prompts for summaries, and `tasks` are what these were about.
    """

    def __init__(self, stored: ProjectedDatabase, client: AsyncMemoryClient, database: str, **settings: Any) -> None:
        self.resolver = ResolverHarness(stored, **{"entity_summary": "on_demand"} | settings)
        self.resolver.chat_model.set_replies(self._reply)
        self.client = client
        self.stored = stored
        self.replies: list[str] = []
        self.tasks: list[SummaryTask] = []
        self._database = database
        self._day = 0

    async def say(self, *texts: str, name: str = "Ana", key: str | None = None, scope: Scope = ALICE) -> Commit:
        """A turn with these facts about a person, of a key if given."""
        self._day += 1
        named = (NamedEntity(name=name, type="person", role="subject"),)
        facts = [extracted_fact(text, subject=name, key=key, entities=named) for text in texts]
        return await self.resolver.resolve_turn(*facts, at=day(self._day), scope=scope)

    async def order(self, payload: CommandPayload, scope: Scope = ALICE) -> Commit:
        return await self.resolver.send_command(self.command(payload, scope))

    def command(self, payload: CommandPayload, scope: Scope = ALICE) -> Command:
        self._day += 1
        return Command(command_id=f"c{self._day}", scope=scope, issued_at=day(self._day), order=payload)

    async def set_policy(self, **rules: Any) -> None:
        payload = SetPolicy(level="tenant", policy=Policy(**rules))
        assert (await self.order(payload, tenant_scope("default"))).outcome == "done"

    async def summarise(self, name: str = "Ana", scope: Scope = ALICE) -> Commit:
        return await self.order(SummariseEntity(entity_id=await self.entity_id(name, scope)), scope)

    async def entity_id(self, name: str = "Ana", scope: Scope = ALICE) -> UUID:
        return (await self.details(name, scope)).entity.entity_id

    async def details(self, name: str = "Ana", scope: Scope = ALICE) -> EntityDetails:
        return await self.client.entities.get(name, user_id=scope.user_id)

    async def shown(self, name: str = "Ana") -> EntitySummary | None:
        """None as well where no fact of the entity is left, and it is not shown itself."""
        try:
            return (await self.details(name)).summary
        except UnknownEntityError:
            return None

    async def fact_id(self, text: str) -> UUID:
        (found,) = [one for one in await self.client.facts(user_id="alice", all_versions=True) if one.text == text]
        return found.fact_id

    async def is_rebuilt_equal(self) -> bool:
        return (await rebuild(self._database, TableLogSource(self.stored.pool), verify_only=True)).equal

    async def close(self) -> None:
        await self.resolver.close()

    def _reply(self, prompt: Prompt) -> str:
        assert isinstance(prompt, TaskPrompt)
        match prompt.task:
            case SummaryTask() as task:
                self.tasks.append(task)
                facts = ((fact.text, [number]) for number, fact in enumerate(task.facts, 1))
                return self.replies.pop(0) if self.replies else summary_reply(*facts)
            case NumberedConflicts(conflicts=conflicts):
                return decisions_reply(*(decision_json(one.number, "ADD") for one in conflicts))
        raise AssertionError(prompt.purpose)
