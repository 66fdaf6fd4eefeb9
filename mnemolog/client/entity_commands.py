"""The methods of the client that change which entity facts name: rename, merge, split, alias and forget."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Unpack, cast
from uuid import UUID

from mnemolog.client.base import Order, Read
from mnemolog.client.commands import CommandBase
from mnemolog.client.entities import EntityLookup, EntityNames, EntityQueryMixin, EntityRef
from mnemolog.client.inputs import (
    CommandArgs,
    FactIds,
    ScopeArgs,
    Wait,
    as_ids,
    kind_of,
    scope_filter,
    scope_ids,
    whole_id,
    wide_filter,
)
from mnemolog.client.records import names_owner
from mnemolog.errors import InvalidCommandError, NotConnectedError, ServerUnavailableError
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries import entities
from mnemolog.projections.queries.entities import Entity
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ANY_VALUE
from mnemolog.schemas.scope import SCOPE_FIELDS

_Listed = list[Entity]


class EntityCommandMixin(CommandBase, EntityLookup):
    """Commands about people, places and things that facts name. Entities are given as `get` takes them.

    They return, wait and raise as the commands about facts do, and `UnknownEntityError`, or `AmbiguousIdError` where
    several entities are meant. All entities of a command are of one scope, which need not be named where they are
    found. Each is undone by `undo(turn_id=command_id)`.
    """

    @Order
    async def rename(
        self, entity: EntityRef, name: str, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> Result:
        """Give an entity another own name, which no other one may have. The former one stays one of its names."""
        return await self._issue_on_entities("rename_entity", arguments, wait, {"entity_id": entity}, name=name)

    @Order
    async def alias(
        self,
        entity: EntityRef,
        name: str,
        *,
        moved_from: EntityRef | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Give an entity one more name: a name, or what it is to somebody ("my wife", "Ben's dog").

        One that another entity has stays with that, and the command is rejected, unless `moved_from` names that entity.
        """
        named = {"entity_id": entity, "moved_from": moved_from}
        return await self._issue_on_entities("alias_entity", arguments, wait, named, name=name)

    @Order
    async def merge(
        self,
        entities: EntityRef | Iterable[EntityRef],
        *,
        into: EntityRef,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Say that entities, up to 20, are the same as `into`, which has their names and facts from now on."""
        named = {"entity_ids": _as_list(entities), "into": into}
        return await self._issue_on_entities("merge_entities", arguments, wait, named)

    @Order
    async def split(
        self,
        entity: EntityRef,
        name: str,
        *,
        fact_ids: FactIds = (),
        names: EntityNames = (),
        type: str | None = None,  # noqa: A002 -- as an entity has it
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Say that an entity is two: a new one called `name` gets these facts and names of it, up to 100 each.

        Its type is that of the entity unless given. Later turns that use one of its names mean the new one.
        """
        moved = {"fact_ids": as_ids("fact_ids", fact_ids), "names": [names] if isinstance(names, str) else [*names]}
        named = {"entity_id": entity}
        return await self._issue_on_entities("split_entity", arguments, wait, named, name=name, type=type, **moved)

    @Order
    async def forget(
        self, entity: EntityRef, *, facts: bool = False, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> Result:
        """Forget an entity: it has no names, and no fact names it. Its facts stay, or with `facts` are deleted."""
        return await self._issue_on_entities("forget_entity", arguments, wait, {"entity_id": entity}, facts=facts)

    @Order
    async def summarise(self, entity: EntityRef, *, wait: Wait = False, **arguments: Unpack[CommandArgs]) -> Result:
        """Have the model of the worker write a summary of an entity from its active facts; `entity()` shows it.

        Rejected where no policy or setting (`entity_summary`) allows that, and where a budget of the day is spent.
        """
        return await self._issue_on_entities("summarise_entity", arguments, wait, {"entity_id": entity})

    async def _issue_on_entities(
        self, kind: str, arguments: CommandArgs, wait: float, named: dict[str, Any], **fields: Any
    ) -> Result:
        """One command about the entities in `named`: by field of the command a reference, a list of them, or None."""
        several = {name: given if isinstance(given, list) else [given] for name, given in named.items()}
        found = await self._found([one for given in several.values() for one in given if one is not None], arguments)
        scopes = list(dict.fromkeys(scope for _, scope in found if scope is not None))
        if len(scopes) > 1:
            raise InvalidCommandError(f"these entities are of {len(scopes)} scopes: send a command for each")
        ids = dict(zip(SCOPE_FIELDS, scopes[0], strict=True)) if scopes else {}
        entity_ids = iter(entity_id for entity_id, _ in found)
        payload: dict[str, Any] = {}
        for name, given in several.items():
            whole = [next(entity_ids) for one in given if one is not None]
            payload[name] = whole if isinstance(named[name], list) else next(iter(whole), None)
        draft = self._draft(kind, cast("CommandArgs", {**arguments, **ids}), {**payload, **fields})
        return await self._publish_one(await self._located(draft) if fields.get("fact_ids") else draft, wait)

    async def _found(
        self, given: Sequence[EntityRef], arguments: CommandArgs
    ) -> list[tuple[UUID, tuple[str | None, ...] | None]]:
        """The id of each entity and its scope; that of a whole id is not known where Postgres cannot be asked."""
        try:
            return [await self._entity_id(one, arguments) for one in given]
        except (NotConnectedError, ServerUnavailableError):
            known = [_known(one, arguments) if isinstance(one, Entity) else (whole_id(one), None) for one in given]
            whole = [(entity_id, scope) for entity_id, scope in known if entity_id is not None]
            if not names_owner(arguments) or len(whole) < len(known):
                raise
            return whole

    async def _entity_id(self, given: EntityRef, arguments: CommandArgs) -> tuple[UUID, tuple[str | None, ...]]:
        if isinstance(given, Entity):
            return _known(given, arguments)
        if isinstance(given, UUID | str):
            return _known(await self._one_entity(str(given), wide_filter(arguments)), arguments)
        raise InvalidCommandError(f"an entity is given by a name or an id, not {kind_of(given)}")


class EntityMethods(EntityQueryMixin, EntityCommandMixin):
    """People, places and things that facts name, and what they are to each other."""

    _namespace: ClassVar[str] = "entities."

    @Read
    async def list(
        self,
        *,
        type: str | None = None,  # noqa: A002 -- as an entity has it
        limit: int | None = None,
        after: UUID | str | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> _Listed:
        """The entities that facts of a scope name, in the order in which they were named first. The user is one.

        All of them, those of one `type` ("person", "place"), or `limit` of them, from the first or from the one that
        follows the entity `after`, a whole id.
        """
        following = None if after is None else whole_id(after)
        if following is None and after is not None:
            raise QueryError(f"after {after!r:.80} is a part of an id: give the whole `entity_id` of the last one")
        return await self._query(entities.entities, scope_filter(scope), kind=type, limit=limit, after=following)


def _known(one: Entity, arguments: CommandArgs) -> tuple[UUID, tuple[str | None, ...]]:
    """The id and the scope of an entity. Raises `InvalidCommandError` where the caller names another scope."""
    for (name, named), its in zip(scope_ids(arguments).items(), one.scope_ids, strict=True):
        if named not in (None, ANY_VALUE, ANY_OR_NONE, its):
            raise InvalidCommandError(f"{name} is {named!r}, but entity {one.entity_id} is of {its!r}")
    return one.entity_id, one.scope_ids


def _as_list(given: object) -> list[Any]:
    """One entity or several. Raises `InvalidCommandError`."""
    if isinstance(given, Entity | UUID | str):
        return [given]
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise InvalidCommandError(f"entities must be entities, names or ids, not {kind_of(given)}")
    return list(given)
