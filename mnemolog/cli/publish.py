"""`mnemolog publish`: a file of turns, each acknowledged by the broker, and followed to its end on request."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.failures import FAILED
from mnemolog.cli.hosting import ProgressBars
from mnemolog.cli.output import emit, escape, stderr, stdout
from mnemolog.cli.running import located_settings, run

if TYPE_CHECKING:
    from mnemolog.turn_files import Tally

_SHOWN = 10


def publish(
    *,
    file: Annotated[str, typer.Argument(help="JSON lines, each a turn; - reads stdin")],
    raw: Annotated[bool, typer.Option("--raw", help="send each line as it is, even one that is no turn")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="wait until every turn has its end, and count the ends")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="seconds to wait after the last line")] = 120,
    as_json: options.AsJson = False,
) -> None:
    """Publish turns. A line that is no turn is refused by its number, the others are sent.

    Every turn names its turn_id: publishing a file again is harmless, a second copy of a turn does nothing.
    """

    async def work() -> "Tally":
        from mnemolog.turn_files import TurnFile  # noqa: PLC0415 - loads the drivers

        with _opened(file) as stream, ProgressBars() as progress:
            turns = TurnFile(located_settings(), raw=raw, report=progress)
            followed = await turns.publish(stream)
            if wait:
                await turns.follow(followed, seconds=timeout)
        return turns.tally

    tally = run(work())
    if as_json:
        emit(tally)
    else:
        _tell(tally, waited=wait)
    if not tally.complete:
        raise typer.Exit(FAILED)


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
    else:
        with open(file, "rb") as stream:  # noqa: PTH123 - "-" is no path
            yield stream


def _tell(tally: "Tally", *, waited: bool) -> None:
    show = stdout().print
    show(f"{tally.read} lines read, {tally.acknowledged} acknowledged by the broker")
    if waited:
        show("ends: " + (", ".join(f"{count} {end}" for end, count in sorted(tally.ends.items())) or "none"))
    _warn("refused", tally.refused)
    _warn("not acknowledged", tally.unacknowledged)
    if tally.unfinished:
        stderr().print(
            f"[red]{len(tally.unfinished)} turns had no end in time[/], the first is {escape(tally.unfinished[0])}: "
            "`mnemolog status` tells of each; check that all stages run"
        )


def _warn(what: str, faults: Mapping[int, str]) -> None:
    for number, words in list(faults.items())[:_SHOWN]:
        stderr().print(f"[red]line {number} {what}:[/] {escape(words)}")
    if len(faults) > _SHOWN:
        stderr().print(f"[red]... and {len(faults) - _SHOWN} more lines {what}[/]")
