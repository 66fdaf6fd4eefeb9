"""Commands about entities: what they look up, and what they change."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import AliasEntity, ForgetEntity, MergeEntities, RenameEntity, SplitEntity
from mnemolog.schemas.entities import Alias
from mnemolog.schemas.entity_events import (
    EntitiesMerged,
    EntityAliasSet,
    EntityChange,
    EntityDecisionUndone,
    EntityForgotten,
    EntityRenamed,
    EntitySplit,
    MergeRejected,
)
from mnemolog.schemas.stored import LoggedChange, StoredEntity, StoredProposal
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError, Fault, raise_for_faults
from mnemolog.streams.entities.resolver import EntityRegistry, NameContext, NoNameError, given_alias, holders


def undo_changes(context: CommandContext, selected: Sequence[LoggedChange]) -> tuple[EntityDecisionUndone, ...]:
    """One event for each selected change that holds, and for each undo that is the last word on its change."""
    wanted = {one.original_id: one for one in selected if one.in_effect == one.enables and _is_last_word(one)}
    return tuple(_undo(context, one) for one in reversed(wanted.values()))


def _is_last_word(change: LoggedChange) -> bool:
    """A change that was undone and is in effect again is undone at its last event; an undo only as the last one."""
    return change.enables or change.event_id == change.latest_id


def _undo(context: CommandContext, change: LoggedChange) -> EntityDecisionUndone:
    decision = context.decision("human", f"took back {change.event} of {change.source_id}")
    return EntityDecisionUndone(
        **context.event_fields(0, decision),
        undone=change.original_id if change.enables else change.event_id,
        undone_event=change.original_event if change.enables else change.event,
        reinstated=None if change.enables else change.original_id,
        named=change.entity_ids,
    )


C = TypeVar("C", bound=EntityChange)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContext:
    """A command, the entities that it names, and those that its names may mean (`registry`)."""

    command: CommandContext
    known: Mapping[UUID, StoredEntity]
    registry: EntityRegistry
    names: NameContext

    def alias(self, name: str, of: UUID | None = None) -> Alias:
        """The alias that a name gives: that which the entity `of` has, as readers show it, or a new one.

        Raises `CommandRefusedError`.
        """
        shown = self.known[of].aliases if of is not None else ()
        for alias in shown:
            if alias.kind != "user" and alias.text.casefold() == name.casefold():
                return alias
        try:
            return given_alias(name, self.registry, self.names)
        except NoNameError as error:
            raise CommandRefusedError("invalid_command", str(error)) from error

    def fault(self, entity_id: UUID) -> Fault | None:
        """Why an entity cannot be changed."""
        entity = self.known.get(entity_id)
        if entity is None:
            return "unknown_entity", f"{entity_id} is not known: check the id"
        if entity.scope != self.command.scope:
            return (
                "foreign_entity",
                f"{entity_id} belongs to another scope: send the command in the scope of the entity",
            )
        if entity.status == "merged":
            return "merged_entity", f"{entity_id} was merged into {entity.merged_into}: name that, or undo the merge"
        if entity.status != "active":
            return "unknown_entity", f"{entity_id} was {entity.status}: undo that first"
        return None

    def require(self, *entity_ids: UUID) -> None:
        raise_for_faults(self.fault(entity_id) for entity_id in entity_ids)

    def others_of_name(self, alias: Alias, *but: UUID) -> list[UUID]:
        """The entities that have a name, those of `but` left out."""
        return [one.entity_id for one in holders(alias, self.registry) if one.entity_id not in but]

    def has(self, entity_id: UUID, alias: Alias) -> bool:
        return any((one.kind, one.key) == (alias.kind, alias.key) for one in self.known[entity_id].aliases)

    def change(self, made: type[C], done: str, **fields: Any) -> C:
        """An event, whose id and ordinal are those of the command's first event until it is `numbered`."""
        return made(**self.command.event_fields(0, self.command.decision("human", done)), **fields)


def rename(context: EntityContext, payload: RenameEntity) -> EntityRenamed:
    """The entity has the new name, which nobody else may have."""
    context.require(payload.entity_id)
    alias = context.alias(payload.name)
    if alias.kind != "name":
        raise CommandRefusedError("invalid_command", f"{payload.name!r} is no proper name: add it with alias")
    _refuse_taken(context, alias, payload.entity_id)
    name = context.known[payload.entity_id].name
    return context.change(
        EntityRenamed, f"renamed {name} to {alias.text}", entity_id=payload.entity_id, name=alias.text, alias=alias
    )


def add_alias(context: EntityContext, payload: AliasEntity) -> EntityAliasSet | None:
    """The entity has one more name; None where it has it already, and nobody else loses it."""
    context.require(*_named(payload))
    alias = context.alias(payload.name, payload.moved_from)
    name, loser = context.known[payload.entity_id].name, payload.moved_from
    if loser == payload.entity_id:
        raise CommandRefusedError("invalid_command", f"{alias.text} cannot move from an entity to itself")
    if loser is None:
        _refuse_taken(context, alias, payload.entity_id)
        if context.has(payload.entity_id, alias):
            return None
        return context.change(EntityAliasSet, f"called {name} {alias.text}", entity_id=payload.entity_id, alias=alias)
    _refuse_loss(context, loser, [alias])
    return context.change(
        EntityAliasSet,
        f"called {name} {alias.text}, which {context.known[loser].name} was called",
        entity_id=payload.entity_id,
        alias=alias,
        moved_from=loser,
    )


def merge(context: EntityContext, payload: MergeEntities) -> EntitiesMerged:
    """The entities are one: `into`. The user stays the user."""
    context.require(*_named(payload))
    merged = tuple(dict.fromkeys(payload.entity_ids))
    if payload.into in merged:
        raise CommandRefusedError("invalid_command", f"{payload.into} cannot be merged into itself")
    _refuse_merged_user(context.known[entity_id] for entity_id in merged)
    names = ", ".join(context.known[entity_id].name for entity_id in merged)
    done = f"merged {names} into {context.known[payload.into].name}"
    return context.change(EntitiesMerged, done, merged=merged, into=payload.into)


def _refuse_merged_user(merged: Iterable[StoredEntity]) -> None:
    if any(entity.is_user for entity in merged):
        raise CommandRefusedError("invalid_command", "the user is merged into nobody: merge the others into the user")


def confirm_merge(command: CommandContext, proposal: StoredProposal, merged: StoredEntity) -> EntitiesMerged:
    """The entities of a proposed merge are one. The user stays the user."""
    _refuse_merged_user([merged])
    decision = command.decision("human", f"confirmed that {proposal.merged_name} is {proposal.into_name}")
    return EntitiesMerged(
        **command.event_fields(0, decision),
        merged=(proposal.merged,),
        into=proposal.into,
        proposal=proposal.event_id,
    )


def reject_merge(command: CommandContext, proposal: StoredProposal) -> MergeRejected:
    """The entities of a proposed merge are two."""
    decision = command.decision("human", f"said that {proposal.merged_name} is not {proposal.into_name}")
    named = (proposal.into, proposal.merged)
    return MergeRejected(**command.event_fields(0, decision), proposal=proposal.event_id, named=named)


def proposal_fault(command: CommandContext, proposal: StoredProposal) -> Fault | None:
    """Why a proposed merge can be neither confirmed nor rejected."""
    if proposal.scope != command.scope:
        return (
            "foreign_entity",
            f"{proposal.event_id} belongs to another scope: send the command in the scope of the proposed merge",
        )
    if not proposal.is_pending:
        return "not_pending", f"{proposal.event_id} waits no more: see the entities, or undo what settled it"
    return None


def refuse_merged_twice(proposals: Iterable[StoredProposal]) -> None:
    """Raise `CommandRefusedError` where two merges have an entity in common: together they would make one of three."""
    seen: dict[UUID, UUID] = {}
    for proposal in proposals:
        for entity_id in (proposal.merged, proposal.into):
            other = seen.setdefault(entity_id, proposal.event_id)
            if other != proposal.event_id:
                detail = f"{other} and {proposal.event_id} are about one entity: confirm one, and look at what is left"
                raise CommandRefusedError("invalid_command", detail)


def split(context: EntityContext, payload: SplitEntity, naming: Collection[UUID]) -> EntitySplit:
    """A new entity has some facts and names of another one; `naming` are those of the facts that name that one."""
    context.require(payload.entity_id)
    strange = [fact_id for fact_id in payload.fact_ids if fact_id not in naming]
    if strange:
        listed = ", ".join(map(str, strange))
        raise CommandRefusedError("invalid_command", f"{payload.entity_id} is not named by {listed}: see the entity")
    entity = context.known[payload.entity_id]
    own = context.alias(payload.name)
    if own.kind != "name":
        raise CommandRefusedError("invalid_command", f"{payload.name!r} is no proper name: give the new entity one")
    moved = {
        (alias.kind, alias.key): alias for alias in (context.alias(name, payload.entity_id) for name in payload.names)
    }
    if (own.kind, own.key) not in moved:
        _refuse_taken(context, own)
    _refuse_loss(context, payload.entity_id, list(moved.values()))
    moved.pop((own.kind, own.key), None)
    return context.change(
        EntitySplit,
        f"split {own.text} from {entity.name}",
        entity_id=payload.entity_id,
        new_id=ids.entity_id(context.command.owner, context.command.source_id, 0),
        name=own.text,
        type=payload.type or entity.type,
        names=(own, *moved.values()),
        facts=tuple(dict.fromkeys(payload.fact_ids)),
    )


def forget(context: EntityContext, payload: ForgetEntity) -> EntityForgotten:
    """The entity has no names and no links any more."""
    context.require(payload.entity_id)
    entity = context.known[payload.entity_id]
    if entity.is_user:
        raise CommandRefusedError("invalid_command", "the user cannot be forgotten: delete their facts instead")
    return context.change(EntityForgotten, f"forgot {entity.name}", entity_id=payload.entity_id)


def _named(payload: AliasEntity | MergeEntities) -> Iterator[UUID]:
    """The entities that a command names."""
    if isinstance(payload, MergeEntities):
        yield from (*payload.entity_ids, payload.into)
    else:
        yield payload.entity_id
        if payload.moved_from is not None:
            yield payload.moved_from


def _refuse_taken(context: EntityContext, alias: Alias, *but: UUID) -> None:
    if taken := context.others_of_name(alias, *but):
        listed = ", ".join(map(str, taken))
        raise CommandRefusedError(
            "name_taken",
            f"{alias.text} is a name of {listed}: give one that tells them apart, with a surname or an origin; "
            "merge them if they are one; or say from whom the name moves (moved_from of alias)",
        )


def _refuse_loss(context: EntityContext, loser: UUID, aliases: list[Alias]) -> None:
    """Raise `CommandRefusedError` for what is no name of an entity, or its own one."""
    entity = context.known[loser]
    own = {one.key for one in entity.aliases if one.kind == "name" and one.text == entity.name}
    for alias in aliases:
        if not context.has(loser, alias):
            raise CommandRefusedError("invalid_command", f"{alias.text} is no name of {entity.name} ({loser})")
        if alias.kind == "name" and alias.key in own:
            raise CommandRefusedError("invalid_command", f"{alias.text} is the own name of {loser}: rename it first")
