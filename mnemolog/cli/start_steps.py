"""The steps of a start on stderr, each named while it runs, with its seconds."""

import time
from typing import Self

from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from mnemolog.cli.output import stderr


class StartSteps:
    """On a terminal, running steps are shown as they go; elsewhere each has a line when it begins and when it ends."""

    def __init__(self) -> None:
        self._console = stderr()
        self._display = Progress(
            SpinnerColumn("line"),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._running: dict[str, tuple[TaskID, float]] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done of a step."""
        if step not in self._running:
            self._running[step] = (self._display.add_task(step, total=None, count=""), time.monotonic())
            if self._display.disable:
                self._console.print(f"{step} ...", markup=False)
        task, began = self._running[step]
        if total > 1:
            self._display.update(task, count=f"{done} of {total}")
        if done == total:
            del self._running[step]
            self._display.remove_task(task)
            self._console.print(f"{step}: {time.monotonic() - began:.1f} s", markup=False)

    def close(self) -> None:
        self._display.stop()

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
