"""The demonstration: servers of its own, the steps, and what to try next."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mnemolog.all_in_one import run_all_in_one
from mnemolog.cli.demo.steps import Demo
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.output import program_name, stdout
from mnemolog.cli.process import ProgressBars, stop_on_signals
from mnemolog.client.discovery import ServerAddresses
from mnemolog.logs import configure_logs
from mnemolog.settings import Settings, load_settings


async def run_demo(keep: Path | None, *, as_json: bool) -> int:
    """Play it; the exit code. Raises `DemoError` and whatever else a step fails with."""
    with _data_folder(keep) as folder:
        settings = load_settings(kafka=None, postgres=None, topic_prefix="", data_dir=folder, metrics_port=0)
        configure_logs("error", settings.log_format)
        async with stop_on_signals() as stop, _all_in_one(settings, stop) as connection:
            if connection is None or not await _run_steps(stop, Demo(settings, connection, as_json=as_json)):
                return INTERRUPTED
    if not as_json:
        _show_next_steps(keep)
    return 0


@asynccontextmanager
async def _all_in_one(settings: Settings, stop: asyncio.Event) -> AsyncIterator[ServerAddresses | None]:
    """Everything that runs, as `mnemolog run_all_in_one` would run it; None when told to stop before that."""
    ready: asyncio.Future[ServerAddresses] = asyncio.get_running_loop().create_future()
    with ProgressBars() as progress:
        ending = asyncio.Event()
        running = asyncio.create_task(
            run_all_in_one(settings, stop=ending, announce=ready.set_result, progress=progress)
        )
        stopped = asyncio.create_task(stop.wait())
        waits: set[asyncio.Future[Any]] = {ready, running, stopped}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    try:
        yield ready.result() if ready.done() else None
    finally:
        ending.set()
        await running


async def _run_steps(stop: asyncio.Event, demo: Demo) -> bool:
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
def _data_folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="mnemolog-demo-", ignore_cleanup_errors=True) as folder:
        # Postgres may run under another user, who has to pass.
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


def _show_next_steps(keep: Path | None) -> None:
    folder, mnemolog = keep or Path("demo-data"), program_name()
    show = stdout().print
    show("\n[bold green]That was the whole way.[/] Try next:")
    if not keep:
        show(f"  {mnemolog} demo --keep {folder}      plays it again and leaves its data", markup=False)
    show(f"  {mnemolog} up --data {folder}        runs it until Ctrl-C; then, in a second terminal:", markup=False)
    show(f"  export MNEMOLOG_DATA_DIR={folder}", markup=False)
    show(f"  {mnemolog} search 'what does Priya do for a living' --user priya", markup=False)
    show(f"  {mnemolog} facts --user mira --all", markup=False)
