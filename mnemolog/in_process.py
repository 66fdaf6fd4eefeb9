"""`mnemolog.start()`: the embedded servers and all stages beside the program that uses them, in one process."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mnemolog.client.base import new_event_loop
from mnemolog.client.discovery import ServerAddresses
from mnemolog.client.sync_client import MemoryClient
from mnemolog.errors import EmbeddedError
from mnemolog.extras import require_extras, stage_extras
from mnemolog.settings import Settings, load_settings

_ENDED: Final = "the stack ended by itself before it was ready"


@contextmanager
def start(
    data: str | Path | None = None,
    *,
    settings: Settings | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Iterator[MemoryClient]:
    """A client of a memory of its own: Kafka, Postgres and all stages run until the block ends.

    `with mnemolog.start() as memory:`. What is stored stays in the folder `data` (that of the settings unless given)
    and is there at the next start. A server that the settings name is used, and not started. `AsyncMemoryClient`, other
    programs and the command line find the servers by the same folder meanwhile. The first start on a machine fetches
    Kafka (44 MB). `progress` is told each step, with how many parts of how many are done.

    Raises `MissingExtraError`, `DataFolderInUse` where another process has the folder, `SettingsError`, and other
    `EmbeddedError`; nothing is left running then. A server that ends by itself is raised when the block ends.
    """
    chosen = settings or load_settings()
    if data is not None:
        chosen = chosen.model_copy(update={"data_dir": Path(data)})
    require_extras(*(() if chosen.kafka and chosen.postgres else ("embedded",)), *stage_extras(chosen))
    stack = _Stack(chosen, progress)
    try:
        found = stack.ready.result()
        names = ("kafka", "postgres", "topic_prefix")
        running = chosen.model_copy(update={name: getattr(found, name) for name in names})
        with MemoryClient(settings=running) as memory:
            yield memory
    finally:
        stack.stop()
    if (failure := stack.ended.exception()) is not None:
        raise failure


class _Stack:
    """Runs everything in a thread that has an event loop of its own."""

    def __init__(self, settings: Settings, progress: Callable[[str, int, int], None] | None) -> None:
        self.ready: Future[ServerAddresses] = Future()
        self.ended: Future[None] = Future()
        self._began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._settings = settings
        self._progress = progress
        self._thread = threading.Thread(target=self._run, name="mnemolog-stack", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Drain the stages and stop the servers."""
        loop, stop = self._began.result()
        if not self.ended.done():
            loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the caller
            failure = error
        if not self.ready.done():
            self.ready.set_exception(failure or EmbeddedError(_ENDED))
        if failure is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(failure)

    async def _serve(self) -> None:
        from mnemolog.all_in_one import run_all_in_one  # noqa: PLC0415 - POSIX and the extra `embedded` alone have it

        stop = asyncio.Event()
        self._began.set_result((asyncio.get_running_loop(), stop))
        await run_all_in_one(self._settings, stop=stop, announce=self.ready.set_result, progress=self._progress)
