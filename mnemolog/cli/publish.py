"""`mnemolog publish`: publish a file of turns, and on request wait until they are finished."""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import ProgressBars, announce_input, print_line, print_note, print_result, program_name
from mnemolog.cli.results.words import counted
from mnemolog.cli.runtime import discovered_settings, run_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemolog.client.turn_files import PublishReport

_MAX_ERRORS_SHOWN = 10
_RAW = "send each line without validating it; commands are refused: send them with their own subcommand"


def publish(
    *,
    file: Annotated[str, typer.Argument(help="JSON lines, each a turn; - reads stdin")],
    raw: Annotated[bool, typer.Option("--raw", help=_RAW)] = False,
    wait: options.Wait = None,
    as_json: options.AsJson = False,
) -> None:
    """Publish a file of turns. An invalid line is reported with its line number, the others are sent.

    Every turn names its turn_id: publishing a file again is harmless, a second copy of a turn does nothing. The exit
    code is 1 where a line was refused, and with --wait where a turn failed, was rejected or has no end in time.
    """
    report: PublishReport | None = None

    async def work(stream: IO[bytes]) -> "PublishReport":
        from mnemolog.client.turn_files import TurnFilePublisher  # noqa: PLC0415 - loads the drivers

        nonlocal report
        with ProgressBars() as progress:
            turns = TurnFilePublisher(discovered_settings(), raw=raw, progress=progress)
            report = turns.report
            published = await turns.publish(stream)
            if wait:
                await turns.wait_for_ends(published, seconds=wait)
        return turns.report

    if file == "-":
        announce_input("JSON lines, each a turn,")
    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        report = run_async(work(stream), interrupted=lambda: _state_of(report))
    print_result(report, partial(_show_report, waited=bool(wait)), as_json=as_json)
    if not report.complete:
        raise typer.Exit(FAILED)


def _state_of(report: "PublishReport | None") -> str:
    """What an interrupted command leaves behind."""
    if report is None or not report.acknowledged:
        return "no line was acknowledged by the broker; publishing the file again is harmless"
    return (
        f"{counted(report.acknowledged, 'line')} acknowledged by the broker, and will be processed; "
        "publishing the file again is harmless"
    )


def _show_report(report: "PublishReport", *, waited: bool) -> None:
    print_line(f"{counted(report.read, 'line')} read, {report.acknowledged} acknowledged by the broker")
    if waited and report.acknowledged:
        print_line("finished: " + (", ".join(f"{count} {end}" for end, count in sorted(report.ends.items())) or "none"))
    for what, errors in (("refused", report.refused), ("not acknowledged", report.unacknowledged)):
        _show_first([f"line {number} {what}: {text}" for number, text in errors.items()], f"lines {what}")
    _show_first([f"turn {turn_id}: {why}" for turn_id, why in report.unsuccessful.items()], "turns without an effect")
    taken = "was published before with other content; the first one counts: give it a new turn_id"
    _show_first([f"turn {turn_id} {taken}" for turn_id in report.taken], "turns with an id that is taken")
    _show_first([f"turn {turn_id} did not finish in time" for turn_id in report.unfinished], "turns did not finish")
    if report.unfinished:
        print_note(f"`{program_name()} status` shows whether all stages run, with a turn's id how far it is")
    if report.unsuccessful:
        print_note(f"`{program_name()} failed` lists what failed, and how to publish it again")


def _show_first(lines: "Sequence[str]", what: str) -> None:
    for line in lines[:_MAX_ERRORS_SHOWN]:
        print_note(line)
    if len(lines) > _MAX_ERRORS_SHOWN:
        print_note(f"... and {len(lines) - _MAX_ERRORS_SHOWN} more {what}")
