"""The methods of the client that tell whom and what facts name."""

from typing import Unpack
from uuid import UUID

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.inputs.asked_names import AskedName, read_question
from mnemolog.client.inputs.fact_ids import whole_id
from mnemolog.client.inputs.scopes import scope_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader
from mnemolog.projections.lists import entities as lists
from mnemolog.projections.lists import entity_graph, relations
from mnemolog.projections.lists.entities import Entity, EntityDetails
from mnemolog.projections.lists.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.lists.relations import EntityRelation
from mnemolog.projections.queries.errors import AmbiguousIdError, QueryError, UnknownEntityError
from mnemolog.streams.entities.name_keys import name_key


@measured
@checked(QueryError)
class EntityQueryMixin(FactIdReader):
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

    async def entity(self, name: str, *, all_versions: bool = False, **scope: Unpack[ScopeArgs]) -> EntityDetails:
        """One entity: its names, the current facts that name it with its role in each, and its possible twins.

        With its relations, its profile (what holds of it now) and its timeline.

        `name` is one of its names, as it was said ("Ana"), the beginning of its id, or what it is to somebody, as `who`
        takes it ("my wife"). Raises `UnknownEntityError`, and `AmbiguousIdError` where several are meant.
        """
        within, given = scope_filter(scope), str(name)
        key = name_key(given)
        try:
            return await self._query(lists.entity, within, given, key, all_versions=all_versions)
        except UnknownEntityError:
            entity_id = str(await self._tied(given, scope))
        return await self._query(lists.entity, within, entity_id, key, all_versions=all_versions)

    async def relations(
        self,
        entity: str | None = None,
        *,
        predicate: str | None = None,
        all_versions: bool = False,
        **scope: Unpack[ScopeArgs],
    ) -> list[EntityRelation]:
        """What the entities of a scope are to each other now, or ever were, as it was stated; the oldest first.

        With `entity`, a name or id as `entity` takes it, all relations read from that one, also those that were stated
        of others. `predicate` is a word for one: "spouse", "wife", "works at". Raises as `entity` does.
        """
        within = scope_filter(scope)
        ids = None if entity is None else [await self._id_of_entity(entity, scope)]
        return await self._query(
            relations.relations,
            within,
            subject_ids=ids,
            predicate=predicate,
            all_versions=all_versions,
            mirrors=entity is not None,
        )

    async def neighbours(self, entity: str, *, hops: int = 1, **scope: Unpack[ScopeArgs]) -> list[Neighbour]:
        """The entities that hold to be related to one, or at 2 `hops` also to those, each once with the path to it.

        Raises as `entity` does, and `QueryError` for other hops.
        """
        entity_id = await self._id_of_entity(entity, scope)
        return await self._query(entity_graph.neighbours, scope_filter(scope), entity_id, hops=hops)

    async def who(self, name: str, **scope: Unpack[ScopeArgs]) -> list[Entity]:
        """Who or what somebody means: "my wife", "Tom's boss", "my wife's dog", "my employer", or a name.

        "My" is the user's. What somebody is to another one follows from relations that hold now; an empty list where
        nobody is that.
        """
        asked = read_question(str(name))
        return [] if asked is None else await self._meant(asked, scope)

    async def graph(self, *, all_versions: bool = False, **scope: Unpack[ScopeArgs]) -> EntityGraph:
        """The related entities of a scope with their relations; its `mermaid` is a diagram."""
        return await self._query(entity_graph.graph, scope_filter(scope), all_versions=all_versions)

    async def _id_of_entity(self, name: str, scope: ScopeArgs) -> UUID:
        return (await self.entity(name, **scope)).entity.entity_id

    async def _tied(self, given: str, scope: ScopeArgs) -> UUID:
        """The one who is what a text says to somebody. Raises as `entity` does."""
        asked = read_question(given)
        found = [] if asked is None or asked.tie is None else await self._meant(asked, scope)
        if not found:
            raise UnknownEntityError(given)
        if len(found) > 1:
            raise AmbiguousIdError("entity", given, [(str(one.entity_id), one.name) for one in found], is_name=True)
        return found[0].entity_id

    async def _meant(self, asked: AskedName, scope: ScopeArgs) -> list[Entity]:
        within = scope_filter(scope)
        if asked.tie is None:
            return await self._query(lists.called, within, asked.name, name_key(asked.name))
        if asked.owner is None:
            owners = await self._query(entity_graph.user_entities, within)
        else:
            owners = await self._meant(asked.owner, scope)
        return await self._query(entity_graph.related, within, [one.entity_id for one in owners], asked.tie)
