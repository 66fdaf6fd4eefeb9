"""The demonstration: embedded servers, the steps, and what to try next."""

import asyncio
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mnemolog.all_in_one import StopRequested, cancel_on_stop, run_all_in_one
from mnemolog.cli.demo.results import print_lines
from mnemolog.cli.demo.steps import Demo
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.output import program_name
from mnemolog.cli.runtime import stop_on_signals
from mnemolog.cli.start_steps import StartSteps
from mnemolog.client.discovery import ServerAddresses
from mnemolog.logs import configure_logs
from mnemolog.settings import Settings, load_settings


async def run_demo(keep: Path | None, *, as_json: bool) -> int:
    """Run all steps; the exit code. Raises `DemoError` and what a step fails with."""
    with _data_folder(keep) as folder:
        settings = load_settings(kafka=None, postgres=None, topic_prefix="", data_dir=folder, metrics_port=0)
        configure_logs("error", settings.log_format)
        try:
            async with stop_on_signals() as stop, _all_in_one(settings, stop, kept=bool(keep)) as servers:
                await cancel_on_stop(stop, Demo(settings, servers, as_json=as_json).run())
        except StopRequested:
            return INTERRUPTED
    if not as_json:
        _show_next_steps(keep)
    return 0


@asynccontextmanager
async def _all_in_one(settings: Settings, stop: asyncio.Event, *, kept: bool) -> AsyncIterator[ServerAddresses]:
    """Everything that `mnemolog up` runs. Raises `StopRequested` when `stop` is set before it is ready.

    Data that is not `kept` is not made safe against a loss of power, which takes seconds.
    """
    ready: asyncio.Future[ServerAddresses] = asyncio.get_running_loop().create_future()
    ending = asyncio.Event()
    with StartSteps() as progress:
        running = asyncio.create_task(
            run_all_in_one(settings, stop=ending, announce=ready.set_result, progress=progress, test=not kept)
        )
        try:
            first: set[asyncio.Future[Any]] = {ready, running}
            await cancel_on_stop(stop, asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED))
            progress.close()
            if ready.done():
                yield ready.result()
        finally:
            ending.set()
            await running


@contextmanager
def _data_folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="mnemolog-demo-", ignore_cleanup_errors=True) as folder:
        # Postgres may run under another user, who has to traverse it.
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


def _show_next_steps(keep: Path | None) -> None:
    mnemolog = program_name()
    print_lines("", "Done. What to do next:", indent=0)
    if keep:
        print_lines("run it over the data of this conversation, and see what to type there:")
        print_lines(f"{mnemolog} up --data {shlex.quote(str(keep))}", indent=4)
    else:
        print_lines("run it over data of your own, and see what to type there:")
        print_lines(f"{mnemolog} up", indent=4)
        print_lines("show this again and keep its data, to look at it closely:")
        print_lines(f"{mnemolog} demo --keep demo-data", indent=4)
