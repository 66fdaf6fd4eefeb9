"""Looks up what a command about entities names, and calls the pure function of its kind."""

from collections.abc import Sequence
from typing import Final, Protocol, get_args
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import (
    AliasEntity,
    CommandPayload,
    Confirm,
    EntityCommand,
    FactIds,
    ForgetEntity,
    MergeEntities,
    Reject,
    RenameEntity,
    SplitEntity,
    Undo,
)
from mnemolog.schemas.entity_events import AnyEntityChange
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import LoggedChange, StoredEntity, StoredProposal
from mnemolog.streams.commands import entities as entity_changes
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError, raise_for_faults
from mnemolog.streams.commands.entities import EntityContext, undo_changes
from mnemolog.streams.entities.linker import EntityReader
from mnemolog.streams.entities.resolver import EntityRegistry, NameContext, keys_of_names

ENTITY_COMMANDS: Final = get_args(EntityCommand)
EntityChanges = tuple[AnyEntityChange, ...]


class ChangedEntityReader(Protocol):
    """Reads entities by their ids. Each call is one round trip, and waits while Postgres is unavailable."""

    async def entities(self, entity_ids: Sequence[UUID]) -> dict[UUID, StoredEntity]:
        """Those of `entity_ids` that there are, whatever their scope and status."""

    async def facts_of_entity(self, entity_id: UUID, *, limit: int) -> tuple[int, list[UUID]]:
        """How many open facts name an entity, and the first `limit` of them."""

    async def naming_facts(self, entity_id: UUID, fact_ids: Sequence[UUID]) -> list[UUID]:
        """Those of `fact_ids` that name an entity now."""

    async def proposals(self, event_ids: Sequence[UUID]) -> list[StoredProposal]:
        """Those of `event_ids` that propose a merge, whatever their scope."""

    async def undo_targets(self, scope: Scope, undo: Undo) -> list[LoggedChange]:
        """The changes of exactly `scope` that an undo selects, in the log's order."""


class EntityCommandHandler:
    """Carries out commands about entities; it writes nothing itself."""

    def __init__(self, entities: ChangedEntityReader, names: EntityReader) -> None:
        self._entities = entities
        self._names = names

    async def changes(
        self, command: CommandContext, payload: EntityCommand, user_names: Sequence[str]
    ) -> EntityChanges:
        """What a command changes. Raises `CommandRefusedError`."""
        context = await self._context(command, payload, user_names)
        match payload:
            case RenameEntity():
                return (entity_changes.rename(context, payload),)
            case AliasEntity():
                made = entity_changes.add_alias(context, payload)
                return (made,) if made else ()
            case MergeEntities():
                return (entity_changes.merge(context, payload),)
            case SplitEntity():
                naming = await self._entities.naming_facts(payload.entity_id, payload.fact_ids)
                return (entity_changes.split(context, payload, naming),)
            case ForgetEntity():
                return (entity_changes.forget(context, payload),)

    async def facts_to_delete(self, payload: CommandPayload, *, limit: int) -> list[UUID]:
        """The open facts that are deleted with an entity that is forgotten; raises for more than `limit`."""
        if not isinstance(payload, ForgetEntity) or not payload.facts:
            return []
        total, fact_ids = await self._entities.facts_of_entity(payload.entity_id, limit=limit)
        if total > limit:
            detail = f"{total} facts are more than the {limit} that one command can delete: delete some of them first"
            raise CommandRefusedError("invalid_command", detail)
        return fact_ids

    async def settled(self, command: CommandContext, payload: Confirm | Reject) -> tuple[EntityChanges, FactIds]:
        """What becomes of the proposed merges among the ids of a command, and the other ids: those of facts."""
        found = {one.event_id: one for one in await self._entities.proposals(payload.fact_ids)}
        raise_for_faults(entity_changes.proposal_fault(command, one) for one in found.values())
        named = [found[one] for one in dict.fromkeys(payload.fact_ids) if one in found]
        changes: EntityChanges = tuple(entity_changes.reject_merge(command, one) for one in named)
        if isinstance(payload, Confirm):
            changes = await self._confirmed(command, named)
        return changes, tuple(one for one in payload.fact_ids if one not in found)

    async def _confirmed(self, command: CommandContext, proposals: Sequence[StoredProposal]) -> EntityChanges:
        entity_changes.refuse_merged_twice(proposals)
        if not proposals:
            return ()
        known = await self._entities.entities([one.merged for one in proposals])
        return tuple(entity_changes.confirm_merge(command, one, known[one.merged]) for one in proposals)

    async def undone(self, command: CommandContext, payload: Undo) -> EntityChanges:
        """The changes of entities that an undo takes back; none where it selects none that hold."""
        return undo_changes(command, await self._entities.undo_targets(command.scope, payload))

    async def _context(
        self, command: CommandContext, payload: EntityCommand, user_names: Sequence[str]
    ) -> EntityContext:
        names = NameContext(owner=command.owner, source_id=command.source_id, user_names=tuple(user_names))
        known = await self._entities.entities(_entity_ids(payload))
        asked = keys_of_names([*_given_names(payload), *(one.name for one in known.values())], names)
        registry = await self._names.known_entities(
            command.scope, heads=asked.heads, keys=asked.keys, ends=(), fact_ids=()
        )
        return EntityContext(command=command, known=known, registry=EntityRegistry(registry), names=names)


def numbered(changes: EntityChanges, envelope: MatchedFacts, *, first: int) -> EntityChanges:
    """The changes as the events of a commit, from the ordinal `first` on."""
    return tuple(
        change.model_copy(
            update={"ordinal": ordinal, "event_id": ids.event_id(envelope.owner, envelope.source_id, ordinal)}
        )
        for ordinal, change in enumerate(changes, first)
    )


def _entity_ids(payload: EntityCommand) -> list[UUID]:
    match payload:
        case MergeEntities():
            return [*payload.entity_ids, payload.into]
        case AliasEntity(moved_from=UUID() as loser):
            return [payload.entity_id, loser]
        case _:
            return [payload.entity_id]


def _given_names(payload: EntityCommand) -> list[str]:
    match payload:
        case RenameEntity() | AliasEntity():
            return [payload.name]
        case SplitEntity():
            return [payload.name, *payload.names]
        case _:
            return []
