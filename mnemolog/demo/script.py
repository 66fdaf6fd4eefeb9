"""The demonstration: servers of its own, the steps, and what to try next."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mnemolog.cli.failures import INTERRUPTED
from mnemolog.cli.hosting import ProgressBars, stopped_by_signals
from mnemolog.cli.output import program, stdout
from mnemolog.connection import Connection
from mnemolog.demo.steps import Demo
from mnemolog.logs import configure_logs
from mnemolog.settings import Settings, load_settings
from mnemolog.up import up


async def play(keep: Path | None, *, as_json: bool) -> int:
    """Play it; the exit code. Raises `DemoError` and whatever else a step fails with."""
    with _folder(keep) as folder:
        settings = load_settings(kafka=None, postgres=None, topic_prefix="", data_dir=folder, metrics_port=0)
        configure_logs("error", settings.log_format)
        async with stopped_by_signals() as stop, _running(settings, stop) as connection:
            if connection is None or not await _unless(stop, Demo(settings, connection, as_json=as_json)):
                return INTERRUPTED
    if not as_json:
        _farewell(keep)
    return 0


@asynccontextmanager
async def _running(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Connection | None]:
    """Everything that runs, as `mnemolog up` would run it; None when told to stop before that."""
    ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
    with ProgressBars() as progress:
        ending = asyncio.Event()
        running = asyncio.create_task(up(settings, stop=ending, announce=ready.set_result, progress=progress))
        stopped = asyncio.create_task(stop.wait())
        waits: set[asyncio.Future[Any]] = {ready, running, stopped}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    try:
        yield ready.result() if ready.done() else None
    finally:
        ending.set()
        await running


async def _unless(stop: asyncio.Event, demo: Demo) -> bool:
    """Play the steps; False when told to stop."""
    steps = asyncio.create_task(demo.play())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({steps, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        steps.cancel()
        stopped.cancel()
    await asyncio.gather(steps, return_exceptions=True)
    if steps.cancelled():
        return False
    steps.result()
    return True


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="mnemolog-demo-", ignore_cleanup_errors=True) as folder:
        # Postgres may run under another user, who has to pass.
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


def _farewell(keep: Path | None) -> None:
    folder, mnemolog = keep or Path("demo-data"), program()
    show = stdout().print
    show("\n[bold green]That was the whole way.[/] Try next:")
    if not keep:
        show(f"  {mnemolog} demo --keep {folder}      plays it again and leaves its data", markup=False)
    show(f"  {mnemolog} up --data {folder}        runs it until Ctrl-C; then, in a second terminal:", markup=False)
    show(f"  export MNEMOLOG_DATA_DIR={folder}", markup=False)
    show(f"  {mnemolog} search 'what does Priya do for a living' --user priya", markup=False)
    show(f"  {mnemolog} facts --user mira --all", markup=False)
