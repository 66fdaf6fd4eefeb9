"""The blocking client, for programs without an event loop."""

import asyncio
import atexit
import copy
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Never, Self, TypeVar, Unpack

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.base import ClientOptions
from mnemolog.client.connections import CLOSED
from mnemolog.client.inputs import BoundArgs
from mnemolog.errors import MnemologError
from mnemolog.settings import Settings

R = TypeVar("R")


def _blocking(method: Callable[..., Coroutine[Any, Any, R]]) -> "Callable[..., R]":
    @wraps(method)
    def call(self: "MemoryClient", /, *args: Any, **kwargs: Any) -> R:
        if self._loop.is_closed():
            raise MnemologError(CLOSED)
        return self._run(method(self._client, *args, **kwargs))

    return call


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop of a client. Psycopg refuses the one that Windows has by default."""
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


class MemoryClient:
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`, or until the program ends; several threads may call it at once.
    """

    def __init__(self, *positional: Never, **options: Unpack[ClientOptions]) -> None:
        self._client = AsyncMemoryClient(*positional, **options)
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mnemolog-client", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(settings=settings)

    def scope(self, *positional: Never, **ids: Unpack[BoundArgs]) -> Self:
        """As `AsyncMemoryClient.scope`: the same client bound to a scope. Closing it does nothing: close this one."""
        bound = copy.copy(self)
        bound._client = self._client.scope(*positional, **ids)  # noqa: SLF001 - its own class
        return bound

    def __repr__(self) -> str:
        return repr(self._client).removeprefix("Async")

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""
        if self._client.is_bound or self._loop.is_closed():
            return
        if not self._thread.is_alive():  # in a forked process, which has none of its threads
            return
        atexit.unregister(self.close)
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


# Their types and docstrings are in the stub beside this file (`make generate`).
for _name, _method in inspect.getmembers(AsyncMemoryClient, inspect.iscoroutinefunction):
    if not _name.startswith("_") and _name not in vars(MemoryClient):
        setattr(MemoryClient, _name, _blocking(_method))
