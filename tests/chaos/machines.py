"""The machines of a chaos run: Kafka and Postgres over folders of their own, and worker processes."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mnemolog.embedded.stack import EmbeddedStack
from tests.support.paths import ROOT

STOP_SECONDS: Final = 90
COMMAND_SECONDS: Final = 300


class Server:
    """Kafka or Postgres, which can be killed and started again over its folder and at its address."""

    copies = 1

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self._stack: EmbeddedStack | None = None
        self._address = ""

    async def start(self) -> str:
        """The address, the same at each start."""
        is_kafka = self.kind == "kafka"
        self._stack = await EmbeddedStack.start(self.folder, kafka=is_kafka, postgres=not is_kafka)
        address = self._stack.bootstrap if is_kafka else self._stack.postgres_url
        assert self._address in ("", address), "somebody took the port meanwhile"
        self._address = address
        return address

    async def kill(self) -> None:
        """SIGKILL for Kafka; the immediate shutdown for Postgres, which leaves its children no time either."""
        assert self._stack is not None
        os.kill(self._stack.pids[self.kind], signal.SIGKILL if self.kind == "kafka" else signal.SIGQUIT)
        await self.stop()

    async def stop(self) -> None:
        if self._stack is not None:
            stack, self._stack = self._stack, None
            await stack.stop()


class Worker:
    """One `mnemolog worker` with these stages, or all; its log in a file."""

    def __init__(self, name: str, environ: Mapping[str, str], logs: Path, *, stages: Sequence[str] = ()) -> None:
        self.name = name
        self._environ = environ
        self._stages = stages
        self._log = logs / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mnemolog", "worker", *self._stages),
                cwd=ROOT,
                env=self._environ,
                stdout=output,
                stderr=output,
            )

    async def kill(self) -> None:
        self.send(signal.SIGKILL)
        await self.process.wait()

    async def kill_and_start(self) -> None:
        self.assert_running()
        await self.kill()
        await self.start()

    async def terminate(self) -> int:
        """The exit code after SIGTERM."""
        self.send(signal.SIGTERM)
        async with asyncio.timeout(STOP_SECONDS):
            return await self.process.wait()

    def send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)

    def assert_running(self) -> None:
        assert self.process.returncode is None, f"{self.name} ended by itself: {self.log[-3000:]}"


async def mnemolog(environ: Mapping[str, str], *arguments: str) -> tuple[int, Any]:
    """The command line as an operator calls it: exit code, and its JSON or else what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mnemolog", *arguments, "--json"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    async with asyncio.timeout(COMMAND_SECONDS):
        output, errors = await process.communicate()
    try:
        return process.returncode or 0, json.loads(output)
    except ValueError:
        return process.returncode or 0, " ".join((output + errors).decode(errors="replace").split())
