"""The application: its routes, what is around each of them, and its OpenAPI document."""

import asyncio
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.errors import MnemologError
from mnemolog.server import facts, mem0, methods, operations, page, turns
from mnemolog.server.frame import RequestFrame
from mnemolog.server.gate import Gate, refuse_unknown_query
from mnemolog.server.problems import MEDIA_TYPE, Problem, problem, problem_of

READY_SECONDS: Final = 2.0
"""In which Kafka and Postgres have to answer for the server to be ready."""
FAULTS: Final[dict[int | str, dict[str, Any]]] = {
    401: {"model": Problem, "description": "no key or token, or one that is not valid"},
    403: {"model": Problem, "description": "the key does not allow it, or a quota is used up (`limit`)"},
    404: {"model": Problem, "description": "nothing has this id in the scope"},
    409: {"model": Problem, "description": "several have this id or name"},
    413: {"model": Problem, "description": "the body is too large"},
    422: {"model": Problem, "description": "something in the request is not valid; the detail names it"},
    429: {"model": Problem, "description": "too many requests of this key"},
    503: {"model": Problem, "description": "a server is away: send it again"},
}
health = APIRouter(prefix="/health", tags=["health"])


@health.get("/live")
async def live() -> dict[str, str]:
    """That the process answers."""
    return {"status": "live"}


@health.get("/ready", responses={503: FAULTS[503]}, response_model=dict[str, str])
async def ready(request: Request) -> Any:
    """Whether Kafka and Postgres answer, and the server does not stop."""
    client: AsyncMemoryClient = request.app.state.client
    if request.app.state.draining.is_set():
        return problem(request, 503, "the server stops: ask another one")
    try:
        async with asyncio.timeout(READY_SECONDS):
            await client.ping()
    except (MnemologError, TimeoutError):
        return problem(request, 503, "a server that the memory needs does not answer: its log says which")
    return {"status": "ready"}


PUBLIC: Final = ("/health/live", "/health/ready", "/openapi.json", *page.PUBLIC)
"""Paths without a key: they tell nothing of anybody."""


def build_app(client: AsyncMemoryClient, gate: Gate, *, max_body: int, page_commands: bool = False) -> FastAPI:
    """The application over a client. `state.draining` is set to end requests that wait, before the server stops.

    With `page_commands` the page may change memory, where a key may.
    """
    # A program whose id is empty asks for DELETE /memories/?user_id=...: redirected, it would delete all of the user.
    app = FastAPI(
        title="Mnemolog",
        version=version("mnemolog"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.client, app.state.gate, app.state.draining = client, gate, asyncio.Event()
    app.include_router(health)
    for one in (turns, facts, methods, operations):
        app.include_router(one.router, responses=FAULTS, dependencies=[Depends(refuse_unknown_query)])
    app.include_router(mem0.router, responses=FAULTS)  # its programs may send more than it knows
    app.include_router(page.router)
    app.state.page_commands = page_commands
    app.add_middleware(RequestFrame, max_body=max_body)
    for kind in (MnemologError, HTTPException, RequestValidationError):  # all others reach the frame
        app.add_exception_handler(kind, problem_of)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return JSONResponse(openapi_document(app))

    return app


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; faults have the media type of problems."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for operations_of_path in document["paths"].values():
            for operation in operations_of_path.values():
                for status, response in operation["responses"].items():
                    if int(status) >= HTTPStatus.BAD_REQUEST and "content" in response:
                        response["content"] = {MEDIA_TYPE: response["content"].popitem()[1]}
        app.openapi_schema = document
    return app.openapi_schema
