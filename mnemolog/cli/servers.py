"""Commands that run servers and stages, and show their state: up, worker, demo, status."""

import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

import typer
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from mnemolog.cli import options
from mnemolog.cli.errors import UNAVAILABLE
from mnemolog.cli.output import print_result, print_text, program_name, stderr, stdout, without_password
from mnemolog.cli.runtime import cli_settings, discovered_settings, run_and_exit, run_async, stop_on_signals
from mnemolog.cli.show import show_status
from mnemolog.cli.tables import ago, counted, moment, print_table
from mnemolog.extras import require_extras, stage_extras

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.discovery import ServerAddresses
    from mnemolog.projections.queries.audit import TableCounts, WorkerProblem
    from mnemolog.projections.queries.results import Result
    from mnemolog.settings import Settings
    from mnemolog.streams.kafka.lag import StageLag

R = TypeVar("R")


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


def up(
    *,
    data: Annotated[Path | None, typer.Option(help="data folder; MNEMOLOG_DATA_DIR unless given")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run Kafka, Postgres (unless MNEMOLOG_KAFKA / MNEMOLOG_POSTGRES are set) and all stages, until Ctrl-C."""
    settings = cli_settings(data_dir=data)
    require_extras(*(() if settings.kafka and settings.postgres else ("embedded",)), *stage_extras(settings))

    async def serve() -> int:
        from mnemolog.all_in_one import run_all_in_one  # noqa: PLC0415 - loads every driver

        _configure_logs(settings, quiet=True)
        with StartSteps() as steps:

            def announce(servers: "ServerAddresses") -> None:
                steps.close()  # from here on the terminal shows the log
                print_result(servers, lambda _: _show_addresses(servers, settings), as_json=as_json)

            async with stop_on_signals() as stop:
                await run_all_in_one(settings, stop=stop, announce=announce, progress=steps)
        stderr().print("stopped")
        return 0

    run_and_exit(serve())


def worker(
    *,
    stages: Annotated[
        list[str] | None, typer.Argument(help="journal, extract, embed, match, resolve, project; all unless named")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run all stages, or some, on the Kafka and Postgres that are set. Run `mnemolog migrate` first.

    While one of the servers is away the start waits for it.
    """
    require_extras(*stage_extras(cli_settings(), stages or ("resolve",)))
    from mnemolog.server_waits import wait_for_servers  # noqa: PLC0415 - loads every driver
    from mnemolog.streams.runtime.worker import ALL_STAGES, WorkerReport, run_worker  # noqa: PLC0415 - the same

    if unknown := sorted(set(stages or []) - set(ALL_STAGES)):
        raise typer.BadParameter(f"{', '.join(unknown)} is not a stage: choose from {', '.join(ALL_STAGES)}")
    chosen = [stage for stage in ALL_STAGES if not stages or stage in stages]
    settings = discovered_settings()

    def ready(report: WorkerReport) -> None:
        text = f"running stages: {', '.join(report.stages)}; metrics at {report.metrics_url}/metrics"
        print_result(report, lambda _: stdout().print(text), as_json=as_json)

    async def work() -> int:
        _configure_logs(settings)
        async with stop_on_signals() as stop:
            await run_worker(settings, chosen, stop, on_ready=ready, prepare=partial(wait_for_servers, settings))
        return 0

    run_and_exit(work())


def _serve_mcp(_: None, *, tenant: str | None, **ids: str | None) -> None:
    require_extras("mcp")
    settings = cli_settings(tenant=tenant)
    ids["user_id"] = ids["user_id"] or settings.mcp_user
    if not (ids["user_id"] or ids["agent_id"]):
        raise typer.BadParameter("say whose memory it is: --user alice, or MNEMOLOG_MCP_USER")
    from mnemolog.mcp import serve_stdio  # noqa: PLC0415 - loads the drivers and the protocol

    run_async(serve_stdio(settings, ids), interrupted=lambda: "changes that were sent will be carried out")


@options.with_options(_serve_mcp, {**options.EXACT_SCOPE, "tenant": (options.Tenant, None)})
def mcp() -> None:
    """Serve one memory as tools of an assistant (Model Context Protocol) on stdin and stdout, until stdin ends."""


def serve(
    *,
    host: Annotated[str | None, typer.Option(help="address; MNEMOLOG_HTTP_HOST unless given")] = None,
    port: Annotated[int | None, typer.Option(help="port, 0 for a free one; MNEMOLOG_HTTP_PORT unless given")] = None,
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="let every program of this machine do everything (127.0.0.1 alone)")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Serve memory over HTTP: applications need neither Kafka nor Postgres nor a model. Make a key first."""
    settings = discovered_settings(http_host=host, http_port=port)
    require_extras("server-http", settings.embedding_provider or settings.provider)

    async def work() -> int:
        from mnemolog.server.serve import serving  # noqa: PLC0415 - loads every driver

        _configure_logs(settings)
        async with stop_on_signals() as stop, serving(settings, without_keys=without_keys) as url:
            print_result({"url": url}, lambda _: stdout().print(f"serving {url}/v1"), as_json=as_json)
            await stop.wait()
        return 0

    run_and_exit(work())


def demo(
    *,
    keep: Annotated[
        Path | None, typer.Option(help="use this data folder and leave it, instead of a temporary one")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="show all that a memory does, with a week of three people")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the demonstration in four steps: a conversation, the next prompt, changes, all tables rebuilt."""
    require_extras("embedded", *stage_extras(cli_settings()))
    from mnemolog.cli.demo import run_demo  # noqa: PLC0415 - loads every driver

    run_and_exit(run_demo(keep, everything=everything, as_json=as_json))


def _configure_logs(settings: "Settings", *, quiet: bool = False) -> None:
    from mnemolog.logs import configure_logs  # noqa: PLC0415 - only these commands log

    level = "warning" if quiet and "log_level" not in settings.model_fields_set else settings.log_level
    configure_logs(level, settings.log_format)


def _show_addresses(servers: "ServerAddresses", settings: "Settings") -> None:
    from mnemolog.texts import OFFLINE_NOTICE  # noqa: PLC0415 - loads the results of queries

    show = stdout().print
    show("\n[bold green]Mnemolog is up.[/] Ctrl-C stops it.\n")
    show(f"  Kafka     {servers.kafka}   topic {servers.topic_prefix}conversation_turns", markup=False)
    show(f"  Postgres  {without_password(servers.postgres)}", markup=False, soft_wrap=True)
    show(f"  Metrics   {servers.metrics_url}/metrics", markup=False)
    if servers.http_url:
        show(f"  HTTP      {servers.http_url}/v1", markup=False)
    show(f"  Data      {settings.data_dir.resolve()}\n", markup=False, soft_wrap=True)
    if settings.provider == "offline":
        print_text(f"{OFFLINE_NOTICE}\n")
    same = " with the same MNEMOLOG_ variables" if any(name.startswith("MNEMOLOG_") for name in os.environ) else ""
    show(f"Try it in a second terminal{same}, in this folder:", markup=False)
    for command in next_commands(settings.data_dir):
        show(f"  {command}", markup=False, soft_wrap=True)


def next_commands(data: Path) -> Iterator[str]:
    """What to type in a second terminal in the same folder; each command works as it stands."""
    if data.resolve() != Path(".mnemolog").resolve():
        yield f"export MNEMOLOG_DATA_DIR={shlex.quote(str(data.resolve()))}"
    mnemolog = shlex.quote(program_name())
    yield f'{mnemolog} add "I live in Zurich." --user alice --speaker Alice --wait'
    yield f'{mnemolog} search "Where does Alice live?" --user alice'
    yield f"{mnemolog} facts --user alice"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """The servers of a stack, its stages and tables; a server that cannot be reached has its error instead."""

    kafka: str
    postgres: str
    stages: "list[StageLag] | None" = None
    totals: "TableCounts | None" = None
    problems: "list[WorkerProblem] | None" = None
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

    async def ask(client: "AsyncMemoryClient") -> "Result":
        whole = await options.whole_turn_id(client, turn_id, user=user)
        if wait:
            return await client.wait(whole, timeout=wait, user_id=user, verbose=verbose, attempt=attempt)
        return await client.status(whole, user_id=user, verbose=verbose)

    end = options.show_answer(ask, show_status, tenant=tenant, as_json=as_json, full_ids=full_ids)
    options.exit_for_ends([end])


def _show_stack(*, as_json: bool) -> None:
    from mnemolog.admin import lags, look_at_tables  # noqa: PLC0415 - loads the drivers

    settings = discovered_settings()

    async def look() -> StackState:
        stages, kafka_error = await _or_error(lags(settings))
        found, postgres_error = await _or_error(look_at_tables(settings))
        totals, problems = found or (None, None)
        return StackState(
            kafka=settings.kafka or "",
            postgres=without_password(settings.postgres or ""),
            stages=stages,
            totals=totals,
            problems=problems,
            kafka_error=kafka_error,
            postgres_error=postgres_error,
        )

    state = run_async(look())
    print_result(state, show_stack, as_json=as_json)
    if state.kafka_error or state.postgres_error:
        raise typer.Exit(UNAVAILABLE)


async def _or_error(request: "Coroutine[Any, Any, R]") -> tuple[R | None, str | None]:
    from mnemolog.errors import ServerUnavailableError  # noqa: PLC0415 - loads pydantic

    try:
        return await request, None
    except ServerUnavailableError as error:
        return None, str(error)


def show_stack(state: StackState) -> None:
    print_text(f"Kafka     {state.kafka}: {state.kafka_error or 'reachable'}")
    print_text(f"Postgres  {state.postgres}: {state.postgres_error or 'reachable'}")
    if state.kafka_error or state.postgres_error:
        print_text("workers wait for a server that is away, and go on by themselves when it answers")
    for problem in state.problems or ():
        print_text(f"a worker says: {problem}")
    if state.stages is not None:
        rows = [(one.stage, one.workers or "none", one.lag) for one in state.stages]
        print_table("stages", ("stage", "workers", "records waiting"), rows)
        if not all(one.workers for one in state.stages):
            print_text(f"some stages do not run, and turns wait for them: `{program_name()} up` or `worker` runs them")
    if (totals := state.totals) is not None:
        print_text(f"{counted(totals.turns, 'turn')} received, {totals.in_flight} in flight")
        if totals.last_turn_at:
            print_text(
                f"the last one came {ago(totals.last_turn_at, datetime.now(UTC))} ({moment(totals.last_turn_at)})"
            )
        print_text(f"{counted(totals.active_facts, 'active fact')}, {totals.pending_facts} waiting for a confirmation")
        if totals.failed_turns:
            print_text(
                f"{counted(totals.failed_turns, 'turn')} failed or rejected: `{program_name()} failed` lists them"
            )
