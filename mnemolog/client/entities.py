"""Entities, the people, places and things that facts name: the methods of `memory.entities`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Unpack, cast
from uuid import UUID

from mnemolog.client.base import Blocking, Order, Read, checked_time
from mnemolog.client.commands import CommandBase
from mnemolog.client.inputs import (
    CommandArgs,
    FactIds,
    ScopeArgs,
    Wait,
    When,
    as_ids,
    kind_of,
    names_owner,
    scope_filter,
    scope_ids,
    whole_id,
    wide_filter,
)
from mnemolog.errors import InvalidCommandError, NotConnectedError, ServerUnavailableError
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries import entities, entity_graph
from mnemolog.projections.queries.entities import NOW, AskedTimes, Entity, EntityDetails, EntityRelation, of_one_name
from mnemolog.projections.queries.entity_graph import AskedTie, EntityGraph, Neighbour
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ANY_VALUE, ScopeFilter
from mnemolog.schemas.entities import WORDS, read_predicate
from mnemolog.schemas.scope import SCOPE_FIELDS

EntityRef = Entity | UUID | str
"""An entity that was read, one of its names, what it is to somebody ("my wife"), or the beginning of its id.

That has four characters or more."""
EntityNames = str | Iterable[str]
"""One name of an entity, or several."""

_MAX_OWNERS: Final = 5
"""How many owners are read: "my wife's boss's dog's vet" has three."""
_OWNED: Final = re.compile(r"^(?:my|our|(?P<owner>\S.*?)['\u2019]s) (?P<word>[^'\u2019]+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedName:
    """A name ("Ana"), or with `tie` a relation to `owner`, who is the user where there is none ("my wife")."""

    name: str
    tie: AskedTie | None = None
    owner: "AskedName | None" = None


def read_question(text: str, *, owners: int = _MAX_OWNERS) -> AskedName | None:
    """Which entity a text asks for; None where the text is no name, or has more than `owners` owners."""
    from mnemolog.streams.entities.names import read_name  # noqa: PLC0415 - its words in ten languages take .2 s

    spoken = read_name(text)
    if spoken is None or owners == 0:
        return None
    if spoken.tie is not None:
        tie, owner = AskedTie(predicate=spoken.tie, tie=spoken.tie, name_key=spoken.key), spoken.owner
    else:
        owned = _OWNED.match(spoken.text)
        read = read_predicate(owned["word"]) if owned else None
        if owned is None or read is None or read.word not in WORDS:
            return AskedName(name=spoken.text)
        tie, owner = AskedTie(predicate=read.word), owned["owner"]
    if owner is None:
        return AskedName(name=spoken.text, tie=tie)
    whose = read_question(owner, owners=owners - 1)
    return None if whose is None else AskedName(name=spoken.text, tie=tie, owner=whose)


class MomentArgs(ScopeArgs, total=False):
    """Whose entities, and of when: as they were known at `believed_at`, and as things were at `true_at`."""

    believed_at: When | None
    true_at: When | None


def _as_of(asked: MomentArgs) -> AskedTimes:
    believed, true = asked.get("believed_at"), asked.get("true_at")
    return AskedTimes(
        believed_at=None if believed is None else checked_time(believed),
        true_at=None if true is None else checked_time(true),
    )


_Listed = list[Entity]


class EntityMethods(CommandBase):
    """People, places and things that facts name, and what they are to each other.

    Queries need no Kafka. Commands return, wait and raise as those about facts do, and `UnknownEntityError`, or
    `AmbiguousIdError` where several entities are meant; there an entity is given as `get` takes it. All entities of a
    command are of one scope, which need not be named where they are found. Each is undone by
    `undo(turn_id=command_id)`.
    """

    _namespace: ClassVar[str] = "entities."

    @Read
    async def get(self, name: str, *, all_versions: bool = False, **asked: Unpack[MomentArgs]) -> EntityDetails:
        """One entity: its names, the current facts that name it with its role in each, and its possible twins.

        With its relations, its profile (what holds of it now) and its timeline.

        `name` is one of its names, as it was said ("Ana"), the beginning of its id, or what it is to somebody, as `who`
        takes it ("my wife"): who is that now, else who was called so. Raises `UnknownEntityError`, and
        `AmbiguousIdError` where several are meant.

        With `believed_at` and `true_at` as `relations` takes them, what was known then: the facts of then that
        name it, its relations and profile of then, what happened to it up to then; and no summary.
        """
        within, as_of = scope_filter(asked), _as_of(asked)
        one = await self._one_entity(str(name), within, as_of)
        return await self._query(entities.details, one, all_versions=all_versions, as_of=as_of)

    @Read
    async def relations(
        self,
        entity: str | None = None,
        *,
        predicate: str | None = None,
        all_versions: bool = False,
        limit: int | None = entities.LISTED_RELATIONS,
        **asked: Unpack[MomentArgs],
    ) -> list[EntityRelation]:
        """What the entities of a scope are to each other now, or ever were, as it was stated; the oldest first.

        With `entity`, a name or id as `get` takes it, all relations read from that one, also those that were stated
        of others. `predicate` is a word for one: "spouse", "wife", "works at". No more than the `limit` that were
        stated last are looked at, None for all: what a scope costs grows with its relations. Raises as `get` does.

        `believed_at` asks for what was known then, `true_at` for what held then: now, and the same as `believed_at`,
        unless given. Entities are those of now, after all merges and splits; what was taken back since is left out.
        """
        within, as_of = scope_filter(asked), _as_of(asked)
        one = None if entity is None else await self._one_entity(entity, within, as_of)
        return await self._query(
            entities.relations,
            within if one is None else ScopeFilter.of_scope(one.scope),
            subject_ids=None if one is None else [one.entity_id],
            predicate=predicate,
            all_versions=all_versions,
            mirrors=entity is not None,
            limit=limit,
            as_of=as_of,
        )

    @Read
    async def neighbours(self, entity: str, *, hops: int = 1, **asked: Unpack[MomentArgs]) -> list[Neighbour]:
        """The entities that hold to be related to one, or at 2 `hops` also to those, each once with the path to it.

        The times are those of `relations`. Raises as `get` does, and `QueryError` for other hops.
        """
        within, as_of = scope_filter(asked), _as_of(asked)
        one = await self._one_entity(entity, within, as_of)
        return await self._query(entity_graph.neighbours, one, hops=hops, as_of=as_of)

    @Read
    async def who(self, name: str, **asked: Unpack[MomentArgs]) -> list[Entity]:
        """Who or what somebody means: "my wife", "Tom's boss", "my wife's dog", "my employer", or a name.

        "My" is the user's; "wife" alone is, too, where nobody has that name. What somebody is to another one follows
        from relations that hold now, or at the times that `relations` takes; an empty list where nobody is that.
        """
        question, within, as_of = read_question(str(name)), scope_filter(asked), _as_of(asked)
        if question is None:
            return []
        found = await self._meant(question, within, as_of)
        of_user = read_question(f"my {name}") if not found and question.tie is None else None
        return found if of_user is None else await self._meant(of_user, within, as_of)

    @Read
    async def graph(self, *, all_versions: bool = False, **asked: Unpack[MomentArgs]) -> EntityGraph:
        """The related entities of a scope with their last 1 000 relations, at the times that `relations` takes.

        Its `mermaid` is a diagram.
        """
        within, as_of = scope_filter(asked), _as_of(asked)
        return await self._query(entity_graph.graph, within, all_versions=all_versions, as_of=as_of)

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
        given: object = [entities] if isinstance(entities, Entity | UUID | str) else entities
        if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
            raise InvalidCommandError(f"entities must be entities, names or ids, not {kind_of(given)}")
        named = {"entity_ids": list(given), "into": into}
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
        if isinstance(names, Mapping | bytes) or not isinstance(names, Iterable):
            raise InvalidCommandError(f"names must be a name or a list of names, not {kind_of(names)}")
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
        """Have the model of the worker write a summary of an entity from its active facts; `get` shows it.

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
        found: list[tuple[UUID, tuple[str | None, ...] | None]] = []
        can_ask = True
        for one in given:
            named: object = one
            if not isinstance(named, Entity | UUID | str):
                raise InvalidCommandError(f"an entity is given by a name or an id, not {kind_of(named)}")
            entity = one if isinstance(one, Entity) else None
            try:
                if entity is None and can_ask:
                    entity = await self._one_entity(str(one), wide_filter(arguments))
            except (NotConnectedError, ServerUnavailableError):
                if not names_owner(arguments) or any(not isinstance(i, Entity) and not whole_id(i) for i in given):
                    raise
                can_ask = False
            if entity is None:
                found.append((cast("UUID", whole_id(one)), None))
                continue
            for (name, id_), its in zip(scope_ids(arguments).items(), entity.scope_ids, strict=True):
                if id_ not in (None, ANY_VALUE, ANY_OR_NONE, its):
                    raise InvalidCommandError(f"{name} is {id_!r}, but entity {entity.entity_id} is of {its!r}")
            found.append((entity.entity_id, entity.scope_ids))
        return found

    async def _one_entity(self, given: str, within: ScopeFilter, as_of: AskedTimes = NOW) -> Entity:
        """The entity that `given` names.

        In each scope an entity that stands in the asked relation goes before entities that are merely called so:
        somebody else's "my boss" is called "my boss", too, and so may be a former boss. Raises `UnknownEntityError`,
        and `AmbiguousIdError` where several entities are left.
        """
        called = await self._called(given, within)
        asked = read_question(given)
        tied = [] if asked is None or asked.tie is None else await self._meant(asked, within, as_of)
        called_ids = {entity.entity_id for entity in called}
        both = [entity for entity in tied if entity.entity_id in called_ids]
        scopes_of_both = {entity.scope_ids for entity in both}
        tied_only = [entity for entity in tied if entity.scope_ids not in scopes_of_both]
        scopes_of_tied = {entity.scope_ids for entity in tied}
        called_only = [entity for entity in called if entity.scope_ids not in scopes_of_tied]
        return of_one_name(given, [*both, *tied_only, *called_only])

    async def _meant(self, asked: AskedName, within: ScopeFilter, as_of: AskedTimes = NOW) -> list[Entity]:
        """The entities that have the asked name, or that stand in the asked relation to an entity the owner means."""
        if asked.tie is None:
            return await self._called(asked.name, within)
        if asked.owner is None:
            owners = await self._query(entity_graph.user_entities, within)
        else:
            owners = await self._meant(asked.owner, within, as_of)
        owner_ids = [entity.entity_id for entity in owners]
        return await self._query(entity_graph.related, within, owner_ids, asked.tie, as_of=as_of)

    async def _called(self, name: str, within: ScopeFilter) -> list[Entity]:
        from mnemolog.streams.entities.names import name_key  # noqa: PLC0415 - see `read_question`

        return await self._query(entities.called, within, name, name_key(name))

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


class Entities(Blocking, EntityMethods):
    """The methods of `memory.entities`."""
