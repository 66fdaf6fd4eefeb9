"""What is sent by a request, and on wish waited for: turns and commands."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Self

from fastapi import Depends, Query, Request, Response

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.errors import LimitExceededError, WaitTimeoutError
from mnemolog.projections.queries.results import Result
from mnemolog.server.gate import Access, Commander, Publisher

MAX_WAIT_SECONDS: Final = 60.0
ENDED: Final[dict[int | str, dict[str, Any]]] = {200: {"model": Result, "description": "it has ended"}}

WaitSeconds = Annotated[
    float, Query(ge=0, le=MAX_WAIT_SECONDS, description="seconds to wait for the end; without an end it is pending")
]


async def end_in_time(request: Request, waiting: Awaitable[Result]) -> Result | None:
    """The end that is waited for; None where it does not come in time, or the server stops before."""
    task = asyncio.ensure_future(waiting)
    draining = asyncio.create_task(request.app.state.draining.wait())
    try:
        await asyncio.wait({task, draining}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    except WaitTimeoutError:
        return None
    finally:
        task.cancel()
        draining.cancel()


@dataclass(frozen=True, slots=True)
class Sending:
    """A request that sends something: 202 while that goes on, 200 once it has ended."""

    request: Request
    response: Response
    access: Access
    wait: float

    def waiting(self, seconds: float) -> Self:
        return replace(self, wait=seconds)

    async def send(
        self, ids: Mapping[str, str | None], publish: Callable[[AsyncMemoryClient], Awaitable[Result]]
    ) -> Result:
        """What `publish` sends to the memory of these ids, with its end where there is one in time.

        Raises `LimitExceededError` for a turn that ended as rejected for a limit.
        """
        if self.wait:  # the end says what is known
            self.access.principal.require("read")
        memory = self.access.memory(ids)
        sent = await publish(memory)
        end = sent
        if self.wait and sent.status == "pending":
            end = await end_in_time(self.request, memory.wait(sent, timeout=self.wait)) or sent
        if end.status == "pending":
            return end
        if end.limit is not None:
            raise LimitExceededError(end.turn_id, end.limit)
        self.response.status_code = 200
        return end


def publication(request: Request, response: Response, access: Publisher, wait: WaitSeconds = 0) -> Sending:
    return Sending(request, response, access, wait)


def order(request: Request, response: Response, access: Commander, wait: WaitSeconds = 0) -> Sending:
    return Sending(request, response, access, wait)


Publication = Annotated[Sending, Depends(publication)]
Order = Annotated[Sending, Depends(order)]
