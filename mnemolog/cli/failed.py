"""Commands about what went wrong: failed turns, another attempt for them, and dead letters."""

import shlex
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.options import WHOLE_TENANT, Query, exit_for_ends, query_command, whole_turn_id
from mnemolog.cli.output import print_labelled, print_line, print_result, print_text, program_name
from mnemolog.cli.results import show_results, show_turn_receipt
from mnemolog.cli.results.ids import ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import ago, counted, moment, owner_of, turn_options
from mnemolog.cli.runtime import call_client, discovered_settings, run_async

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.receipts import TurnReceipt
    from mnemolog.projections.queries.results import WriteResult
    from mnemolog.projections.queries.turns.audit import FailedTurn
    from mnemolog.streams.kafka.dead_letter_reader import StoredDeadLetter

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="how many at the most, the newest")]


def show_failed(found: "Sequence[FailedTurn]", _: ShortIds) -> None:
    """The turns, why each failed, and how to publish one again."""
    if not found:
        print_text("no turn failed or was rejected")
        return
    now = datetime.now(UTC)
    print_entries(
        f"{counted(len(found), 'turn')} failed or rejected, the newest first",
        [Entry(one.turn_id, _why(one), list(_failed_details(one, now))) for one in found],
    )
    again = next((one for one in found if one.can_retry), None)
    if again is not None:
        print_line(
            f"publish one again: {program_name()} retry {shlex.quote(again.turn_id)}{turn_options(again)} --wait"
        )


def _why(turn: "FailedTurn") -> str:
    return f"{turn.status}: {turn.reason or 'no reason'}"


def _failed_details(turn: "FailedTurn", now: datetime) -> "Iterator[str]":
    yield turn.detail
    yield owner_of(turn) or "of no scope"
    attempts = f", attempt {turn.attempt}" if turn.attempt > 1 else ""
    yield f"{ago(turn.decided_at, now)} ({moment(turn.decided_at)}){attempts}"
    if not turn.can_retry:
        yield "the same turn would end so again: mend it and publish it under a new id"


@query_command(show_failed, scope=WHOLE_TENANT)
def failed(*, limit: Limit = 20) -> Query:
    """List turns that ended failed or rejected, with the reason, and how to publish them again."""
    return lambda client: client.failed_turns(limit=limit)


def retry(
    *,
    turn_id: Annotated[str, typer.Argument(help="a turn that failed, or was rejected for a limit")],
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id, if several users have this id")] = None,
    wait: options.Wait = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Publish a failed turn again as it was received, for another attempt."""

    async def work(client: "AsyncMemoryClient") -> "TurnReceipt | WriteResult":
        before = await client.status(await whole_turn_id(client, turn_id, user=user), user_id=user)
        turn = await client.received_turn(before.turn_id, user_id=user)
        if before.success or before.status == "pending":
            raise _refused(f"turn {before.turn_id} is {before.status}: there is nothing to try again")
        if turn is None:
            raise _refused(f"the journal has no valid turn {before.turn_id}: mend it and publish it under a new id")
        (receipt,) = await client.add_many([turn])
        if not wait:
            return receipt
        return await client.wait(turn.turn_id, timeout=wait, user_id=user, attempt=before.attempt + 1)

    end = call_client(work, tenant=tenant)
    print_result(end, _show_attempt, as_json=as_json)
    exit_for_ends([end])


def _refused(why: str) -> typer.Exit:
    print_labelled("error:", why, style="bold red")
    return typer.Exit(FAILED)


def _show_attempt(end: "TurnReceipt | WriteResult") -> None:
    from mnemolog.client.receipts import TurnReceipt  # noqa: PLC0415 - it is loaded by now

    if isinstance(end, TurnReceipt):
        show_turn_receipt(end)
    else:
        show_results([end])


def dead_letters(
    *,
    limit: Limit = 20,
    show: Annotated[
        str | None, typer.Option("--show", metavar="POSITION", help="write the bytes of this one to stdout")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the newest records that could not be processed: stage, reason, time and position."""
    if show is not None:
        _write_bytes(show)
        return
    from mnemolog.admin import dead_letters as newest  # noqa: PLC0415 - loads the drivers

    found = run_async(newest(discovered_settings(), limit=limit))
    print_result(found, show_dead_letters, as_json=as_json)


def show_dead_letters(found: "Sequence[StoredDeadLetter]") -> None:
    """The dead letters, and how to see and mend one."""
    if not found:
        print_text("no dead letters")
        return
    now = datetime.now(UTC)
    rows = [
        Entry(one.position, f"{one.letter.stage}: {one.letter.reason}", list(_letter_details(one, now)))
        for one in found
    ]
    print_entries(f"{counted(len(rows), 'dead letter')}, the newest first", rows)
    program, position = program_name(), found[0].position
    print_line(f"its bytes, to mend:  {program} dead-letters --show {position} > mended.jsonl")
    print_line(f"then:                {program} publish mended.jsonl --wait")


def _letter_details(one: "StoredDeadLetter", now: datetime) -> "Iterator[str]":
    letter = one.letter
    yield letter.detail
    yield f"turn {letter.source_id}" if letter.source_id else ""
    size = "no value" if letter.size < 0 else counted(letter.size, "byte")
    cut = " (cut)" if letter.value is not None and letter.size > len(letter.value) else ""
    yield f"{size}{cut} of {letter.origin}, {counted(letter.tries, 'try', 'tries')}"
    yield f"{ago(letter.at, now)} ({moment(letter.at)})"


def _write_bytes(position: str) -> None:
    from mnemolog.admin import dead_letter  # noqa: PLC0415 - loads the drivers

    _, _, place = position.rpartition("dead_letters/")
    partition, _, offset = place.partition("/")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise typer.BadParameter(f"{position!r} is not a position: `mnemolog dead-letters` lists them")
    found = run_async(dead_letter(discovered_settings(), int(partition), int(offset)))
    if found is None:
        raise _refused(f"no dead letter is at {position}: perhaps it is older than the topic keeps them")
    sys.stdout.buffer.write((found.letter.value or b"") + b"\n")
    sys.stdout.flush()
