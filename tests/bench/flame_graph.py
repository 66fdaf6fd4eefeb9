"""Flame graphs of the workers: `python -m tests.bench.flame_graph` writes one for each stage to docs/images/.

py-spy looks at each process a hundred times a second while turns are stored; only what holds the interpreter's lock
counts, because waiting threads look busy to it on a full machine. It has to be allowed to look: as root, or with
`kernel.yama.ptrace_scope` at 0.
"""

import argparse
import asyncio
import re
import sys
from functools import partial
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, unescape

from tests.bench.environment import Servers, environment, servers
from tests.bench.plan import MODEL_SECONDS
from tests.bench.processes import model_server, workers
from tests.bench.sample_turns import turns
from tests.bench.turn_throughput import IN_FLIGHT, ProgressReader, TurnPublisher, connected
from tests.bench.worker_layouts import LAYOUTS
from tests.support.paths import ROOT

IMAGES: Final = ROOT / "docs" / "images"
PY_SPY: Final = Path(sys.executable).with_name("py-spy")
RATE: Final = 100
LEAST_SHARE: Final = 0.004
"""Share of all samples below which a frame is left out: it would be a few pixels wide."""
CHARACTERS: Final = 160
"""How many stand side by side in the whole width."""
MIN_CHARACTERS: Final = 3
GRAPHS: Final = {"one process": "chain", "a process for each stage": "stage"}
_TITLE: Final = re.compile(r'(<text id="title"[^>]*>)[^<]*')
_TOTAL: Final = re.compile(r'total_samples="(\d+)"')
_FRAME: Final = re.compile(
    r'<g><title>(?P<title>[^<]*)</title>.*?fg:w="(?P<samples>\d+)"/><text(?P<place>[^>]*)>.*?</g>'
)
_FOLDER: Final = re.compile(r"\((?:/[^()]*)?/(?:site-packages|python3\.\d+)/")


def small_graph(graph: str, title: str) -> str:
    """A graph of py-spy with its broad frames alone, labels cut to their width, and no folder of this machine.

    Raises ValueError where it is no such graph, or where a path of this machine is left in it.
    """
    total = _TOTAL.search(graph)
    if total is None or not int(total[1]):
        raise ValueError("no sample in this graph: was the process idle?")
    small = _TITLE.sub(rf"\g<1>{escape(title)}", _FRAME.sub(partial(_frame, int(total[1])), graph))
    if left := re.search(r"\(/[^()]*\)", small):
        raise ValueError(f"a path of this machine is left: {left[0]}")
    return small


def _frame(total: int, frame: re.Match[str]) -> str:
    share = int(frame["samples"]) / total
    if share < LEAST_SHARE:
        return ""
    whole = _FOLDER.sub("(", frame[0].replace(f"({ROOT}/", "("))
    label = unescape(_FOLDER.sub("(", frame["title"].replace(f"({ROOT}/", "(")).rpartition(" (")[0])
    room = int(share * CHARACTERS)
    text = label if len(label) <= room else f"{label[: room - 1]}…" if room > MIN_CHARACTERS else ""
    return re.sub(r"(<text[^>]*>)[^<]*", lambda start: start[1] + escape(text), whole)


async def record(seconds: float, folder: Path) -> None:
    """Store turns in two layouts, and write `flame-<stages>.svg` for each of their processes."""
    async with servers() as running, model_server(MODEL_SECONDS, running.folder) as (base_url, _):
        for layout, name in GRAPHS.items():
            await _record_layout(running, base_url, layout, seconds, folder / f"flame-{name}.svg")


async def _record_layout(running: Servers, base_url: str, layout: str, seconds: float, output: Path) -> None:
    async with (
        environment(running, f"flame_{output.stem[-5:]}") as one,
        workers((arena := one.with_model(base_url)).settings, LAYOUTS[layout], running.folder) as started,
        connected(arena) as connection,
    ):
        watch = ProgressReader(connection, {})
        feed = TurnPublisher(arena, turns(), watch)
        await feed.run(seconds / 2, at_least=IN_FLIGHT)
        graphs = {_output(output, name, len(started)): pid for name, pid in started.items()}
        async with asyncio.TaskGroup() as tasks:
            for file, pid in graphs.items():
                tasks.create_task(_spy(pid, seconds, file))
            tasks.create_task(feed.run(seconds))
        await watch.until_done(feed.published)


def _output(output: Path, name: str, count: int) -> Path:
    stage = name.partition(":")[2]
    return output if count == 1 else output.with_stem(f"flame-{stage}")


async def _spy(pid: int, seconds: float, output: Path) -> None:
    raw = output.with_suffix(".raw.svg")
    command = f"record --gil --function --pid {pid} --duration {seconds:.0f} --rate {RATE} --output"
    spy = await asyncio.create_subprocess_exec(PY_SPY, *command.split(), raw, stdout=asyncio.subprocess.DEVNULL)
    if await spy.wait():
        raise RuntimeError(f"py-spy could not look at process {pid}: it needs root, or ptrace_scope 0")
    _write_small(raw, output)


def _write_small(raw: Path, output: Path) -> None:
    title = f"{output.stem.removeprefix('flame-')}: share of the time in each function"
    output.write_text(small_graph(raw.read_text(), title))
    raw.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="how long py-spy looks; half of it is warm-up")
    parser.add_argument("--output", type=Path, default=IMAGES, help="the folder of the graphs")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    asyncio.run(record(given.seconds, given.output))


if __name__ == "__main__":
    main()
