"""The blocking client, for programs without an event loop."""

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from mnemolog.client.arguments import BoundArgs
from mnemolog.client.base import ClientOptions
from mnemolog.client.client import MemoryClient
from mnemolog.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
_AsyncMethod = Callable[Concatenate[MemoryClient, P], Coroutine[Any, Any, R]]


def _blocking(method: _AsyncMethod[P, R]) -> "Callable[Concatenate[SyncMemoryClient, P], R]":
    @wraps(method)
    def call(self: "SyncMemoryClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(method(self._client, *args, **kwargs))

    return call


class SyncMemoryClient:
    """`MemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`; several threads may call it at once.
    """

    def __init__(self, **options: Unpack[ClientOptions]) -> None:
        self._client = MemoryClient(**options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mnemolog-client", daemon=True)
        self._thread.start()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(settings=settings)

    def scope(self, **ids: Unpack[BoundArgs]) -> Self:
        """As `MemoryClient.scope`: the same client bound to a scope."""
        bound = copy.copy(self)
        bound._client = self._client.scope(**ids)  # noqa: SLF001 - its own class
        return bound

    add = _blocking(MemoryClient.add)
    add_many = _blocking(MemoryClient.add_many)
    dry_run = _blocking(MemoryClient.dry_run)
    status = _blocking(MemoryClient.status)
    wait = _blocking(MemoryClient.wait)
    search = _blocking(MemoryClient.search)
    facts = _blocking(MemoryClient.facts)
    facts_as_of = _blocking(MemoryClient.facts_as_of)
    profile = _blocking(MemoryClient.profile)
    history = _blocking(MemoryClient.history)
    explain = _blocking(MemoryClient.explain)
    why_not = _blocking(MemoryClient.why_not)
    pending = _blocking(MemoryClient.pending)
    unresolved = _blocking(MemoryClient.unresolved)
    diff = _blocking(MemoryClient.diff)

    update = _blocking(MemoryClient.update)
    batch_update = _blocking(MemoryClient.batch_update)
    delete = _blocking(MemoryClient.delete)
    batch_delete = _blocking(MemoryClient.batch_delete)
    delete_all = _blocking(MemoryClient.delete_all)
    confirm = _blocking(MemoryClient.confirm)
    reject = _blocking(MemoryClient.reject)
    correct = _blocking(MemoryClient.correct)
    resolve = _blocking(MemoryClient.resolve)
    undo = _blocking(MemoryClient.undo)
    set_policy = _blocking(MemoryClient.set_policy)
    policies = _blocking(MemoryClient.policies)
    quality = _blocking(MemoryClient.quality)

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread."""
        if self._loop.is_closed():
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
