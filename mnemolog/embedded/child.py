"""One server as a child process: started in its own session, watched, and stopped within a time limit."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mnemolog.errors import ServerFailedError

LAUNCHER = Path(__file__).with_name("launch.py")
POLL_SECONDS = 0.05
# No other variables: neither our secrets nor PG* and JAVA_* variables, which change servers.
INHERITED = ("PATH", "LD_LIBRARY_PATH")
TAIL_LINES = 25
TAIL_BYTES = 16_384
WARNING = re.compile(r"\bWARN\b|\bVM warning:|^WARNING:|^Picked up ")
"""A line of a log that says nothing of why a server ended, where other lines do; Java writes many at each start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user and group that a child runs as."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> Account:
        return cls(uid=os.geteuid(), gid=os.getegid())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """What to run and how it ends: `on_owner_death` is sent by Linux when the owner dies, however it dies.

    `niceness` is added to the owner's own: 19 has a process run when no other wants to.
    """

    server: str
    arguments: Sequence[str]
    folder: Path
    log: Path
    account: Account = field(default_factory=Account.current)
    stop_signal: signal.Signals = signal.SIGTERM
    on_owner_death: signal.Signals = signal.SIGKILL
    environment: Mapping[str, str] = field(default_factory=dict)
    niceness: int = 0


class Child:
    """A started server. The thread that starts it has to outlive it: Linux ends the child with that thread."""

    def __init__(self, command: ServerCommand) -> None:
        self.command = command
        numbers = (os.getpid(), int(command.on_owner_death), command.account.uid, command.account.gid, command.niceness)
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), *map(str, numbers)]
        with command.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own launcher and a server from a package
                [*launcher, *command.arguments],
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={name: os.environ[name] for name in INHERITED if name in os.environ} | {**command.environment},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def failure(self, what: str, *, timed_out: bool = False) -> ServerFailedError:
        """An error with the last lines of the log: warnings only where there is nothing else."""
        log = self.command.log
        lines: list[str] = []
        with suppress(FileNotFoundError), log.open("rb") as file:  # somebody may have removed the folder
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        lines = [line for line in lines if not WARNING.search(line)] or lines
        return ServerFailedError(
            self.command.server, what, log=log, tail="\n".join(lines[-TAIL_LINES:]), timed_out=timed_out
        )

    async def wait_until_finished(self, *, timeout: float) -> None:  # noqa: ASYNC109 - the error says the seconds
        """Wait for a command that ends by itself; ServerFailedError when it fails or takes too long."""
        if not await self._end_or_kill(timeout):
            raise self.failure(f"did not finish within {timeout:.0f} s")
        if self._process.returncode != 0:
            raise self.failure(f"ended with status {self._process.returncode}")

    async def wait_until_ready(self, check: Callable[[], Awaitable[bool]], *, timeout: float) -> None:  # noqa: ASYNC109 - as above
        """Return once `check` holds; ServerFailedError when the server ends or `timeout` seconds are over."""
        deadline = asyncio.get_running_loop().time() + timeout
        while not await check():
            if not self.running:
                raise self.failure(f"ended with status {self._process.returncode} before it was ready")
            if asyncio.get_running_loop().time() > deadline:
                raise self.failure(f"was not ready within {timeout:.0f} s", timed_out=True)
            await asyncio.sleep(POLL_SECONDS)

    async def stop(self, *, timeout: float) -> bool:  # noqa: ASYNC109 - as above
        """Ask the server to end, and kill it when it has not after `timeout` seconds; True if it ended itself."""
        if self.running:
            self._process.send_signal(self.command.stop_signal)
        return await self._end_or_kill(timeout)

    async def _end_or_kill(self, timeout: float) -> bool:  # noqa: ASYNC109 - as above
        """Wait for the process to end, and kill it after `timeout` seconds; True if it ended itself."""
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            while self.running and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - a process sets no event
                await asyncio.sleep(POLL_SECONDS)
            return not self.running
        finally:  # also when this call is cancelled: nothing may go on in a folder that is given free
            self._process.kill()
            self._process.wait()
