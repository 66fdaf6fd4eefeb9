"""mem0's processes: started in their own environment, with telemetry off and a home that is removed afterwards."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

from tests.support.databases import temporary_folder
from tests.support.paths import ROOT

ENVIRONMENT: Final = ROOT / ".venv-rival"
PYTHON: Final = ENVIRONMENT / "bin" / "python"
CLIENT: Final = Path(__file__).with_name("mem0_client.py")
ANSWER_SECONDS: Final = 120
LINE_LIMIT: Final = 1 << 26


def mem0_version() -> str:
    """Raises RuntimeError where the environment is missing."""
    for found in ENVIRONMENT.glob("lib/python*/site-packages"):
        for distribution in distributions(name="mem0ai", path=[str(found)]):
            return distribution.version
    raise RuntimeError("mem0 is not installed: run `make bench-rival`, which does that")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0Process:
    """One running client; it answers in lines of JSON."""

    process: asyncio.subprocess.Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    async def ask(self, line: str = "", *, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """What is done by now, or came of `line`. Raises RuntimeError for a turn or a search that failed."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        return await self.answer(seconds)

    async def answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(seconds):
            line = await self.process.stdout.readline()
        report: dict[str, Any] = json.loads(line or '{"error": "it ended by itself"}')
        if report.get("error"):
            raise RuntimeError(f"mem0: {report['error']}\n{self.log.read_text()[-2000:]}")
        return report

    def stop(self) -> None:
        """Ask for no more turns; the report of all of them is the next `answer`."""
        assert self.process.stdin is not None
        self.process.stdin.close()


@asynccontextmanager
async def mem0_process(job: Mapping[str, Any], folder: Path, name: str) -> AsyncIterator[Mem0Process]:
    """mem0 runs, with a new folder in `folder` as its home. Raises RuntimeError where it ends before it is ready."""
    with temporary_folder(f"{name}-", str(folder)) as home, (log := folder / f"{name}.log").open("ab") as errors:
        environ = {variable: os.environ[variable] for variable in ("PATH", "LANG", "TZ") if variable in os.environ}
        environ |= {"HOME": str(home), "MEM0_DIR": str(home / "mem0"), "TMPDIR": str(home)}
        process = await asyncio.create_subprocess_exec(
            *(PYTHON, CLIENT, json.dumps(job)),
            cwd=home,
            env=environ | {"MEM0_TELEMETRY": "False", "NO_PROXY": "127.0.0.1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=LINE_LIMIT,
        )
        running = Mem0Process(process=process, log=log)
        try:
            await running.answer()
            yield running
            running.stop()
            async with asyncio.timeout(ANSWER_SECONDS):
                await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
