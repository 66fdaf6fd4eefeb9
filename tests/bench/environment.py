"""What is measured on: real servers, topics and a database for each measurement, worker processes, their CPU time."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg

from mnemolog.admin import create_topics, migrate_tables
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.schemas.provenance import Stage
from mnemolog.settings import Settings
from mnemolog.streams.runtime.worker import ALL_STAGES
from mnemolog.streams.settings import StreamsSettings
from tests.support.databases import fresh_database, temporary_folder
from tests.support.paths import ROOT

PARTITIONS: Final = 4
MODEL_SECONDS: Final = 0.3
"""What the model server takes for a completion."""
READY_SECONDS: Final = 60
STOP_SECONDS: Final = 60
STAGES: Final = "a process for each stage"
Layout = Sequence[Sequence[Stage]]
"""The stages of each worker process."""
LAYOUTS: Final[Mapping[str, Layout]] = {
    "one process": (ALL_STAGES,),
    "two processes": (("journal", "extract"), ("embed", "match", "resolve", "project")),
    STAGES: tuple((stage,) for stage in ALL_STAGES),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Running servers: Kafka's address, the URL of Postgres, process ids, a folder for logs."""

    kafka: str
    postgres: str
    pids: dict[str, int]
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Topics and a database of one measurement."""

    servers: Servers
    settings: Settings

    @property
    def database(self) -> str:
        return self.settings.postgres or ""

    def with_settings(self, **update: Any) -> "Environment":
        return replace(self, settings=self.settings.model_copy(update=update))

    def with_model(self, base_url: str) -> "Environment":
        """The same, with models asked at `base_url`."""
        return self.with_settings(provider="openai", base_url=base_url)


def timed_steps() -> Callable[[str], None]:
    """Writes each step to standard error, with the seconds since this was called."""
    started = time.perf_counter()

    def tell(step: str) -> None:
        sys.stderr.write(f"{time.perf_counter() - started:6.0f} s  {step}\n")

    return tell


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    """Kafka and Postgres with the settings of `mnemolog up`; Postgres also keeps the time of each commit."""
    with temporary_folder("mnemolog-bench-", os.environ.get("BENCH_FOLDER")) as folder:
        async with (
            await EmbeddedStack.start(folder / "data", kafka=False) as stack,
            await psycopg.AsyncConnection.connect(stack.postgres_url, autocommit=True) as connection,
        ):
            await connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        async with await EmbeddedStack.start(folder / "data") as stack:
            yield Servers(kafka=stack.bootstrap, postgres=stack.postgres_url, pids=dict(stack.pids), folder=folder)


@asynccontextmanager
async def environment(servers: Servers, name: str, *, partitions: int = PARTITIONS) -> AsyncIterator[Environment]:
    """Topics with the prefix `name` and a migrated database `name`; the database is dropped in the end."""
    name = name.replace(" ", "_")
    with fresh_database(servers.postgres, name=f"bench_{name}") as database:
        settings = Settings(
            kafka=servers.kafka,
            postgres=database,
            topic_prefix=f"{name}-",
            partitions=partitions,
            metrics_port=0,
            log_level="warning",
        )
        await create_topics(settings)
        await migrate_tables(settings)
        yield Environment(servers=servers, settings=settings)


@asynccontextmanager
async def workers(settings: StreamsSettings, layout: Layout, logs: Path) -> AsyncIterator[dict[str, int]]:
    """One worker process for each group of stages; their ids by name, see `worker_names`."""
    environ = _environ(settings)
    async with AsyncExitStack() as running:
        started = {
            name: await running.enter_async_context(
                _process("mnemolog", "worker", "--json", *stages, environ=environ, log=logs / f"{stages[0]}.log")
            )
            for name, stages in zip(worker_names(layout), layout, strict=True)
        }
        for process in started.values():
            await _first_line(process)
        yield {name: process.pid for name, process in started.items()}


@asynccontextmanager
async def gateway(settings: StreamsSettings, logs: Path) -> AsyncIterator[tuple[str, int]]:
    """`mnemolog serve` without keys; its URL and process id."""
    arguments = ("serve", "--json", "--without-keys", "--port", "0")
    async with _process("mnemolog", *arguments, environ=_environ(settings), log=logs / "serve.log") as process:
        yield json.loads(await _first_line(process))["url"], process.pid


def _environ(settings: StreamsSettings) -> Mapping[str, str]:
    named = settings.model_dump(exclude_none=True, exclude_defaults=True)
    return os.environ | {f"MNEMOLOG_{name.upper()}": str(value) for name, value in named.items()}


def worker_names(layout: Layout) -> list[str]:
    """`worker:stages`, with a number where several have the same stages."""
    names = [f"worker:{'+'.join(stages)}" for stages in layout]
    return [name if names.count(name) == 1 else f"{name}#{place}" for place, name in enumerate(names, 1)]


@asynccontextmanager
async def model_server(logs: Path) -> AsyncIterator[tuple[str, int]]:
    """An OpenAI-compatible server that takes `MODEL_SECONDS` for a completion; base URL and process id."""
    arguments = ("--latency", str(MODEL_SECONDS))
    async with _process("tests.support.servers.openai_server", *arguments, log=logs / "model.log") as process:
        yield await _first_line(process), process.pid


async def _first_line(process: asyncio.subprocess.Process) -> str:
    """What a process says once it is ready."""
    assert process.stdout is not None
    async with asyncio.timeout(READY_SECONDS):
        line = await process.stdout.readline()
    if not line:
        raise RuntimeError(f"process {process.pid} ended before it was ready: look at its log")
    return line.decode().strip()


@asynccontextmanager
async def _process(
    module: str, *arguments: str, log: Path, environ: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            cwd=ROOT,
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            await process.communicate()


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds of each process since its start, with those of its children, ended ones too.

    The children of this process have names of their own in `pids`, so its own time is without them.
    """
    found = {}
    for name, pid in pids.items():
        if pid == os.getpid():
            found[name] = time.process_time()
            continue
        process = psutil.Process(pid)
        times = process.cpu_times()
        total = times.user + times.system + times.children_user + times.children_system
        for child in process.children(recursive=True):
            try:
                spent = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += spent.user + spent.system
        found[name] = float(total)
    return found
