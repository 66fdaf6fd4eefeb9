"""Routes that publish turns, and that say how turns and commands ended."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import orjson
import uuid_utils
from fastapi import APIRouter, Depends, Header, Path, Request
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import check_time
from mnemolog.client.turns import as_messages, build_turn
from mnemolog.errors import InvalidTurnError, MnemologError, UnknownTurnError
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.schemas.admission import DEFAULT_MAX_TURN_BYTES
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Turn
from mnemolog.server.bodies import BatchBody, TurnBody
from mnemolog.server.gate import Access, Ids, Memory, Publisher, Reader
from mnemolog.server.problems import problem_of
from mnemolog.server.sending import ENDED, Publication, WaitSeconds, end_in_time

STREAM_SECONDS: Final = 300.0
"""A stream of events ends after so long; a browser then asks again by itself."""
ALIVE_SECONDS: Final = 10.0
"""A comment is sent so often, for proxies that end silent connections."""

TurnId = Annotated[str, Path(description="the id of a turn or a command")]
router = APIRouter(prefix="/v1/turns", tags=["turns"])


class Results(BaseModel):
    """What became of each, in their order."""

    results: list[Result]


@router.post("", status_code=202, responses=ENDED)
async def add_turn(
    publication: Publication,
    body: TurnBody,
    idempotency_key: Annotated[str | None, Header(description="the turn_id, where the body has none")] = None,
) -> Result:
    """Publish one turn; it is accepted once the broker has it for good. The same turn_id again does nothing."""
    arguments = {"turn_id": idempotency_key, **body.arguments}
    return await publication.send(body.ids, lambda memory: memory.add(**arguments))


@router.post("/batch", status_code=202)
async def add_turns(access: Publisher, body: BatchBody) -> Results:
    """Publish turns in their order, or none where one is not valid. Over a quota they end as rejected."""
    turns = [_turn_of(access, number, one) for number, one in enumerate(body.turns)]
    return Results(results=await access.memory(body.turns[0].ids).add_many(turns))


def _turn_of(access: Access, number: int, body: TurnBody) -> Turn:
    """Raises `InvalidTurnError` that names the place."""
    given = {name: value for name, value in body.arguments.items() if value is not None}
    identity = {"turn_id": str(uuid_utils.uuid7()), "occurred_at": datetime.now(UTC)}
    scope = access.scope(body.ids)
    arguments: Any = identity | given | {name: scope.get(name) for name in SCOPE_FIELDS}
    try:
        for name in {"occurred_at", "valid_until"} & given.keys():
            arguments[name] = check_time(name, given[name], InvalidTurnError)
        messages, _ = as_messages(arguments.pop("messages"))
        return build_turn(messages, arguments, max_bytes=DEFAULT_MAX_TURN_BYTES)
    except InvalidTurnError as error:
        raise InvalidTurnError(f"turns.{number}: {error}") from error


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of turns and commands that a request may know: those of its scope.

    The end of a record without a scope is of no tenant: `UnknownTurnError`.
    """

    request: Request
    tenant: str
    memory: AsyncMemoryClient

    async def wait(self, turn_id: str, seconds: float, *, verbose: bool = False) -> Result | None:
        """None where there is no end in time, or the server stops."""
        end = await end_in_time(self.request, self.memory.wait(turn_id, timeout=seconds, verbose=verbose))
        return end and self._own(end)

    async def status(self, turn_id: str, *, verbose: bool) -> Result:
        return self._own(await self.memory.status(turn_id, verbose=verbose))

    def _own(self, found: Result) -> Result:
        if found.status != "pending" and found.tenant != self.tenant:
            raise UnknownTurnError(self.tenant, found.turn_id)
        return found


def ends_to_read(request: Request, access: Reader, ids: Ids) -> Ends:
    return Ends(request, access.principal.tenant, access.memory(ids))


ReadEnds = Annotated[Ends, Depends(ends_to_read)]


@router.get("/{turn_id:path}/events", response_class=StreamingResponse)
async def stream_end(ends: ReadEnds, turn_id: TurnId) -> StreamingResponse:
    """The end of a turn or command as a server-sent event `end`, with a result as its data; until then comments.

    An event `problem` ends it otherwise: of an id that is not known for ten seconds that with the status 404.
    """

    async def events() -> AsyncIterator[bytes]:
        for _ in range(round(STREAM_SECONDS / ALIVE_SECONDS)):
            try:
                end = await ends.wait(turn_id, ALIVE_SECONDS)
                if end is None and ends.request.app.state.draining.is_set():
                    return
                end = end or await ends.status(turn_id, verbose=False)
            except MnemologError as error:
                answer = await problem_of(ends.request, error)
                yield b"event: problem\ndata: " + bytes(answer.body) + b"\n\n"
                return
            if end.status != "pending":
                yield b"event: end\ndata: " + orjson.dumps(end) + b"\n\n"
                return
            yield b": it goes on\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


@router.get("/{turn_id:path}/missing")
async def why_not(memory: Memory, turn_id: TurnId) -> WhyNot:
    """The statements of a turn that were not stored as facts, and why."""
    return await memory.why_not(turn_id)


@router.get("/{turn_id:path}")
async def turn_status(ends: ReadEnds, turn_id: TurnId, wait: WaitSeconds = 0, verbose: bool = False) -> Result:
    """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace."""
    end = await ends.wait(turn_id, wait, verbose=verbose) if wait else None
    return end or await ends.status(turn_id, verbose=verbose)
