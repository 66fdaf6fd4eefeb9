"""Flame graphs of the workers: `python -m tests.bench.flame_graph` writes one for each stage to docs/images/.

py-spy looks at each process a hundred times a second while turns are stored; only what holds the interpreter's lock
counts, because waiting threads look busy to it on a full machine. It has to be allowed to look: as root, or with
`kernel.yama.ptrace_scope` at 0.
"""

import argparse
import asyncio
import re
import sys
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, unescape

from tests.bench.environment import LAYOUTS, STAGES, environment, model_server, servers, workers
from tests.bench.samples import turns
from tests.bench.stores import IN_FLIGHT, TurnPublisher, progress
from tests.support.paths import ROOT

IMAGES: Final = ROOT / "docs" / "images"
PY_SPY: Final = Path(sys.executable).with_name("py-spy")
RATE: Final = 100
LEAST_SHARE: Final = 0.004
"""Share of all samples below which a frame is left out: it would be a few pixels wide."""
CHARACTERS: Final = 160
"""How many stand side by side in the whole width."""
MIN_CHARACTERS: Final = 3
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
    samples = int(total[1])

    def frame(found: re.Match[str]) -> str:
        share = int(found["samples"]) / samples
        if share < LEAST_SHARE:
            return ""
        whole, label = (_FOLDER.sub("(", text.replace(f"({ROOT}/", "(")) for text in (found[0], found["title"]))
        label = unescape(label.rpartition(" (")[0])
        room = int(share * CHARACTERS)
        text = label if len(label) <= room else f"{label[: room - 1]}…" if room > MIN_CHARACTERS else ""
        return re.sub(r"(<text[^>]*>)[^<]*", lambda start: start[1] + escape(text), whole)

    small = _TITLE.sub(rf"\g<1>{escape(title)}", _FRAME.sub(frame, graph))
    if left := re.search(r"\(/[^()]*\)", small):
        raise ValueError(f"a path of this machine is left: {left[0]}")
    return small


async def record(seconds: float, folder: Path) -> None:
    """Store turns by one worker and by a worker for each stage, and write `flame-<stage>.svg` for each process."""
    async with servers() as running, model_server(running.folder) as (base_url, _):
        for layout in ("one process", STAGES):
            async with (
                environment(running, f"flame {layout}") as one,
                workers((arena := one.with_model(base_url)).settings, LAYOUTS[layout], running.folder) as started,
                progress(arena) as watch,
            ):
                feed = TurnPublisher(arena, turns(), watch)
                await feed.run(seconds / 2, at_least=IN_FLIGHT)
                async with asyncio.TaskGroup() as tasks:
                    for name, pid in started.items():
                        shown = name.partition(":")[2] if layout == STAGES else "chain"
                        tasks.create_task(_spy(pid, seconds, shown, folder))
                    tasks.create_task(feed.run(seconds))
                await watch.until_done(feed.published)


async def _spy(pid: int, seconds: float, shown: str, folder: Path) -> None:
    raw = folder / f"flame-{shown}.raw.svg"
    command = f"record --gil --function --pid {pid} --duration {seconds:.0f} --rate {RATE} --output"
    spy = await asyncio.create_subprocess_exec(PY_SPY, *command.split(), raw, stdout=asyncio.subprocess.DEVNULL)
    if await spy.wait():
        raise RuntimeError(f"py-spy could not look at process {pid}: it needs root, or ptrace_scope 0")
    graph = small_graph(raw.read_text(), f"{shown}: share of the time in each function")
    (folder / f"flame-{shown}.svg").write_text(graph)
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
