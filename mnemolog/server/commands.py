"""Routes of commands: each is a method of the client, whose arguments are the fields of its body."""

import inspect
from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

from fastapi import APIRouter, Depends, Path
from pydantic import create_model

from mnemolog.client.administration import AdminMethods
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.commands import CommandMixin
from mnemolog.client.entities import EntityMethods
from mnemolog.projections.queries.results import Result
from mnemolog.server.bodies import Body, CommandBody, Time
from mnemolog.server.gate import Ids
from mnemolog.server.sending import ENDED, Order

FactId = Annotated[str, Path(description="the id of a fact, or its beginning of four characters or more")]
Name = Annotated[str, Path(description='a name, what it is to somebody ("my wife"), or the beginning of its id')]
ROUTES: Final[Mapping[str, str]] = {
    "update": "PATCH /facts/{fact_id}",
    **{name: f"POST /facts/{{fact_id}}/{name}" for name in ("correct", "confirm", "reject", "resolve")},
    "delete_all": "POST /facts/delete-all",
    **{name: f"POST /{name.replace('_', '-')}" for name in ("undo", "promote", "feedback", "end_session")},
    **{
        name: f"POST /entities/{{name:path}}/{name}"
        for name in ("rename", "alias", "merge", "split", "forget", "summarise")
    },
}
"""The route of each method; what stands in its path is the first argument."""
_ELSEWHERE: Final = frozenset({"self", "tenant", "actor", "wait", *CommandBody.model_fields})

router = APIRouter(prefix="/v1", tags=["commands"])


def json_type(hint: Any) -> Any:
    """What JSON has in place of an argument: ids and times are texts, and of one or several it is a list."""
    kinds = {get_origin(one) or one for one in get_args(hint)}
    if str not in kinds or get_origin(hint) in (Iterable, Mapping):
        return hint
    plain: Any = list[str] if Iterable in kinds else Time if datetime in kinds else str
    return plain | None if NoneType in kinds else plain


def body_of(name: str, said: str, parameters: Iterable[inspect.Parameter]) -> type[Body]:
    """A body with the arguments that its base has not; one that is not given is left to the method."""
    absent: dict[Any, Any] = {inspect.Parameter.empty: ..., ...: None, (): []}
    fields: dict[str, Any] = {
        one.name: (json_type(one.annotation), absent.get(one.default, one.default))
        for one in parameters
        if one.name not in _ELSEWHERE
    }
    title = "".join(map(str.capitalize, name.split("_")))
    return create_model(f"{title}Body", __base__=CommandBody, __doc__=said, **fields)


def fact_in_path(fact_id: FactId) -> str:
    return fact_id


def entity_in_path(name: Name) -> str:
    return name


def _add(name: str, route: str) -> None:
    verb, path = route.split()
    is_of_entity = path.startswith("/entities/")
    kind = next(one for one in (CommandMixin, EntityMethods, AdminMethods) if hasattr(one, name))
    method = getattr(kind, name)
    said, parameters = inspect.cleandoc(method.__doc__), [*inspect.signature(method).parameters.values()][1:]

    async def send(order: Order, body: Body) -> Result:
        def publish(memory: AsyncMemoryClient) -> Awaitable[Result]:
            owner = {EntityMethods: memory.entities, AdminMethods: memory.admin}.get(kind, memory)
            return getattr(owner, name)(*order.request.path_params.values(), **body.arguments)  # type: ignore[no-any-return] # by its name

        return await order.send(body.ids, publish)

    in_path = [Depends(entity_in_path if is_of_entity else fact_in_path)] if "{" in path else []
    send.__annotations__["body"] = body_of(name, said, parameters[len(in_path) :])
    router.add_api_route(
        path,
        send,
        methods=[verb],
        status_code=202,
        responses=ENDED,
        name=name,
        description=said.split("\n\n")[0],
        dependencies=in_path,
    )


for _name, _route in ROUTES.items():
    _add(_name, _route)


@router.delete("/facts/{fact_id}", status_code=202, responses=ENDED)
async def delete(order: Order, ids: Ids, fact_id: FactId, command_id: str | None = None) -> Result:
    """Delete a fact, with all that took its place since; its history stays, and an undo restores it."""
    return await order.send(ids, lambda memory: memory.delete(fact_id, command_id=command_id))
