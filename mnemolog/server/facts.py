"""Routes that read otherwise than a method of the client does: search, context, lists by pages, and a past moment."""

from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query
from pydantic import BaseModel

from mnemolog.client.search import SearchResult
from mnemolog.projections.context import Context
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.entities import Entity
from mnemolog.projections.queries.results import Fact
from mnemolog.server.bodies import ContextBody, SearchBody, Time
from mnemolog.server.gate import Access, Memory, Reader

MAX_PAGE: Final = 1000

PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE)]
router = APIRouter(prefix="/v1", tags=["facts"])


class FactPage(BaseModel):
    """Facts in the order in which they were learned; `next` is what `after` of the next page is, null at the end."""

    items: list[Fact]
    next: str | None


class EntityPage(BaseModel):
    """Entities in the order in which they were named first; `next` is what `after` of the next page is."""

    items: list[Entity]
    next: str | None


@router.post("/search")
async def search(access: Reader, body: SearchBody) -> SearchResult:
    """The facts nearest to a question in meaning and words, best first; the question is embedded here."""
    return await access.memory(body.ids).search(**_arguments(access, body))


@router.post("/context")
async def context(access: Reader, body: ContextBody) -> Context:
    """What is known and matters to a question, as a text of at most `budget_tokens` for a prompt."""
    return await access.memory(body.ids).context(**{"query": None, **_arguments(access, body)})


def _arguments(access: Access, body: SearchBody | ContextBody) -> dict[str, Any]:
    arguments: dict[str, Any] = body.arguments
    return arguments | ({"any": access.scopes(arguments["any"])} if "any" in arguments else {})


def read_filters(text: str | None) -> dict[str, Any] | None:
    """Filters as a query has them. Raises `QueryError`."""
    if text is None:
        return None
    try:
        filters = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QueryError(f'filters is not valid JSON ({error}): write {{"categories": "health"}}') from error
    if not isinstance(filters, dict):
        raise QueryError('filters must be a JSON object, such as {"categories": "health"}')
    return filters


Filters = Annotated[str | None, Query(description="conditions as a JSON object")]


@router.get("/facts")
async def facts(
    memory: Memory,
    limit: PageSize = 100,
    after: str | None = None,
    all_versions: bool = False,
    filters: Filters = None,
) -> FactPage:
    """The current facts, or all versions, a page at a time."""
    wanted = read_filters(filters)
    found = await memory.facts(all_versions=all_versions, filters=wanted, limit=limit, after=after)
    return FactPage(items=found, next=str(found[-1].fact_id) if len(found) == limit else None)


@router.get("/facts/as-of")
async def facts_as_of(memory: Memory, believed_at: Time, true_at: Time | None = None) -> list[Fact]:
    """What was known at `believed_at` to be true at `true_at`."""
    return await memory.facts(believed_at=believed_at, true_at=true_at)


@router.get("/entities")
async def entities(
    memory: Memory,
    limit: PageSize = 100,
    after: str | None = None,
    kind: Annotated[str | None, Query(alias="type")] = None,
) -> EntityPage:
    """The entities of a scope, or those of one type, a page at a time. The user is one."""
    found = await memory.entities.list(type=kind, limit=limit, after=after)
    return EntityPage(items=found, next=str(found[-1].entity_id) if len(found) == limit else None)
