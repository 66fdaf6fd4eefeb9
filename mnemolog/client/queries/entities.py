"""The methods of the client that tell whom and what facts name."""

from typing import Unpack
from uuid import UUID

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.inputs.asked_names import read_question
from mnemolog.client.inputs.checks import When
from mnemolog.client.inputs.fact_ids import whole_id
from mnemolog.client.inputs.scopes import scope_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import checked_time
from mnemolog.client.queries.entity_lookup import EntityLookup
from mnemolog.projections.lists import entities as lists
from mnemolog.projections.lists import entity_graph, relations
from mnemolog.projections.lists.entities import Entity, EntityDetails
from mnemolog.projections.lists.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.lists.relations import AskedTimes, EntityRelation
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.scope_filter import ScopeFilter


@measured
@checked(QueryError)
class EntityQueryMixin(EntityLookup):
    """People, places and things that facts name. No method needs Kafka."""

    async def entities(
        self,
        *,
        type: str | None = None,  # noqa: A002 -- as an entity has it
        limit: int | None = None,
        after: UUID | str | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Entity]:
        """The entities that facts of a scope name, in the order in which they were named first. The user is one.

        All of them, those of one `type` ("person", "place"), or `limit` of them, from the first or from the one that
        follows the entity `after`, a whole id.
        """
        following = None if after is None else whole_id(after)
        if following is None and after is not None:
            raise QueryError(f"after {after!r:.80} is a part of an id: give the whole `entity_id` of the last one")
        return await self._query(lists.entities, scope_filter(scope), kind=type, limit=limit, after=following)

    async def entity(
        self,
        name: str,
        *,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> EntityDetails:
        """One entity: its names, the current facts that name it with its role in each, and its possible twins.

        With its relations, its profile (what holds of it now) and its timeline.

        `name` is one of its names, as it was said ("Ana"), the beginning of its id, or what it is to somebody, as `who`
        takes it ("my wife"): who is that now, else who was called so. Raises `UnknownEntityError`, and
        `AmbiguousIdError` where several are meant.

        With `believed_at` and `true_at` as `relations` takes them, what was known then: the facts of `facts_as_of` that
        name it, its relations and profile of then, what happened to it up to then; and no summary.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = await self._one_entity(str(name), within, as_of)
        return await self._query(lists.details, one, all_versions=all_versions, as_of=as_of)

    async def relations(
        self,
        entity: str | None = None,
        *,
        predicate: str | None = None,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[EntityRelation]:
        """What the entities of a scope are to each other now, or ever were, as it was stated; the oldest first.

        With `entity`, a name or id as `entity` takes it, all relations read from that one, also those that were stated
        of others. `predicate` is a word for one: "spouse", "wife", "works at". Raises as `entity` does.

        `believed_at` asks for what was known then, `true_at` for what held then: now, and the same as `believed_at`,
        unless given. Entities are those of now, after all merges and splits; what was taken back since is left out.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = None if entity is None else await self._one_entity(entity, within, as_of)
        return await self._query(
            relations.relations,
            within if one is None else ScopeFilter.of_scope(one.scope),
            subject_ids=None if one is None else [one.entity_id],
            predicate=predicate,
            all_versions=all_versions,
            mirrors=entity is not None,
            as_of=as_of,
        )

    async def neighbours(
        self,
        entity: str,
        *,
        hops: int = 1,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Neighbour]:
        """The entities that hold to be related to one, or at 2 `hops` also to those, each once with the path to it.

        The times are those of `relations`. Raises as `entity` does, and `QueryError` for other hops.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = await self._one_entity(entity, within, as_of)
        return await self._query(entity_graph.neighbours, one, hops=hops, as_of=as_of)

    async def who(
        self,
        name: str,
        *,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Entity]:
        """Who or what somebody means: "my wife", "Tom's boss", "my wife's dog", "my employer", or a name.

        "My" is the user's; "wife" alone is, too, where nobody has that name. What somebody is to another one follows
        from relations that hold now, or at the times that `relations` takes; an empty list where nobody is that.
        """
        asked, within, as_of = read_question(str(name)), scope_filter(scope), _as_of(believed_at, true_at)
        if asked is None:
            return []
        found = await self._meant(asked, within, as_of)
        of_user = read_question(f"my {name}") if not found and asked.tie is None else None
        return found if of_user is None else await self._meant(of_user, within, as_of)

    async def graph(
        self,
        *,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> EntityGraph:
        """The related entities of a scope with their relations, at the times that `relations` takes.

        Its `mermaid` is a diagram.
        """
        as_of = _as_of(believed_at, true_at)
        return await self._query(entity_graph.graph, scope_filter(scope), all_versions=all_versions, as_of=as_of)


def _as_of(believed_at: When | None, true_at: When | None) -> AskedTimes:
    times = [None if one is None else checked_time(one) for one in (believed_at, true_at)]
    return AskedTimes(believed_at=times[0], true_at=times[1])
