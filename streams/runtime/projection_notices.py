"""Hears when a projector of any process has written, so that decisions need not ask again and again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from psycopg import AsyncConnection, Error, OperationalError
from psycopg.sql import SQL, Identifier

from mnemolog.projections.db.pools import connection_settings
from mnemolog.projections.logs import get_logger
from mnemolog.projections.write.projector import NOTICE_CHANNEL

PROOF_SECONDS: Final = 5.0
ROUND_SECONDS: Final = 300.0
"""A connection that is broken unnoticed is replaced after so long."""
READ_SECONDS: Final = 1.0  # what arrives is mostly a notice, which takes no time to read
_PROOF: Final = "proof"
_LISTEN: Final = SQL("LISTEN {}").format(Identifier(NOTICE_CHANNEL))
_NOTIFY: Final = "SELECT pg_notify(%s, %s)"

log = get_logger(__name__)


class ProjectionNotices:
    """Calls `on_notice` at each announcement of a projector. Notices are hints: a lost one costs time, nothing else.

    Where notices cannot be heard, that is logged once, and tried again after each `round_seconds`.
    """

    def __init__(
        self,
        postgres: str,
        on_notice: Callable[[], None],
        *,
        proof_seconds: float = PROOF_SECONDS,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._postgres = postgres
        self._on_notice = on_notice
        self._proof_seconds = proof_seconds
        self._round_seconds = round_seconds
        self._is_deaf = False

    async def listen(self) -> None:
        """Listen for `round_seconds`, or wait so long where nothing can be heard.

        Raises `psycopg.OperationalError` when the connection is lost.
        """
        async with await self._connect("mnemolog-notices") as connection:
            fault = await self._fault(connection)
            if fault is None:
                self._is_deaf = False
                self._on_notice()  # what was announced before went unheard
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._round_seconds):
                        await self._pass_on(connection)
                return
        if not self._is_deaf:
            self._is_deaf = True
            log.warning("projection_notices_unheard", error=fault, instead="offsets are read with growing pauses")
        await asyncio.sleep(self._round_seconds)

    async def _pass_on(self, connection: AsyncConnection[Any]) -> None:
        while True:
            await _wait_for_data(connection)
            async for _ in connection.notifies(timeout=READ_SECONDS, stop_after=1):
                self._on_notice()

    async def _fault(self, connection: AsyncConnection[Any]) -> str | None:
        """Why this connection hears nothing; None where it hears what another one announces.

        A pooler that gives each transaction another connection takes a LISTEN, and delivers nothing.
        """
        try:
            await connection.execute(_LISTEN)
            async with await self._connect("mnemolog-notices-proof") as other:
                await other.execute(_NOTIFY, (NOTICE_CHANNEL, _PROOF))
        except OperationalError:
            raise
        except Error as error:
            return str(error).strip()
        async for notice in connection.notifies(timeout=self._proof_seconds):
            if notice.payload == _PROOF:
                return None
        return f"LISTEN works and nothing arrives within {self._proof_seconds:g} s, as behind a pooler of transactions"

    async def _connect(self, name: str) -> AsyncConnection[Any]:
        settings = connection_settings(self._postgres, application_name=name)
        return await AsyncConnection.connect(self._postgres, autocommit=True, **settings)


async def _wait_for_data(connection: AsyncConnection[Any]) -> None:
    """Wait until there is something to read; psycopg's own waiting wakes ten times a second."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()

    def on_data() -> None:
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(connection.fileno(), on_data)
    try:
        await arrived
    finally:
        loop.remove_reader(connection.fileno())
