"""`mnemolog publish`: publish a file of turns, and on request wait until they are finished."""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import ProgressBars, escape, print_result, stderr, stdout
from mnemolog.cli.runtime import discovered_settings, run_async

if TYPE_CHECKING:
    from mnemolog.client.turn_files import PublishReport

_MAX_ERRORS_SHOWN = 10


def publish(
    *,
    file: Annotated[str, typer.Argument(help="JSON lines, each a turn; - reads stdin")],
    raw: Annotated[bool, typer.Option("--raw", help="send each line as it is, without validating it")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="wait until all turns are finished, and count results")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="seconds to wait after the last line")] = 120,
    as_json: options.AsJson = False,
) -> None:
    """Publish turns. An invalid line is reported with its line number, the others are sent.

    Every turn names its turn_id: publishing a file again is harmless, a second copy of a turn does nothing.
    """

    async def work(stream: IO[bytes]) -> "PublishReport":
        from mnemolog.client.turn_files import TurnFilePublisher  # noqa: PLC0415 - loads the drivers

        with ProgressBars() as progress:
            turns = TurnFilePublisher(discovered_settings(), raw=raw, progress=progress)
            published = await turns.publish(stream)
            if wait:
                await turns.wait_for_ends(published, seconds=timeout)
        return turns.report

    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        report = run_async(work(stream))
    print_result(report, partial(_show_report, waited=wait), as_json=as_json)
    if not report.complete:
        raise typer.Exit(FAILED)


def _show_report(report: "PublishReport", *, waited: bool) -> None:
    show = stdout().print
    show(f"{report.read} lines read, {report.acknowledged} acknowledged by the broker")
    if waited:
        show("finished: " + (", ".join(f"{count} {end}" for end, count in sorted(report.ends.items())) or "none"))
    for what, errors in (("refused", report.refused), ("not acknowledged", report.unacknowledged)):
        for number, text in list(errors.items())[:_MAX_ERRORS_SHOWN]:
            stderr().print(f"[red]line {number} {what}:[/] {escape(text)}")
        if len(errors) > _MAX_ERRORS_SHOWN:
            stderr().print(f"[red]... and {len(errors) - _MAX_ERRORS_SHOWN} more lines {what}[/]")
    if report.unfinished:
        stderr().print(
            f"[red]{len(report.unfinished)} turns did not finish in time[/], the first is "
            f"{escape(report.unfinished[0])}: `mnemolog status` shows each; check that all stages run"
        )
