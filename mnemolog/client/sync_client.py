"""The blocking client, for programs without an event loop."""

import asyncio
import atexit
import sys
import threading
from collections.abc import Coroutine
from typing import Any, Never, Self, TypeVar, Unpack

from mnemolog.client.administration import AdminMethods
from mnemolog.client.async_client import MemoryMethods
from mnemolog.client.base import Blocking, ClientOptions
from mnemolog.client.connections import AT_FORK, CLOSED
from mnemolog.client.entities import EntityMethods
from mnemolog.errors import MnemologError

R = TypeVar("R")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop of a client. Psycopg refuses the one that Windows has by default."""
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


class LoopThread:
    """Runs coroutines in an event loop that has a thread of its own."""

    def __init__(self) -> None:
        self._start()
        AT_FORK.add(self)

    def _start(self) -> None:
        self._starting = threading.Lock()
        self._is_inherited = False
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mnemolog-client", daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """In a forked process, which has no such thread: the next call starts one."""
        self._starting = threading.Lock()
        self._is_inherited = True

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """What the coroutine returns. Raises `MnemologError` where it never could."""
        with self._starting:
            if self._is_inherited and not self._loop.is_closed():
                self._start()
        if self._loop.is_closed() or threading.current_thread() is self._thread:
            coroutine.close()
            raise MnemologError(
                CLOSED if self._loop.is_closed() else "a callback of MemoryClient cannot call it: use AsyncMemoryClient"
            )
        ran = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return ran.result()
        except KeyboardInterrupt:
            ran.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Run the `last` coroutine and end the thread; does nothing in a forked process, which has no such thread."""
        if self._loop.is_closed() or self._is_inherited:
            last.close()
            return
        self.run(last)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _OnThread(Blocking):
    """Blocks while the thread of its client runs a coroutine."""

    _thread: LoopThread

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return self._thread.run(coroutine)


class Entities(_OnThread, EntityMethods):
    """The methods of `memory.entities`."""


class Admin(_OnThread, AdminMethods):
    """The methods of `memory.admin`."""


class MemoryClient(_OnThread, MemoryMethods):
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`, or until the program ends; several threads may call it at once.
    """

    def __init__(self, *positional: Never, **options: Unpack[ClientOptions]) -> None:
        super().__init__(*positional, **options)
        self._thread = LoopThread()
        atexit.register(self.close)

    @property
    def entities(self) -> Entities:
        return self._part(Entities)

    @property
    def admin(self) -> Admin:
        return self._part(Admin)

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""
        if not self.is_bound:
            atexit.unregister(self.close)
            self._thread.close(self._connections.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
