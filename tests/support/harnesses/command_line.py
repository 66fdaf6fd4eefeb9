"""The command line as a user runs it: real processes, their output and exit codes."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mnemolog.cli.app import run
from mnemolog.cli.runtime import SILENCED
from mnemolog.embedded.child import LAUNCHER

EXECUTABLE = Path(sys.executable).with_name("mnemolog")
TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A folder with some settings, where commands are run."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str | bytes = b"", seconds: float = TIMEOUT_SECONDS) -> CommandOutput:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        ended = subprocess.run(
            [EXECUTABLE, *arguments],
            cwd=self.folder,
            env=self.environ,
            input=data,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
        return CommandOutput(code=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())

    def program(self, *command: str | Path, stdin: str = "", **variables: str) -> str:
        """What another program prints in the folder, with these variables beside the settings; it has to succeed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environ, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *arguments: str, stdin: str | bytes = b"") -> Any:
        """The document that a command writes; it has to succeed."""
        done = self.run(*arguments, "--json", stdin=stdin)
        assert done.code == 0, done
        return done.json

    @contextmanager
    def start(self, *arguments: str, as_json: bool = True) -> Iterator["RunningCommand"]:
        """A command that runs until it gets a signal; killed at the end, or with this process, if it still runs."""
        log = self.folder / f"{arguments[0]}.log"
        # Otherwise it would outlive tests that are killed.
        numbers = map(str, (os.getpid(), int(signal.SIGTERM), os.getuid(), os.getgid(), 0))
        with_owner = [sys.executable, "-I", "-S", str(LAUNCHER), *numbers]
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                [*with_owner, str(EXECUTABLE), *arguments, *(["--json"] if as_json else [])],
                cwd=self.folder,
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        try:
            yield RunningCommand(process=process, log=log)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
        return {**inherited, **{f"MNEMOLOG_{name}": value for name, value in self.settings.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCommand:
    process: "subprocess.Popen[bytes]"
    log: Path

    def ready_message(self) -> Any:
        """The JSON that the command prints once it serves. Fails with its log when it ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return json.loads(line)

    def lines_until(self, words: str) -> list[str]:
        """What the command prints for people, up to the line with `words`."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line.decode().rstrip("\n"))
            if words in lines[-1]:
                return lines
        raise AssertionError(f"{words!r} was not printed: {lines} {self.log.read_text()}")

    def terminate(self, seconds: float = 60) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def server_settings(bootstrap: str, database: str) -> dict[str, str]:
    """Settings for servers that run already, with topics of their own; a dead worker is noticed quickly."""
    return {
        "KAFKA": bootstrap,
        "POSTGRES": database,
        "TOPIC_PREFIX": f"accept-{uuid.uuid4().hex[:8]}.",
        "PARTITIONS": "2",
        "SESSION_TIMEOUT": "3",
        "METRICS_PORT": "0",
    }


def turn_json(
    turn_id: str, content: str, *, user: str = "mira", at: str = "2026-03-02T09:00:00+01:00", **more: Any
) -> str:
    """One line of JSON as the documentation shows it."""
    document = {
        "turn_id": turn_id,
        "scope": {"user_id": user},
        "messages": [{"role": "user", "content": content, "name": user.capitalize()}],
        "occurred_at": at,
    }
    return json.dumps({**document, **more})


class InProcessCommandLine(CommandLine):
    """Runs commands in this process, for tests with so many that starting Python for each would take minutes."""

    def run(self, *arguments: str, stdin: str | bytes = b"", seconds: float = TIMEOUT_SECONDS) -> CommandOutput:  # noqa: ARG002 -- nobody waits for another process
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with (
            chdir(self.folder),
            patch.dict(os.environ, self.environ, clear=True),
            patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run(arguments)
        for library in SILENCED:  # in a process of its own nobody would notice
            logging.getLogger(library).setLevel(logging.NOTSET)
        return CommandOutput(code=code, stdout=_captured(out), stderr=_captured(err))


def _captured(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
