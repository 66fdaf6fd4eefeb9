"""The methods of the client that tell whom and what facts name."""

from typing import Unpack
from uuid import UUID

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.inputs.fact_ids import whole_id
from mnemolog.client.inputs.scopes import scope_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader
from mnemolog.projections.lists import entities as lists
from mnemolog.projections.lists.entities import Entity, EntityDetails
from mnemolog.projections.queries.errors import QueryError
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

        `name` is one of its names, as it was said ("Ana", "my wife"), or the beginning of its id. Raises
        `UnknownEntityError`, and `AmbiguousIdError` where several have the name.
        """
        given = str(name)
        key = name_key(given)
        return await self._query(lists.entity, scope_filter(scope), given, key, all_versions=all_versions)
