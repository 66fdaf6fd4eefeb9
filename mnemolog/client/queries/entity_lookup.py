"""Finds the entities that a caller means: by a name, an id, or what they are to somebody."""

from mnemolog.client.base import ClientBase
from mnemolog.client.inputs.asked_names import AskedName, read_question
from mnemolog.projections.lists import entities as lists
from mnemolog.projections.lists import entity_graph
from mnemolog.projections.lists.entities import Entity, of_one_name
from mnemolog.projections.lists.relations import NOW, AskedTimes
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.streams.entities.name_keys import name_key


class EntityLookup(ClientBase):
    """Finds entities within a scope, which may be a wide one: then each scope has its own "my wife"."""

    async def _one_entity(self, given: str, within: ScopeFilter, as_of: AskedTimes = NOW) -> Entity:
        """The entity that is meant. Raises `UnknownEntityError`, and `AmbiguousIdError` where several are."""
        called = await self._called(given, within)
        asked = read_question(given)
        tied = [] if asked is None or asked.tie is None else await self._meant(asked, within, as_of)
        return of_one_name(given, _of_each_scope(tied, called))

    async def _meant(self, asked: AskedName, within: ScopeFilter, as_of: AskedTimes = NOW) -> list[Entity]:
        """Those who have a name, or who are now what is asked for to those who are meant by the owner."""
        if asked.tie is None:
            return await self._called(asked.name, within)
        if asked.owner is None:
            owners = await self._query(entity_graph.user_entities, within)
        else:
            owners = await self._meant(asked.owner, within, as_of)
        ids = [one.entity_id for one in owners]
        return await self._query(entity_graph.related, within, ids, asked.tie, as_of=as_of)

    async def _called(self, name: str, within: ScopeFilter) -> list[Entity]:
        return await self._query(lists.called, within, name, name_key(name))


def _of_each_scope(tied: list[Entity], called: list[Entity]) -> list[Entity]:
    """In each scope those who are what is asked for, of several those who are called so; else all who are called so.

    Somebody else's "my boss" is called so, too, and so may be a former one.
    """
    called_so = {one.entity_id for one in called}
    both = [one for one in tied if one.entity_id in called_so]
    named = {one.scope_ids for one in both}
    answered = {one.scope_ids for one in tied}
    others = [one for one in tied if one.scope_ids not in named]
    return [*both, *others, *(one for one in called if one.scope_ids not in answered)]
