"""Routes that are methods of the client: what stands in the path is the first argument, others in query or body."""

import inspect
import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path

from mnemolog.client.administration import AdminMethods
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.entities import EntityMethods
from mnemolog.projections.queries.diff import Diff
from mnemolog.projections.queries.entities import EntityDetails, EntityRelation
from mnemolog.projections.queries.entity_graph import Neighbour
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.results import FoundFact, Profile, Result
from mnemolog.server.bodies import Body, body_of, fields_of
from mnemolog.server.gate import Ids, Memory
from mnemolog.server.sending import ENDED, Order

PLACES: Final[Mapping[str, Any]] = {
    "fact_id": Annotated[str, Path(description="the id of a fact, or its beginning of four characters or more")],
    "name": Annotated[str, Path(description='a name, what it is to somebody ("my wife"), or the beginning of its id')],
}
READS: Final[Mapping[str, tuple[str, Any]]] = {
    "get": ("/facts/{fact_id}", FoundFact),
    "history": ("/facts/{fact_id}/history", History),
    "explain": ("/facts/{fact_id}/explain", Explanation),
    "profile": ("/profile", Profile),
    "pending": ("/pending", list[PendingFact | PendingMerge]),
    "unresolved": ("/unresolved", list[UnresolvedFact]),
    "diff": ("/diff", Diff),
    "entities.relations": ("/entities/{name:path}/relations", list[EntityRelation]),
    "entities.neighbours": ("/entities/{name:path}/neighbours", list[Neighbour]),
    "entities.get": ("/entities/{name:path}", EntityDetails),
}
"""The path of each method that reads, and what it answers."""
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "update": ("PATCH", "/facts/{fact_id}"),
    "delete": ("DELETE", "/facts/{fact_id}"),
    **{name: ("POST", f"/facts/{{fact_id}}/{name}") for name in ("correct", "confirm", "reject", "resolve")},
    "delete_all": ("POST", "/facts/delete-all"),
    "undo": ("POST", "/undo"),
    "end_session": ("POST", "/end-session"),
    **{f"admin.{name}": ("POST", f"/{name}") for name in ("promote", "feedback")},
    **{
        f"entities.{name}": ("POST", f"/entities/{{name:path}}/{name}")
        for name in ("rename", "alias", "merge", "split", "forget", "summarise")
    },
}

OWNERS: Final[Mapping[str, type]] = {"": AsyncMemoryClient, "entities": EntityMethods, "admin": AdminMethods}
router = APIRouter(prefix="/v1")
Endpoint = Callable[..., Any]


def _add(name: str, verb: str, path: str, answer: Any) -> None:
    owner, _, own = name.rpartition(".")
    method, call = getattr(OWNERS[owner], own), attrgetter(name)
    placed = re.findall(r"{(\w+)", path)
    beside = [*inspect.signature(method).parameters][1 : 1 + len(placed)]  # what stands in the path

    async def read(memory: Memory, **given: Any) -> Any:
        return await call(memory)(*[given.pop(one) for one in placed], **_set(given))

    async def remove(order: Order, ids: Ids, **given: Any) -> Any:
        return await order.send(ids, lambda memory: call(memory)(*[given.pop(one) for one in placed], **_set(given)))

    async def send(order: Order, body: Body, **given: Any) -> Any:
        return await order.send(body.ids, lambda memory: call(memory)(*given.values(), **body.arguments))

    endpoints: dict[str, Endpoint] = {"GET": read, "DELETE": remove}
    endpoint = endpoints.get(verb, send)
    taken = [(one, PLACES[one], ...) for one in placed]
    if endpoint is send:
        send.__annotations__["body"] = body_of("".join(map(str.capitalize, own.split("_"))), method, beside=beside)
    else:
        taken += fields_of(method, beside=beside)
    said = inspect.cleandoc(method.__doc__)
    endpoint.__signature__ = _signature(endpoint, taken)  # type: ignore[attr-defined] # as `inspect` documents it
    reads = endpoint is read
    router.add_api_route(
        path,
        endpoint,
        methods=[verb],
        name=name,
        tags=["commands" if not reads else "entities" if owner else "facts"],
        description=said.split("\n\n")[0] if endpoint is send else re.split(r"(?<=\.)\s", said)[0],
        response_model=answer,
        status_code=200 if reads else 202,
        responses=None if reads else ENDED,
    )


def _set(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _signature(endpoint: Endpoint, taken: list[tuple[str, Any, Any]]) -> inspect.Signature:
    """That of an endpoint with what it takes in place of `given`: FastAPI reads it."""
    own = [one for one in inspect.signature(endpoint).parameters.values() if one.name != "given"]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind,
            default=inspect.Parameter.empty if default is ... else default,
        )
        for name, kind, default in taken
    ]
    return inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in own] + more)


for _name, (_path, _answer) in READS.items():
    _add(_name, "GET", _path, _answer)
for _name, (_verb, _path) in COMMANDS.items():
    _add(_name, _verb, _path, Result)
