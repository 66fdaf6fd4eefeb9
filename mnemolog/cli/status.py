"""`mnemolog status`: of a turn or command how it ended, and without an id how the stack is."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import UNAVAILABLE
from mnemolog.cli.output import print_result, print_text, program_name, without_password
from mnemolog.cli.results import show_status
from mnemolog.cli.results.ids import ShortIds, shown_ids
from mnemolog.cli.results.tables import print_table
from mnemolog.cli.results.words import ago, counted, moment
from mnemolog.cli.runtime import call_client, discovered_settings, run_async

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.projections.queries.results import WriteResult
    from mnemolog.projections.queries.turns.audit import TableCounts
    from mnemolog.settings import Settings
    from mnemolog.streams.kafka.stage_lag import StageLag

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """The servers of a stack and what can be told of them; what cannot be reached has its error instead."""

    kafka: str
    postgres: str
    stages: "list[StageLag] | None" = None
    totals: "TableCounts | None" = None
    kafka_error: str | None = None
    postgres_error: str | None = None


def status(
    *,
    turn_id: Annotated[
        str | None,
        typer.Argument(help="a turn or command, or topic/partition/offset of an invalid record; else of the stack"),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id, if several users have this id")] = None,
    wait: options.Wait = None,
    attempt: Annotated[int, typer.Option(min=1, help="which attempt, for a turn that was published again")] = 1,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="also show each decision and the cost of each stage")
    ] = False,
    tenant: options.Tenant = None,
    full_ids: options.FullIds = False,
    as_json: options.AsJson = False,
) -> None:
    """Show how a turn or command ended and what it changed; without an id, the state of the stack.

    Exit code 1 where it failed or was rejected.
    """
    if turn_id is None:
        _show_stack(as_json=as_json)
        return

    async def work(client: "AsyncMemoryClient") -> "tuple[WriteResult, ShortIds]":
        whole = await options.whole_turn_id(client, turn_id, user=user)
        if wait:
            end = await client.wait(whole, timeout=wait, user_id=user, verbose=verbose, attempt=attempt)
        else:
            end = await client.status(whole, user_id=user, verbose=verbose)
        return end, await shown_ids(client, end, whole=as_json or full_ids)

    end, shown = call_client(work, tenant=tenant)
    print_result(end, lambda _: show_status(end, shown), as_json=as_json)
    options.exit_for_ends([end])


def _show_stack(*, as_json: bool) -> None:
    settings = discovered_settings()
    state = run_async(_stack_state(settings))
    print_result(state, show_stack, as_json=as_json)
    if state.kafka_error or state.postgres_error:
        raise typer.Exit(UNAVAILABLE)


async def _stack_state(settings: "Settings") -> StackState:
    from mnemolog.admin import count_tables, lags  # noqa: PLC0415 - loads the drivers

    stages, kafka_error = await _or_error(lags(settings))
    totals, postgres_error = await _or_error(count_tables(settings))
    return StackState(
        kafka=settings.kafka or "",
        postgres=without_password(settings.postgres or ""),
        stages=stages,
        totals=totals,
        kafka_error=kafka_error,
        postgres_error=postgres_error,
    )


async def _or_error(question: "Coroutine[Any, Any, R]") -> tuple[R | None, str | None]:
    from mnemolog.errors import ServerUnavailableError  # noqa: PLC0415 - loads pydantic

    try:
        return await question, None
    except ServerUnavailableError as error:
        return None, str(error)


def show_stack(state: StackState) -> None:
    """The servers, the stages, and what the tables hold."""
    print_text(f"Kafka     {state.kafka}: {state.kafka_error or 'reachable'}")
    print_text(f"Postgres  {state.postgres}: {state.postgres_error or 'reachable'}")
    if state.kafka_error or state.postgres_error:
        print_text("workers wait for a server that is away, and go on by themselves when it answers")
    if state.stages is not None:
        rows = [(one.stage, one.workers or "none", one.lag) for one in state.stages]
        print_table("stages", ("stage", "workers", "records waiting"), rows)
        if not all(one.workers for one in state.stages):
            print_text(f"some stages do not run, and turns wait for them: `{program_name()} up` or `worker` runs them")
    if state.totals is not None:
        _show_totals(state.totals, datetime.now(UTC))


def _show_totals(totals: "TableCounts", now: datetime) -> None:
    print_text(f"{counted(totals.turns, 'turn')} received, {totals.in_flight} in flight")
    if totals.last_turn_at:
        print_text(f"the last one came {ago(totals.last_turn_at, now)} ({moment(totals.last_turn_at)})")
    print_text(f"{counted(totals.active_facts, 'active fact')}, {totals.pending_facts} waiting for a confirmation")
    if totals.failed_turns:
        print_text(f"{counted(totals.failed_turns, 'turn')} failed or rejected: `{program_name()} failed` lists them")
