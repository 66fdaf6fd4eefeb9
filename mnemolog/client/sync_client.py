"""The blocking client, for programs without an event loop."""

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from mnemolog.client.arguments import BoundArgs
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.base import CLOSED, ClientOptions
from mnemolog.errors import MnemologError
from mnemolog.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
_AsyncMethod = Callable[Concatenate[AsyncMemoryClient, P], Coroutine[Any, Any, R]]


def _blocking(method: _AsyncMethod[P, R]) -> "Callable[Concatenate[MemoryClient, P], R]":
    @wraps(method)
    def call(self: "MemoryClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._loop.is_closed():
            raise MnemologError(CLOSED)
        return self._run(method(self._client, *args, **kwargs))

    return call


class MemoryClient:
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`; several threads may call it at once.
    """

    def __init__(self, **options: Unpack[ClientOptions]) -> None:
        self._client = AsyncMemoryClient(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mnemolog-client", daemon=True)
        self._thread.start()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(settings=settings)

    def scope(self, **ids: Unpack[BoundArgs]) -> Self:
        """As `AsyncMemoryClient.scope`: the same client bound to a scope. Closing it does nothing: close this one."""
        bound = copy.copy(self)
        bound._client = self._client.scope(**ids)  # noqa: SLF001 - its own class
        return bound

    add = _blocking(AsyncMemoryClient.add)
    add_many = _blocking(AsyncMemoryClient.add_many)
    dry_run = _blocking(AsyncMemoryClient.dry_run)
    status = _blocking(AsyncMemoryClient.status)
    wait = _blocking(AsyncMemoryClient.wait)
    search = _blocking(AsyncMemoryClient.search)
    facts = _blocking(AsyncMemoryClient.facts)
    facts_as_of = _blocking(AsyncMemoryClient.facts_as_of)
    profile = _blocking(AsyncMemoryClient.profile)
    history = _blocking(AsyncMemoryClient.history)
    explain = _blocking(AsyncMemoryClient.explain)
    why_not = _blocking(AsyncMemoryClient.why_not)
    pending = _blocking(AsyncMemoryClient.pending)
    unresolved = _blocking(AsyncMemoryClient.unresolved)
    diff = _blocking(AsyncMemoryClient.diff)

    update = _blocking(AsyncMemoryClient.update)
    batch_update = _blocking(AsyncMemoryClient.batch_update)
    delete = _blocking(AsyncMemoryClient.delete)
    batch_delete = _blocking(AsyncMemoryClient.batch_delete)
    delete_all = _blocking(AsyncMemoryClient.delete_all)
    confirm = _blocking(AsyncMemoryClient.confirm)
    reject = _blocking(AsyncMemoryClient.reject)
    correct = _blocking(AsyncMemoryClient.correct)
    resolve = _blocking(AsyncMemoryClient.resolve)
    undo = _blocking(AsyncMemoryClient.undo)
    set_policy = _blocking(AsyncMemoryClient.set_policy)
    policies = _blocking(AsyncMemoryClient.policies)
    quality = _blocking(AsyncMemoryClient.quality)
    failed_turns = _blocking(AsyncMemoryClient.failed_turns)
    received_turn = _blocking(AsyncMemoryClient.received_turn)
    short_ids = _blocking(AsyncMemoryClient.short_ids)

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""
        if self._client.is_bound or self._loop.is_closed():
            return
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
