"""Routes for who runs a memory: export and import, users, failed turns, health and metrics."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO, RawIOBase
from typing import IO, Annotated, Any, Final, cast

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import StreamingResponse

from mnemolog.client.files import ImportReport
from mnemolog.projections.queries.audit import FailedTurn
from mnemolog.projections.queries.facts import IdCount
from mnemolog.server.facts import Filters, PageSize, read_filters
from mnemolog.server.gate import Administrator, Commander, Ids, Memory
from mnemolog.server.sending import WaitSeconds

JSON_LINES: Final = "application/x-ndjson"
_QUEUED_BATCHES: Final = 4
_LINES: Final[dict[str, Any]] = {"content": {JSON_LINES: {"schema": {"type": "string"}}}}

router = APIRouter(tags=["operations"])


class Pipe(RawIOBase):
    """A file to which a thread writes, and from which the loop reads; the thread waits for room."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED_BATCHES)
        self._is_abandoned = False

    def write(self, data: Any) -> int:
        if self._is_abandoned:
            raise BrokenPipeError
        asyncio.run_coroutine_threadsafe(self._queue.put(bytes(data)), self._loop).result()
        return len(data)

    async def end(self) -> None:
        await self._queue.put(None)

    async def read_batch(self) -> bytes | None:
        return await self._queue.get()

    def abandon(self) -> None:
        """Nobody reads on: a thread that waits for room goes on, and its next write raises `BrokenPipeError`."""
        self._is_abandoned = True
        while not self._queue.empty():
            self._queue.get_nowait()


@router.get("/v1/export", response_class=StreamingResponse, responses={200: _LINES})
async def export(memory: Memory, all_versions: bool = False, filters: Filters = None) -> StreamingResponse:
    """The facts of a scope as lines of JSON, all as of one moment."""
    pipe, wanted = Pipe(), read_filters(filters)

    async def write() -> None:
        try:
            await memory.admin.export(cast("IO[bytes]", pipe), all_versions=all_versions, filters=wanted)
        finally:
            await pipe.end()

    writing = asyncio.create_task(write())
    first = await pipe.read_batch()
    if first is None:
        await writing  # raises what is wrong while there still can be another status

    async def lines() -> AsyncIterator[bytes]:
        try:
            batch = first
            while batch is not None:
                yield batch
                batch = await pipe.read_batch()
            await writing
        finally:
            writing.cancel()
            pipe.abandon()

    return StreamingResponse(lines(), media_type=JSON_LINES)


@router.post("/v1/import", openapi_extra={"requestBody": _LINES})
async def import_facts(
    request: Request, access: Commander, ids: Ids, wait: WaitSeconds = 0, skip_damaged: bool = False
) -> ImportReport:
    """Store the lines of an export, without a model; conversations are turns, and need the right `publish` too.

    Ids that are given, and those of the key, go before those of the lines; `passed_over` counts lines of others.
    """
    file, admin = BytesIO(await request.body()), access.memory(ids).admin
    if (await admin.import_facts(file, dry_run=True)).turns:
        access.principal.require("publish")
    file.seek(0)
    return await admin.import_facts(file, skip_damaged=skip_damaged, wait=wait)


@router.get("/v1/users")
async def users(access: Administrator, limit: PageSize = 100, after: str | None = None) -> list[IdCount]:
    """The users of whom something is known, with the number of their facts, in order of their ids."""
    return await access.memory({}).admin.users(limit=limit, after=after)


@router.get("/v1/failed-turns")
async def failed_turns(access: Administrator, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[FailedTurn]:
    """The newest turns of the tenant that ended failed or rejected; records without a scope are of no tenant."""
    found = await access.memory({}).admin.failed_turns(limit=limit)
    return [turn for turn in found if turn.tenant == access.principal.tenant]


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(_: Administrator) -> Response:
    """For Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
