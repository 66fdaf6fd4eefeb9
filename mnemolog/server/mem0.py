"""The eight routes about memories of mem0's open-source server, with its shapes: programs for it work here.

A request of mem0 names some ids and means all memories that have these, whatever their others are; `app_id` it does
not know. It is answered once a turn has ended, as mem0 does.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from operator import itemgetter
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from mnemolog.errors import InvalidCommandError, InvalidTurnError, UnknownFactError
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.explain import History
from mnemolog.projections.queries.results import Fact, FactRef, Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE
from mnemolog.schemas.facts import FactStatus
from mnemolog.server.gate import Access, Ids, Reader
from mnemolog.server.sending import MAX_WAIT_SECONDS, Order, Publication

WITH_EXPIRED: Final[list[FactStatus]] = ["active", "expired"]
_IDS: Final = ("user_id", "agent_id", "run_id")
_TOP_K: Final = 20
_MAX_TOP_K: Final = 1000
_EVENTS: Final[Mapping[str, str]] = {"added": "ADD", "updated": "UPDATE", "deleted": "DELETE", "held": "ADD"}
"""What mem0 calls what became of a fact, by the field of a result."""
_ENDED: Final[tuple[FactStatus, ...]] = ("retracted", "expired", "undone")
"""Of a fact in whose place is nothing."""

Memory = dict[str, Any]
MemoryId = Annotated[str, Path(description="the id of a memory")]
router = APIRouter(tags=["mem0"])


class MemoryCreate(BaseModel):
    """As mem0 has it; `memory_type` and `prompt` are refused."""

    messages: list[dict[str, Any]] | str
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    metadata: dict[str, Any] | None = None
    expiration_date: str | None = None
    infer: bool | None = None
    memory_type: str | None = None
    prompt: str | None = None


class MemoryUpdate(BaseModel):
    """As mem0 has it; an `expiration_date` is refused."""

    text: str | None = None
    metadata: dict[str, Any] | None = None
    expiration_date: str | None = None


class SearchRequest(BaseModel):
    """As mem0 has it."""

    query: str
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    filters: dict[str, Any] | None = None
    top_k: Annotated[int, Query(ge=0, le=100)] | None = None
    threshold: float | None = None
    explain: bool | None = None
    show_expired: bool | None = None


class Memories(BaseModel):
    """Memories, or what became of them."""

    results: list[Memory]


class Said(BaseModel):
    """A sentence for people."""

    message: str


def wide_ids(access: Access, given: Mapping[str, Any]) -> dict[str, str | None]:
    """The ids that are named, or to which the principal is bound; the others whatever they are."""
    named: Mapping[str, Any] = access.scope({name: given.get(name) for name in (*_IDS, "app_id")})
    return {name: named.get(name, ANY_OR_NONE) for name in (*_IDS, "app_id")}


@router.post("/memories")
async def add_memory(publication: Publication, body: MemoryCreate) -> Memories:
    """Publish messages as one turn, and answer with what became of memories."""
    if body.memory_type or body.prompt:
        raise InvalidTurnError("memory_type and prompt are not supported: leave them out; policies have instructions")
    if not any(getattr(body, name) for name in _IDS):
        raise InvalidTurnError("at least one of user_id, agent_id and run_id is needed: give the user_id")
    until = None if body.expiration_date is None else expiry(body.expiration_date)
    waiting = publication.waiting(MAX_WAIT_SECONDS)
    end = await waiting.send(
        {name: getattr(body, name) for name in _IDS},
        lambda memory: memory.add(
            body.messages, infer=body.infer is not False, metadata=body.metadata, valid_until=until
        ),
    )
    return Memories(results=changed(end))


def expiry(date: str) -> datetime:
    """The end of a day. Raises `InvalidTurnError`."""
    try:
        day = datetime.strptime(date, "%Y-%m-%d").date()  # noqa: DTZ007 - a day
        return datetime.combine(day, time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise InvalidTurnError(f"expiration_date is {date!r:.40}: write it as 2026-01-31") from error


def changed(end: Result) -> list[Memory]:
    """What became of facts, as mem0 says it; of a turn that goes on its id, and the event PENDING."""
    if end.status == "pending":
        return [{"id": end.turn_id, "memory": None, "event": "PENDING"}]
    found: list[tuple[str, FactRef]] = [(word, ref) for field, word in _EVENTS.items() for ref in getattr(end, field)]
    return [{"id": str(ref.fact_id), "memory": ref.text, "event": word} for word, ref in found]


@router.get("/memories")
async def all_memories(
    access: Reader,
    ids: Ids,
    top_k: Annotated[int, Query(ge=0, le=_MAX_TOP_K)] = _TOP_K,
    show_expired: bool = False,
) -> Memories:
    """The memories of some ids, or of all that the key may read."""
    memory = access.memory(wide_ids(access, ids))
    filters = {"state": {"in": WITH_EXPIRED}} if show_expired else None
    found = await memory.facts(filters=filters, limit=top_k) if top_k else []
    return Memories(results=[shown(fact) for fact in found])


def shown(fact: Fact) -> Memory:
    """A fact as mem0 has a memory."""
    memory: Memory = {
        "id": str(fact.fact_id),
        "memory": fact.text,
        "hash": hashlib.md5(fact.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": fact.metadata or None,
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        **{name: getattr(fact, name) for name in _IDS if getattr(fact, name) is not None},
    }
    return memory | ({"expiration_date": fact.valid_until.date().isoformat()} if fact.valid_until else {})


@router.get("/memories/{memory_id}")
async def get_memory(access: Reader, memory_id: MemoryId) -> Memory:
    """One memory; one that was deleted is not known."""
    fact = await access.memory({}).get(memory_id)
    if fact.status in ("retracted", "undone"):
        raise UnknownFactError(fact.tenant, memory_id)
    return shown(fact)


@router.post("/search")
async def search_memories(access: Reader, body: SearchRequest) -> Memories:
    """The memories nearest to a question; ids may stand among the filters."""
    filters = dict(body.filters or {})
    named = {name: getattr(body, name) or filters.pop(name, None) for name in _IDS}
    if not all(isinstance(value, str | None) for value in named.values()):
        raise QueryError("an id among the filters is text: for others use the filters of /v1/search")
    memory = access.memory(wide_ids(access, named))
    found = await memory.search(
        body.query,
        limit=body.top_k or _TOP_K,
        threshold=body.threshold,
        filters=filters,
        state=WITH_EXPIRED if body.show_expired else None,
    )
    results = [shown(hit.fact) | {"score": hit.score.total} for hit in found]
    if body.explain:
        results = [one | {"score_details": asdict(hit.score)} for one, hit in zip(results, found, strict=True)]
    return Memories(results=results if body.top_k != 0 else [])


@router.put("/memories/{memory_id}")
async def update_memory(order: Order, memory_id: MemoryId, body: MemoryUpdate) -> Said:
    """Replace the text of a memory, or its metadata."""
    if body.expiration_date is not None:
        raise InvalidTurnError("an expiration_date is not changed here: correct the fact by /v1/facts/ID/correct")
    more: dict[str, Any] = {} if body.metadata is None else {"metadata": body.metadata}
    text = body.text
    if text is None:
        order.access.principal.require("read")
        text = (await order.access.memory({}).get(memory_id)).text
    end = await order.waiting(MAX_WAIT_SECONDS).send({}, lambda memory: memory.update(memory_id, text, **more))
    refuse_rejected(end)
    return Said(message="Memory updated successfully!")


@router.delete("/memories/{memory_id}")
async def delete_memory(order: Order, memory_id: MemoryId) -> Said:
    """Delete a memory; its history stays."""
    refuse_rejected(await order.waiting(MAX_WAIT_SECONDS).send({}, lambda memory: memory.delete(memory_id)))
    return Said(message="Memory deleted successfully")


def refuse_rejected(end: Result) -> None:
    """Raise `InvalidCommandError` for what changed nothing: the shapes of mem0 have no place for that."""
    if end.status == "rejected":
        raise InvalidCommandError(end.error or end.status)


@router.delete("/memories")
async def delete_memories(order: Order, ids: Ids) -> Said:
    """Delete all memories of some ids."""
    if not any(ids.values()):
        raise QueryError("at least one of user_id, agent_id and run_id is needed: give the user_id")
    wide = wide_ids(order.access, ids)
    await order.waiting(MAX_WAIT_SECONDS).send(wide, lambda memory: memory.delete_all())
    return Said(message="All relevant memories deleted")


@router.get("/memories/{memory_id}/history")
async def memory_history(access: Reader, memory_id: MemoryId) -> list[Memory]:
    """What happened to a memory, the oldest first."""
    return changes(await access.memory({}).history(memory_id))


def changes(history: History) -> list[Memory]:
    """Versions as ADD and UPDATE, and an end with nothing in its place as DELETE."""
    texts = {version.fact_id: version.text for version in history.versions}
    found: list[tuple[datetime, str, Fact, str | None, str | None]] = []
    for version in history.versions:
        old = next((texts[one] for one in version.supersedes if one in texts), None)
        found.append((version.created_at, "UPDATE" if old else "ADD", version, old, version.text))
    found += [(one.updated_at, "DELETE", one, one.text, None) for one in history.versions if one.status in _ENDED]
    return [
        {
            "id": f"{fact.fact_id}/{number}",
            "memory_id": str(fact.fact_id),
            "old_memory": old,
            "new_memory": new,
            "event": event,
            "created_at": fact.created_at.isoformat(),
            "updated_at": at.isoformat(),
            "is_deleted": event == "DELETE",
            "actor_id": fact.speaker,
            "role": None,
        }
        for number, (at, event, fact, old, new) in enumerate(sorted(found, key=itemgetter(0)))
    ]
