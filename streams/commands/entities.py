"""Commands about entities: what each of them looks up, and the changes that it makes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args
from uuid import UUID

from mnemolog.schemas import command as orders
from mnemolog.schemas import ids
from mnemolog.schemas.command import EntityCommand, FactIds
from mnemolog.schemas.entities import MAX_MOVED, Alias
from mnemolog.schemas.entity_events import (
    AnyEntityChange,
    EntitiesMerged,
    EntityAliasSet,
    EntityChange,
    EntityDecisionUndone,
    EntityForgotten,
    EntityRenamed,
    EntitySplit,
    MergeRejected,
)
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.stored import StoredEntity, StoredProposal
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError, Fault, raise_for_faults
from mnemolog.streams.entities.names import read_name
from mnemolog.streams.entities.resolver import (
    EntityRegistry,
    NameContext,
    key_with_origin,
    keys_of_names,
    names_of,
)
from mnemolog.streams.text.differences import is_user_word

if TYPE_CHECKING:
    from mnemolog.projections.stores.entities import EntityStore

ENTITY_COMMANDS: Final = get_args(EntityCommand)
EntityChanges = tuple[AnyEntityChange, ...]


@dataclass(frozen=True, slots=True)
class EntityCommandHandler:
    """Carries out commands about entities; it writes nothing itself."""

    entities: "EntityStore"

    async def changes(
        self, command: CommandContext, payload: EntityCommand, user_names: Sequence[str]
    ) -> EntityChanges:
        """What a command changes. Raises `CommandRefusedError`."""
        named, given_names = _entities_and_names(payload)
        names = NameContext(owner=command.owner, source_id=command.source_id, user_names=tuple(user_names))
        known = await self.entities.entities(named)
        asked = keys_of_names([*given_names, *(one.name for one in known.values())], names)
        found = await self.entities.known_entities(command.scope, heads=asked.heads, keys=asked.keys)
        context = EntityContext(command=command, known=known, registry=EntityRegistry(found), names=names)
        raise_for_faults(entity_fault(command, entity_id, known) for entity_id in named)
        match payload:
            case orders.RenameEntity():  # to a name that no other entity has
                alias = context.alias(payload.name)
                if alias.kind != "name":
                    detail = f"{payload.name!r} is no proper name: add it with alias"
                    raise CommandRefusedError("invalid_command", detail)
                _refuse_taken(context, alias, payload.entity_id)
                done = f"renamed {known[payload.entity_id].name} to {alias.text}"
                return (context.change(EntityRenamed, done, entity_id=payload.entity_id, name=alias.text, alias=alias),)
            case orders.AliasEntity():
                return (_add_alias(context, payload),)
            case orders.MergeEntities(into=into):
                merged = tuple(dict.fromkeys(payload.entity_ids))
                if into in merged:
                    raise CommandRefusedError("invalid_command", f"{into} cannot be merged into itself")
                _refuse_merged_user(known[entity_id] for entity_id in merged)
                names_of_merged = ", ".join(known[entity_id].name for entity_id in merged)
                done = f"merged {names_of_merged} into {known[into].name}"
                return (context.change(EntitiesMerged, done, merged=merged, into=into),)
            case orders.SplitEntity():
                naming = await self.entities.naming_facts(payload.entity_id, payload.fact_ids)
                return (_split(context, payload, naming),)
            case orders.ForgetEntity():
                entity = known[payload.entity_id]
                if entity.is_user:
                    detail = "the user cannot be forgotten: delete their facts instead"
                    raise CommandRefusedError("invalid_command", detail)
                return (context.change(EntityForgotten, f"forgot {entity.name}", entity_id=payload.entity_id),)

    async def settled(
        self, command: CommandContext, payload: orders.Confirm | orders.Reject
    ) -> tuple[EntityChanges, FactIds]:
        """The changes for the proposed merges among the ids of a command, and the other ids, of facts."""
        found = {one.event_id: one for one in await self.entities.proposals(payload.fact_ids)}
        raise_for_faults(_proposal_fault(command, one) for one in found.values())
        proposals = [found[one] for one in dict.fromkeys(payload.fact_ids) if one in found]
        left = tuple(one for one in payload.fact_ids if one not in found)
        if isinstance(payload, orders.Confirm):
            named = Counter(entity_id for one in proposals for entity_id in (one.merged, one.into))
            if twice := [str(one.event_id) for one in proposals if max(named[one.merged], named[one.into]) > 1]:
                detail = f"{' and '.join(twice)} are about one entity: confirm one, and look at what is left"
                raise CommandRefusedError("invalid_command", detail)  # together they would merge three
            known = await self.entities.entities([one.merged for one in proposals]) if proposals else {}
            _refuse_merged_user(known.values())
        changes: list[AnyEntityChange] = []
        for one in proposals:
            said = "confirmed that {} is {}" if isinstance(payload, orders.Confirm) else "said that {} is not {}"
            fields = command.event_fields(0, command.decision("person", said.format(one.merged_name, one.into_name)))
            if isinstance(payload, orders.Confirm):
                changes.append(EntitiesMerged(**fields, merged=(one.merged,), into=one.into, proposal=one.event_id))
            else:
                changes.append(MergeRejected(**fields, proposal=one.event_id, named=(one.into, one.merged)))
        return tuple(changes), left

    async def undone(self, command: CommandContext, payload: orders.Undo) -> EntityChanges:
        """The undo of each selected change that holds, and of each selected undo that is the latest on its change."""
        selected = await self.entities.undo_targets(command.scope, payload)
        wanted = {
            one.original_id: one
            for one in selected
            # A change that was undone and redone is undone at its latest event.
            if one.in_effect == one.enables and (one.enables or one.event_id == one.latest_id)
        }
        return tuple(
            EntityDecisionUndone(
                **command.event_fields(0, command.decision("person", f"took back {one.event} of {one.source_id}")),
                undone=one.original_id if one.enables else one.event_id,
                undone_event=one.original_event if one.enables else one.event,
                reinstated=None if one.enables else one.original_id,
                named=one.entity_ids,
            )
            for one in reversed(wanted.values())
        )


def numbered(changes: EntityChanges, envelope: MatchedFacts, *, first: int) -> EntityChanges:
    """The changes as the events of a commit, from the ordinal `first` on."""
    return tuple(
        change.model_copy(
            update={"ordinal": ordinal, "event_id": ids.event_id(envelope.owner, envelope.source_id, ordinal)}
        )
        for ordinal, change in enumerate(changes, first)
    )


def _entities_and_names(payload: EntityCommand) -> tuple[list[UUID], list[str]]:
    """The ids of the entities that a command names, and the names that it gives."""
    match payload:
        case orders.MergeEntities():
            return [*payload.entity_ids, payload.into], []
        case orders.RenameEntity():
            return [payload.entity_id], [payload.name]
        case orders.AliasEntity(moved_from=loser):
            return [payload.entity_id, *([] if loser is None else [loser])], [payload.name]
        case orders.SplitEntity():
            return [payload.entity_id], [payload.name, *payload.names]
        case orders.ForgetEntity():
            return [payload.entity_id], []


def given_alias(name: str, registry: EntityRegistry, names: NameContext) -> Alias:
    """The alias that a person gives: a name, a name with an origin ("Tom from work"), or a tie ("my wife").

    Raises `CommandRefusedError` for text that is none.
    """

    def refused(why: str) -> CommandRefusedError:
        return CommandRefusedError("invalid_command", why)

    spoken = read_name(name)
    if spoken is None or not (spoken.tie or spoken.key) or is_user_word(name):
        raise refused(f"{name!r} names nobody: give a name")
    if spoken.tie is None:
        return Alias(text=spoken.text, key=key_with_origin(spoken.key, spoken.origin))
    if spoken.name is not None:
        raise refused(f"{name!r} is a tie and a name: give one of them")
    if names.is_user(spoken.owner):
        if (owner := registry.user()) is None:
            raise refused("the user is not known as an entity yet, so nobody is anything to them: give a name")
    else:
        owner_key = named.key if (named := read_name(spoken.owner or "")) else ""
        owners = [one for one in registry if owner_key in names_of(one)]
        if len(owners) != 1:
            raise refused(f"{len(owners)} entities are called {spoken.owner!r}: give a name, or first tell them apart")
        (owner,) = owners
    return Alias(text=spoken.text, kind="tie", key=f"{spoken.tie} of {owner.entity_id}")


def entity_fault(command: CommandContext, entity_id: UUID, known: Mapping[UUID, StoredEntity]) -> Fault | None:
    """Why a command cannot change an entity."""
    entity = known.get(entity_id)
    if entity is None:
        return "unknown_entity", f"{entity_id} is not known: check the id"
    if entity.scope != command.scope:
        return "foreign_entity", f"{entity_id} belongs to another scope: send the command in the scope of the entity"
    if entity.status == "merged":
        return "merged_entity", f"{entity_id} was merged into {entity.merged_into}: name that, or undo the merge"
    if entity.status != "active":
        return "unknown_entity", f"{entity_id} was {entity.status}: undo that first"
    return None


C = TypeVar("C", bound=EntityChange)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContext:
    """A command, the entities that it names by id (`known`), and those that its names may mean (`registry`)."""

    command: CommandContext
    known: Mapping[UUID, StoredEntity]
    registry: EntityRegistry
    names: NameContext

    def alias(self, name: str, of: UUID | None = None) -> Alias:
        """The alias with this text that the entity `of` has, as readers see it; else a new alias.

        Raises `CommandRefusedError` for text that is no name.
        """
        shown = self.known[of].aliases if of is not None else ()
        for alias in shown:
            if alias.kind != "user" and alias.text.casefold() == name.casefold():
                return alias
        return given_alias(name, self.registry, self.names)

    def has(self, entity_id: UUID, alias: Alias) -> bool:
        return any((one.kind, one.key) == (alias.kind, alias.key) for one in self.known[entity_id].aliases)

    def change(self, made: type[C], done: str, **fields: Any) -> C:
        """A change, with the id and ordinal of the command's first event until it is `numbered`."""
        return made(**self.command.event_fields(0, self.command.decision("person", done)), **fields)


def _add_alias(context: EntityContext, payload: orders.AliasEntity) -> EntityAliasSet:
    """Give an entity an alias, taken from `moved_from` if given; one that it has by a merge becomes its own."""
    alias, loser = context.alias(payload.name, payload.moved_from), payload.moved_from
    if loser == payload.entity_id:
        raise CommandRefusedError("invalid_command", f"{alias.text} cannot move from an entity to itself")
    done = f"called {context.known[payload.entity_id].name} {alias.text}"
    if loser is None:
        _refuse_taken(context, alias, payload.entity_id)
    else:
        _refuse_loss(context, loser, [alias])
        done = f"{done}, which {context.known[loser].name} was called"
    return context.change(EntityAliasSet, done, entity_id=payload.entity_id, alias=alias, moved_from=loser)


def _refuse_merged_user(merged: Iterable[StoredEntity]) -> None:
    if any(entity.is_user for entity in merged):
        raise CommandRefusedError("invalid_command", "the user is merged into nobody: merge the others into the user")


def _proposal_fault(command: CommandContext, proposal: StoredProposal) -> Fault | None:
    """Why a proposed merge can be neither confirmed nor rejected."""
    if proposal.scope != command.scope:
        return (
            "foreign_entity",
            f"{proposal.event_id} belongs to another scope: send the command in the scope of the proposed merge",
        )
    if not proposal.is_pending:
        return "not_pending", f"{proposal.event_id} waits no more: see the entities, or undo what settled it"
    return None


def _split(context: EntityContext, payload: orders.SplitEntity, naming: Collection[UUID]) -> EntitySplit:
    """Move facts and names of an entity to a new one; `naming` are these facts as far as they name the entity.

    Former versions of the facts are among them, and move with them.
    """
    strange = [fact_id for fact_id in payload.fact_ids if fact_id not in naming]
    if strange:
        listed = ", ".join(map(str, strange))
        raise CommandRefusedError("invalid_command", f"{payload.entity_id} is not named by {listed}: see the entity")
    if len(naming) > MAX_MOVED:
        detail = (
            f"with their former versions these are {len(naming)} facts, and one split moves {MAX_MOVED}: name fewer"
        )
        raise CommandRefusedError("invalid_command", detail)
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
        facts=tuple(dict.fromkeys((*payload.fact_ids, *sorted(naming)))),
    )


def _refuse_taken(context: EntityContext, alias: Alias, *but: UUID) -> None:
    """Raise `CommandRefusedError` for an alias of other entities than `but`."""
    shown = (one.as_shown for one in context.registry if one.entity_id not in but)
    if taken := [one.entity_id for one in shown if alias.key in one.keys(alias.kind)]:
        listed = ", ".join(map(str, taken))
        raise CommandRefusedError(
            "name_taken",
            f"{alias.text} is a name of {listed}: give one that tells them apart, with a surname or an origin; "
            "merge them if they are one; or say from whom the name moves (moved_from of alias)",
        )


def _refuse_loss(context: EntityContext, loser: UUID, aliases: list[Alias]) -> None:
    """Raise `CommandRefusedError` for an alias that the loser does not have, and for its own name."""
    entity = context.known[loser]
    own = {one.key for one in entity.aliases if one.kind == "name" and one.text == entity.name}
    for alias in aliases:
        if not context.has(loser, alias):
            raise CommandRefusedError("invalid_command", f"{alias.text} is no name of {entity.name} ({loser})")
        if alias.kind == "name" and alias.key in own:
            raise CommandRefusedError("invalid_command", f"{alias.text} is the own name of {loser}: rename it first")
