"""What is around every request: its id, the limit of its body, its figures, and an answer whatever happens."""

import asyncio
import re
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final

import uuid_utils
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mnemolog.server.metrics import REQUEST_SECONDS
from mnemolog.server.problems import problem_of

REQUEST_ID: Final = b"x-request-id"
_GIVEN_ID: Final = re.compile(rb"[\w.-]{1,64}", re.ASCII)


BODY_SECONDS: Final = 30.0
"""In which the next part of a body has to come: the body is read before the key is looked at."""


class RequestFrame:
    """Middleware. A request gets the id that it brings in X-Request-Id, or a new one; the answer has it, too."""

    def __init__(self, app: ASGIApp, *, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(REQUEST_ID, b"")
        request_id = given if _GIVEN_ID.fullmatch(given) else str(uuid_utils.uuid7()).encode()
        scope.setdefault("state", {})["request_id"] = request_id.decode()
        started, read, status, whole = perf_counter(), 0, 0, False

        async def receive_limited() -> Message:
            nonlocal read, whole
            try:
                async with asyncio.timeout(None if whole else BODY_SECONDS):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT) from None
            whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > self._max_body:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (REQUEST_ID, request_id)]}
            await send(message)

        try:
            await self._app(scope, receive_limited, send_with_id)
        except Exception as error:
            if status:
                raise
            answer = await problem_of(Request(scope), error)
            await answer(scope, receive, send_with_id)
        finally:
            REQUEST_SECONDS.labels(route=_route(scope), status=str(status)).observe(perf_counter() - started)


def _route(scope: Scope) -> str:
    """The method and the path of the route: of few values, and without ids."""
    route: Any = scope.get("route")
    return f"{scope['method']} {route.path}" if route is not None else "other"
