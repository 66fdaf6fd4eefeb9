"""Runs command handlers on real tables and commits the result as the resolver does, without Kafka."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mnemolog.projections.stores.entities import EntityStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import Command, CommandPayload, Import
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.streams.commands.entities import EntityCommandHandler, numbered
from mnemolog.streams.commands.handler import CommandHandler
from mnemolog.streams.resolution.verdicts import HeldOverwriteCloser
from mnemolog.streams.runtime.decision_stages import MAX_COMMIT_BYTES
from mnemolog.streams.stages.extract import command_facts
from mnemolog.streams.stages.resolve import commit_of
from tests.support.builders.commits import ALICE, pseudo_random_vector
from tests.support.harnesses.projected_database import ProjectedDatabase

ORIGIN = Origin(topic="conversation_turns", partition=0, offset=0)


def command_envelope(command: Command) -> MatchedFacts:
    """A command as it reaches the resolver: each of its texts has become a fact with a vector."""
    facts = tuple(
        MatchedFact(
            fact=fact.model_copy(update={"search_text": f"to find: {fact.text}"}),
            vector=pseudo_random_vector(fact.text, 3),
        )
        for fact in command_facts(command.order)
    )
    return MatchedFacts(
        source_id=command.command_id,
        source_kind="command",
        scope=command.scope,
        origin=ORIGIN,
        occurred_at=command.issued_at,
        published_at=command.issued_at + timedelta(seconds=1),
        order=command.order,
        actor=command.actor,
        metadata=command.order.metadata if isinstance(command.order, Import) else {},
        facts=facts,
    )


class CommandHarness:
    """Executes commands over the tables of `stored`; by default each is decided three seconds after it was issued."""

    def __init__(self, stored: ProjectedDatabase) -> None:
        self.stored = stored
        self.known = FactStore(stored.pool)

    async def execute(
        self,
        command_id: str,
        order: CommandPayload,
        *,
        at: datetime,
        scope: Scope = ALICE,
        actor: str | None = None,
        clock: datetime | None = None,
    ) -> Commit:
        """Execute a command and project its commit; `clock` is the time of the decision."""
        command = Command(command_id=command_id, scope=scope, issued_at=at, order=order, actor=actor)
        commit = await self.decide(command, clock or at + timedelta(seconds=3))
        await self.stored.apply(commit)
        return commit

    async def decide(self, command: Command, decided_at: datetime) -> Commit:
        envelope = command_envelope(command)
        entities = EntityStore(self.stored.pool)
        handle = CommandHandler(
            facts=self.known,
            entities=EntityCommandHandler(entities),
            clock=lambda: decided_at,
            max_commit_bytes=MAX_COMMIT_BYTES,
        )
        result = await handle(envelope)
        events = await HeldOverwriteCloser(self.known)(envelope, result.events, decided_at)
        return commit_of(
            envelope,
            decided_at=decided_at,
            outcome=result.outcome,
            reason=result.reason,
            detail=result.detail,
            events=events,
            entity_events=numbered(result.entity_changes, envelope, first=len(events)),
        )

    async def states(self, *fact_ids: UUID) -> list[Any]:
        """The states of these facts."""
        facts = await self.known.facts(fact_ids)
        return [facts[fact_id].state for fact_id in fact_ids]

    async def statuses(self, *fact_ids: UUID) -> list[str]:
        return [state.status for state in await self.states(*fact_ids)]

    async def texts_with_status(self, status: str = "active", scope: Scope = ALICE) -> Sequence[str]:
        """The texts of the owner's facts of this status, in alphabetical order."""
        rows = await self.stored.rows("SELECT owner, status, text FROM facts ORDER BY text")
        return [text for owner, found, text in rows if owner == scope.owner and found == status]
