"""The processes that are measured, and the CPU time each of them has used."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import psutil

from mnemolog.schemas.provenance import Stage
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT

READY_SECONDS: Final = 60
STOP_SECONDS: Final = 60


@asynccontextmanager
async def workers(
    settings: StreamsSettings, layout: Sequence[Sequence[Stage]], logs: Path
) -> AsyncIterator[dict[str, int]]:
    """One worker process for each group of stages; their ids by name, see `worker_names`."""
    named = settings.model_dump(exclude_none=True, exclude_defaults=True)
    environ = os.environ | {f"MNEMOLOG_{name.upper()}": str(value) for name, value in named.items()}
    async with AsyncExitStack() as running:
        started = {
            name: await running.enter_async_context(
                _process("mnemolog", "worker", "--json", *stages, environ=environ, log=logs / f"{stages[0]}.log")
            )
            for name, stages in zip(worker_names(layout), layout, strict=True)
        }
        for process in started.values():
            await first_line(process)
        yield {name: process.pid for name, process in started.items()}


def worker_names(layout: Sequence[Sequence[Stage]]) -> list[str]:
    """`worker:stages`, with a number where several have the same stages."""
    names = [f"worker:{'+'.join(stages)}" for stages in layout]
    return [name if names.count(name) == 1 else f"{name}#{place}" for place, name in enumerate(names, 1)]


@asynccontextmanager
async def model_server(latency: float, logs: Path) -> AsyncIterator[tuple[str, int]]:
    """An OpenAI-compatible server that takes `latency` seconds for a completion; base URL and process id."""
    arguments = ("--latency", str(latency))
    async with _process("tests.support.servers.openai_server", *arguments, log=logs / "model.log") as process:
        yield await first_line(process), process.pid


async def first_line(process: asyncio.subprocess.Process) -> str:
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

    The children of this process are told by their own names, so it is told without them.
    """
    return {
        name: time.process_time() if pid == os.getpid() else _with_children(psutil.Process(pid))
        for name, pid in pids.items()
    }


def _with_children(process: psutil.Process) -> float:
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    return float(total)
