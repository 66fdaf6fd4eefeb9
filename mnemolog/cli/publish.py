"""`mnemolog add` and `mnemolog publish`: publish a text or a file of turns, and on request wait for their ends."""

import shlex
import sys
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.options import WAIT_OPTION, Change, change_command, time_option
from mnemolog.cli.output import (
    announce_input,
    print_line,
    print_note,
    print_result,
    program_name,
    progress_bars,
    read_input,
)
from mnemolog.cli.runtime import discovered_settings, run_async
from mnemolog.cli.show import show_status
from mnemolog.cli.tables import ShortIds, counted, ends_by_status, turn_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemolog.client.inputs import TurnArgs
    from mnemolog.client.turn_files import PublishReport
    from mnemolog.projections.queries.results import Result

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
        with progress_bars() as progress:
            turns = TurnFilePublisher(discovered_settings(), raw=raw, progress=progress)
            report = turns.report
            published = await turns.publish(stream)
            if wait:
                await turns.wait_for_ends(published, seconds=wait)
        return turns.report

    def state_left_behind() -> str:
        if report is None or not report.acknowledged:
            return "no line was acknowledged by the broker; publishing the file again is harmless"
        return (
            f"{counted(report.acknowledged, 'line')} acknowledged by the broker, and will be processed; "
            "publishing the file again is harmless"
        )

    if file == "-":
        announce_input("JSON lines, each a turn,")
    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        report = run_async(work(stream), interrupted=state_left_behind)
    print_result(report, partial(_show_report, waited=bool(wait)), as_json=as_json)
    if not report.complete:
        raise typer.Exit(FAILED)


def _show_report(report: "PublishReport", *, waited: bool) -> None:
    print_line(f"{counted(report.read, 'line')} read, {report.acknowledged} acknowledged by the broker")
    if waited and report.acknowledged:
        print_line(f"ends by status: {ends_by_status(report.ends)}")
    for what, errors in (("refused", report.refused), ("not acknowledged", report.unacknowledged)):
        _show_first([f"line {number} {what}: {text}" for number, text in errors.items()], f"lines {what}")
    _show_first([f"turn {turn_id}: {why}" for turn_id, why in report.unsuccessful.items()], "turns without an effect")
    taken = "was published before with other content; the first one counts: give it a new turn_id"
    _show_first([f"turn {turn_id} {taken}" for turn_id in report.reused], "turns with an id that is taken")
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


def _show_added(end: "Result", ids: ShortIds) -> None:
    show_status(end, ids)
    if (changed := next((one.fact_id for one in end.changes if one.fact_id), None)) is not None:
        print_line(f"why: {program_name()} explain {ids(changed)}")
    elif end.success:
        print_line(f"why: {program_name()} why-not {shlex.quote(end.turn_id)}{turn_options(end)}")


@change_command(own=WAIT_OPTION, show=_show_added)
def add(
    *,
    text: Annotated[str, typer.Argument(help="what the user says; - reads stdin")],
    speaker: Annotated[str | None, typer.Option(help="the user's name")] = None,
    at: Annotated[datetime | None, time_option("when it was said: a day, or ISO 8601; now unless given")] = None,
    turn_id: Annotated[str | None, typer.Option(help="an id of your own; the same one again does nothing")] = None,
    infer: Annotated[bool, typer.Option("--infer/--no-infer", help="extract facts, or store the text as it is")] = True,
    immutable: Annotated[bool, typer.Option("--immutable", help="only a human's command changes its facts")] = False,
) -> Change:
    """Publish what a user says, as one turn. With --wait, show the facts that came of it."""
    said = read_input("the text").decode(errors="surrogateescape").strip() if text == "-" else text
    own: TurnArgs = {"speaker": speaker, "occurred_at": at, "turn_id": turn_id, "infer": infer, "immutable": immutable}
    return lambda client: client.add(said, **own)
