"""Routes about the people, places and things that facts name; they read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from mnemolog.client.entities import MomentArgs
from mnemolog.projections.queries.entities import Entity, EntityDetails, EntityRelation
from mnemolog.projections.queries.entity_graph import Neighbour
from mnemolog.server.bodies import Time
from mnemolog.server.commands import Name
from mnemolog.server.facts import PageSize
from mnemolog.server.gate import Memory

router = APIRouter(prefix="/v1/entities", tags=["entities"])


class EntityPage(BaseModel):
    """Entities in the order in which they were named first; `next` is what `after` of the next page is."""

    items: list[Entity]
    next: str | None


def moment(believed_at: Time | None = None, true_at: Time | None = None) -> MomentArgs:
    return {"believed_at": believed_at, "true_at": true_at}


Moment = Annotated[MomentArgs, Depends(moment)]


@router.get("")
async def entities(
    memory: Memory,
    limit: PageSize = 100,
    after: str | None = None,
    kind: Annotated[str | None, Query(alias="type")] = None,
) -> EntityPage:
    """The entities of a scope, or those of one type, a page at a time. The user is one."""
    found = await memory.entities.list(type=kind, limit=limit, after=after)
    return EntityPage(items=found, next=str(found[-1].entity_id) if len(found) == limit else None)


@router.get("/{name:path}/relations")
async def relations(
    memory: Memory, moment: Moment, name: Name, predicate: str | None = None, all_versions: bool = False
) -> list[EntityRelation]:
    """What an entity is to others, now or at another moment."""
    return await memory.entities.relations(name, predicate=predicate, all_versions=all_versions, **moment)


@router.get("/{name:path}/neighbours")
async def neighbours(
    memory: Memory, moment: Moment, name: Name, hops: Annotated[int, Query(ge=1, le=2)] = 1
) -> list[Neighbour]:
    """The entities that are related to one, each once with the path to it."""
    return await memory.entities.neighbours(name, hops=hops, **moment)


@router.get("/{name:path}")
async def entity(memory: Memory, moment: Moment, name: Name, all_versions: bool = False) -> EntityDetails:
    """One entity: its names, facts, relations, profile and timeline, now or at another moment."""
    return await memory.entities.get(name, all_versions=all_versions, **moment)
