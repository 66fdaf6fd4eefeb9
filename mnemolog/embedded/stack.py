"""Kafka and Postgres over one data folder, for `mnemolog up` and the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random, SystemRandom
from typing import NoReturn, Self

from mnemolog.common.logs import get_logger
from mnemolog.embedded.child import Child
from mnemolog.embedded.data_folder import DataFolder, locked_data_folder
from mnemolog.embedded.jars import Progress, cache_folder, ensure_jars, read_lock
from mnemolog.embedded.kafka import KafkaPlan, make_class_archive, start_kafka
from mnemolog.embedded.postgres import PostgresPlan, start_postgres
from mnemolog.errors import ServerFailedError, UnusableFolderError, WrongStateError
from mnemolog.extras import require_extras

START_ATTEMPTS = 3
STOP_SECONDS = 30
WATCH_SECONDS = 0.5

log = get_logger(__name__)


class EmbeddedStack:
    """Running servers. `start` makes one; `stop`, or leaving `async with`, ends it."""

    def __init__(self, folder: DataFolder, exit_stack: ExitStack, *, rng: Random, progress: Progress | None) -> None:
        self._folder = folder
        self._exit_stack = exit_stack
        self._rng = rng
        self._progress = progress or (lambda *_: None)
        self._children: dict[str, Child] = {}
        self._addresses: dict[str, str] = {}
        self._background: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        folder: Path,
        *,
        kafka: bool = True,
        postgres: bool = True,
        test: bool = False,
        progress: Progress | None = None,
        prepare_kafka: Callable[[str], Awaitable[None]] | None = None,
        prepare_postgres: Callable[[str], Awaitable[None]] | None = None,
        rng: Random | None = None,
    ) -> Self:
        """Start the chosen servers over `folder` and return when they take requests.

        The address of each server is given to its `prepare` once it takes requests; the other one may still start.
        `test` trades safety against power loss for speed. The first start on a machine fetches Kafka (44 MB).
        The calling thread has to live as long as the stack. Raises an EmbeddedError; nothing is left running then.
        """
        require_extras("embedded")
        with ExitStack() as held:
            data_folder = held.enter_context(locked_data_folder(folder))
            stack = cls(data_folder, held.pop_all(), rng=rng or SystemRandom(), progress=progress)
        try:
            await asyncio.to_thread(data_folder.stop_stale_children)
            async with asyncio.TaskGroup() as starts:
                if kafka:
                    starts.create_task(stack._start_kafka(prepare_kafka))
                if postgres:
                    starts.create_task(stack._start_postgres(prepare_postgres, test=test))
        except BaseException as error:  # noqa: BLE001 - stops what runs, and raises again
            await stack.stop()
            _raise_first_cause(error, folder)
        return stack

    @property
    def bootstrap(self) -> str:
        """Kafka's address for clients, `host:port`."""
        return self._address("Kafka")

    @property
    def postgres_url(self) -> str:
        """The URL of the database, with its password."""
        return self._address("Postgres")

    @property
    def pids(self) -> Mapping[str, int]:
        return {server: child.pid for server, child in self._children.items()}

    async def watch(self) -> NoReturn:
        """Wait for as long as all servers run; ServerFailedError when one ends by itself."""
        while True:
            for child in self._children.values():
                if not child.running:
                    raise child.failure("ended by itself")
            await asyncio.sleep(WATCH_SECONDS)

    async def stop(self) -> None:
        """Stop the servers and unlock the folder. May be called again."""
        self._addresses.clear()
        children, self._children = self._children, {}
        try:
            if self._background:
                self._background.cancel()
                await asyncio.wait({self._background})
            ends = await asyncio.gather(*(child.stop(timeout=STOP_SECONDS) for child in children.values()))
            for server, ended_itself in zip(children, ends, strict=True):
                self._folder.forget_child(server)
                if not ended_itself:
                    log.warning("server_killed", server=server, seconds=STOP_SECONDS)
        finally:
            self._exit_stack.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _start_kafka(self, prepare: Callable[[str], Awaitable[None]] | None) -> None:
        cache = cache_folder(self._folder.path)
        jars = await asyncio.to_thread(ensure_jars, cache, jars=read_lock(), progress=self._progress)

        async def attempt(new_ports: bool) -> None:
            plan = KafkaPlan(
                folder=self._folder.path / "kafka",
                jars=jars,
                port=self._folder.port("kafka", self._rng, choose_new=new_ports),
                controller_port=self._folder.port("controller", self._rng, choose_new=new_ports),
                log=self._folder.log_file("kafka"),
            )
            await start_kafka(plan, self._on_started)
            self._addresses["Kafka"] = plan.bootstrap
            self._background = asyncio.create_task(make_class_archive(plan, self._folder.log_file))

        await self._start_on_free_ports("kafka", attempt)
        if prepare:
            await prepare(self.bootstrap)

    async def _start_postgres(self, prepare: Callable[[str], Awaitable[None]] | None, *, test: bool) -> None:
        async def attempt(new_ports: bool) -> None:
            plan = PostgresPlan(
                folder=self._folder.path / "postgres",
                port=self._folder.port("postgres", self._rng, choose_new=new_ports),
                password=self._folder.password(),
                log=self._folder.log_file("postgres"),
                test=test,
            )
            await start_postgres(plan, self._on_started)
            self._addresses["Postgres"] = plan.url()

        await self._start_on_free_ports("postgres", attempt)
        if prepare:
            await prepare(self.postgres_url)

    async def _start_on_free_ports(self, server: str, attempt: Callable[[bool], Awaitable[None]]) -> None:
        """Try again with other ports when somebody took ours between our look and the server's start."""
        step = f"starting {server.capitalize()}"
        self._progress(step, 0, 1)
        for number in range(START_ATTEMPTS):
            try:
                await attempt(number > 0)
                break
            except ServerFailedError as error:
                if child := self._children.pop(server, None):
                    await child.stop(timeout=STOP_SECONDS)
                if number + 1 == START_ATTEMPTS or not error.port_taken:
                    raise
        self._progress(step, 1, 1)

    def _on_started(self, child: Child) -> None:
        self._children[child.command.server] = child
        self._folder.remember_child(child.command.server, child.pid)

    def _address(self, server: str) -> str:
        if server not in self._addresses:
            raise WrongStateError(f"{server} is not running in this stack: it was left out at the start, or stopped")
        return self._addresses[server]


def _raise_first_cause(error: BaseException, folder: Path) -> NoReturn:
    """Raise the first cause of a failed start: both servers start at once, so that it comes in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError):
        raise UnusableFolderError(folder.resolve(), error) from error
    raise error
