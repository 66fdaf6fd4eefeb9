"""`/mcp`: the tools of `mnemolog.mcp` for whoever has a key; each request is authorised by itself, and none is kept."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import names_owner
from mnemolog.mcp import Right, build_server
from mnemolog.server.access import ForbiddenError
from mnemolog.server.gate import Access, Gate, ids_in_query
from mnemolog.settings import McpTools


class ToolRoute:
    """Lets in who has a key; what that key may do is asked by each tool."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        access = await self._gate.admit(HTTPConnection(scope))
        await self._app({**scope, "mnemolog.access": access}, receive, send)


async def memory_of(scope: Mapping[str, Any], right: Right) -> AsyncMemoryClient:
    """The memory that the URL names, else that of the key's user. Raises `ForbiddenError`."""
    access: Access = scope["mnemolog.access"]
    access.principal.require(right)
    query = HTTPConnection(dict(scope)).query_params
    asked = {name: query.get(name) for name in ids_in_query()}
    if not names_owner(access.scope(asked)):
        raise ForbiddenError("this key is for several users: name one in the URL of the server, /mcp?user_id=alice")
    return access.memory(asked)


@asynccontextmanager
async def offering_tools(app: FastAPI, gate: Gate, tools: McpTools) -> AsyncIterator[None]:
    """Answer at `/mcp` while the context lasts. Who asks from where is for the gate, also without keys."""
    server = build_server(memory_of, tools=tools)
    served = server.streamable_http_app(stateless_http=True, json_response=True, host="")
    app.router.routes.append(Route("/mcp", ToolRoute(served, gate), methods=["POST"], include_in_schema=False))
    started, stopped = asyncio.Event(), asyncio.Event()

    async def run() -> None:  # in a task of its own: who ends the context may be another one than who began it
        async with server.session_manager.run():
            started.set()
            await stopped.wait()

    running = asyncio.create_task(run())
    await started.wait()
    try:
        yield
    finally:
        stopped.set()
        await running
