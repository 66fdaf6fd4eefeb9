"""Routes about facts: search, context, lists, and one fact's life."""

from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query
from pydantic import BaseModel

from mnemolog.client.search import SearchResult
from mnemolog.projections.context import Context
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.diff import Diff
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.results import Axis, Fact, FoundFact, Profile
from mnemolog.server.bodies import ContextBody, SearchBody, Time
from mnemolog.server.commands import FactId
from mnemolog.server.gate import Access, Memory, Reader

MAX_PAGE: Final = 1000

PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE)]
router = APIRouter(prefix="/v1", tags=["facts"])


class FactPage(BaseModel):
    """Facts in the order in which they were learned; `next` is what `after` of the next page is, null at the end."""

    items: list[Fact]
    next: str | None


@router.post("/search")
async def search(access: Reader, body: SearchBody) -> SearchResult:
    """The facts nearest to a question in meaning and words, best first; the question is embedded here."""
    arguments = body.arguments
    return await access.memory(body.ids).search(**arguments | _scopes(access, arguments))


@router.post("/context")
async def context(access: Reader, body: ContextBody) -> Context:
    """What is known and matters to a question, as a text of at most `budget_tokens` for a prompt."""
    arguments = {"query": None, **body.arguments}
    return await access.memory(body.ids).context(**arguments | _scopes(access, arguments))


def _scopes(access: Access, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"any": access.scopes(arguments["any"])} if "any" in arguments else {}


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


@router.get("/facts/{fact_id}")
async def fact(memory: Memory, fact_id: FactId) -> FoundFact:
    """A fact as it is now; of a former version what took its place."""
    return await memory.get(fact_id)


@router.get("/facts/{fact_id}/history")
async def history(memory: Memory, fact_id: FactId) -> History:
    """A fact's versions, and every event that made or touched them."""
    return await memory.history(fact_id)


@router.get("/facts/{fact_id}/explain")
async def explain(memory: Memory, fact_id: FactId) -> Explanation:
    """Where a fact comes from: its turn and excerpt, how it was decided, what happened to it since."""
    return await memory.explain(fact_id)


@router.get("/profile")
async def profile(memory: Memory) -> Profile:
    """What is known of exactly one scope, by section."""
    return await memory.profile()


@router.get("/pending")
async def pending(memory: Memory) -> list[PendingFact | PendingMerge]:
    """Changes that wait for a confirmation, the oldest first."""
    return await memory.pending()


@router.get("/unresolved")
async def unresolved(memory: Memory) -> list[UnresolvedFact]:
    """Facts whose conflict could not be decided, the oldest first."""
    return await memory.unresolved()


@router.get("/diff")
async def diff(memory: Memory, since: Time, until: Time | None = None, axis: Axis = "believed") -> Diff:
    """What changed from `since` up to `until` (now unless given)."""
    return await memory.diff(since, until, axis=axis)
