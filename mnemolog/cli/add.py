"""`mnemolog add`: publish one turn, and on request wait for what became of it."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemolog.cli.options import EXACT_SCOPE, OUTPUT_OPTIONS, WAIT_OPTION, exit_for_ends, time_option, with_options
from mnemolog.cli.output import print_line, print_result, program_name, read_input
from mnemolog.cli.results import show_status, show_turn_receipt
from mnemolog.cli.results.ids import WHOLE_IDS, ShownIds, shown_ids
from mnemolog.cli.runtime import NOTHING_CHANGED, call_client

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.inputs.arguments import TurnArgs
    from mnemolog.client.receipts import TurnReceipt
    from mnemolog.projections.queries.results import WriteResult


def publish_text(
    turn: "tuple[str, TurnArgs]", *, wait: float | None, as_json: bool, full_ids: bool, **ids: Any
) -> None:
    """Publish a text with its arguments, and show its receipt or its end."""
    text, arguments = turn
    sent: list[TurnReceipt] = []

    async def work(client: "AsyncMemoryClient") -> "tuple[TurnReceipt | WriteResult, ShownIds]":
        bound = client.scope(**ids)
        sent.append(await bound.add(text, **arguments))
        if not wait:
            return sent[0], WHOLE_IDS
        end = await bound.wait(sent[0], timeout=wait)
        return end, await shown_ids(client, end, whole=as_json or full_ids)

    end, shown = call_client(work, tenant=ids["tenant"], interrupted=lambda: _state_of(sent))
    print_result(end, lambda _: _show(end, ids["user_id"], shown), as_json=as_json)
    exit_for_ends([end])


def _state_of(sent: "list[TurnReceipt]") -> str:
    if not sent:
        return NOTHING_CHANGED
    return f"turn {sent[0].turn_id} was published and will be processed; `mnemolog status {sent[0].turn_id}` tells"


def _show(end: "TurnReceipt | WriteResult", user: str | None, ids: ShownIds) -> None:
    from mnemolog.client.receipts import TurnReceipt  # noqa: PLC0415 - it is loaded by now

    if isinstance(end, TurnReceipt):
        show_turn_receipt(end, user)
        return
    show_status(end, ids)
    if (changed := next((one.fact_id for one in end.memories if one.fact_id), None)) is not None:
        print_line(f"why: {program_name()} explain {ids(changed)}")
    elif end.success:
        print_line(f"why: {program_name()} why-not {end.turn_id}")


@with_options(publish_text, {**EXACT_SCOPE, **WAIT_OPTION, **OUTPUT_OPTIONS})
def add(
    *,
    text: Annotated[str, typer.Argument(help="what the user says; - reads stdin")],
    speaker: Annotated[str | None, typer.Option(help="the user's name")] = None,
    at: Annotated[datetime | None, time_option("when it was said: a day, or ISO 8601; now unless given")] = None,
    turn_id: Annotated[str | None, typer.Option(help="an id of your own; the same one again does nothing")] = None,
    infer: Annotated[bool, typer.Option("--infer/--no-infer", help="extract facts, or store the text as it is")] = True,
) -> "tuple[str, TurnArgs]":
    """Publish what a user says, as one turn. With --wait, show the facts that came of it."""
    said = read_input("the text").decode(errors="surrogateescape").strip() if text == "-" else text
    return said, {"speaker": speaker, "occurred_at": at, "turn_id": turn_id, "infer": infer}
