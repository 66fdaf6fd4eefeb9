"""Commands that run servers and stages: up, worker, demo."""

import os
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.output import print_result, print_text, program_name, stderr, stdout
from mnemolog.cli.runtime import cli_settings, discovered_settings, run_and_exit, stop_on_signals
from mnemolog.cli.start_steps import StartSteps
from mnemolog.extras import Extra, require_extras

if TYPE_CHECKING:
    from mnemolog.client.discovery import ServerAddresses
    from mnemolog.settings import Settings


def up(
    *,
    data: Annotated[Path | None, typer.Option(help="data folder; MNEMOLOG_DATA_DIR unless given")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run Kafka, Postgres (unless MNEMOLOG_KAFKA / MNEMOLOG_POSTGRES are set) and all stages, until Ctrl-C."""
    settings = cli_settings(data_dir=data)
    _require_extras(settings, *(() if settings.kafka and settings.postgres else ("embedded",)))

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
    _require_extras(cli_settings(), stages=stages)
    from mnemolog.server_waits import wait_for_servers  # noqa: PLC0415 - loads every driver
    from mnemolog.streams.runtime.wiring import ALL_STAGES  # noqa: PLC0415 - the same
    from mnemolog.streams.runtime.worker import WorkerReport, run_worker  # noqa: PLC0415 - the same

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


def demo(
    *,
    keep: Annotated[
        Path | None, typer.Option(help="use this data folder and leave it, instead of a temporary one")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the demonstration: a conversation becomes facts, which are searched, explained and rebuilt."""
    _require_extras(cli_settings(), "embedded")
    from mnemolog.cli.demo.runner import run_demo  # noqa: PLC0415 - loads every driver

    run_and_exit(run_demo(keep, as_json=as_json))


def _require_extras(settings: "Settings", *extras: Extra, stages: list[str] | None = None) -> None:
    """Name all missing extras at once, those of the providers that `stages` ask among them."""
    asked = set(stages or ["resolve"])  # which asks both models
    chat = [settings.provider] if asked & {"extract", "resolve"} else []
    embedder = [settings.embedding_provider or settings.provider] if asked & {"embed", "resolve"} else []
    require_extras("server", *extras, *chat, *embedder)


def _configure_logs(settings: "Settings", *, quiet: bool = False) -> None:
    from mnemolog.logs import configure_logs  # noqa: PLC0415 - only these commands log

    level = "warning" if quiet and "log_level" not in settings.model_fields_set else settings.log_level
    configure_logs(level, settings.log_format)


def _show_addresses(servers: "ServerAddresses", settings: "Settings") -> None:
    from mnemolog.texts import OFFLINE_NOTICE  # noqa: PLC0415 - loads the results of queries

    show = stdout().print
    show("\n[bold green]Mnemolog is up.[/] Ctrl-C stops it.\n")
    show(f"  Kafka     {servers.kafka}   topic {servers.topic_prefix}conversation_turns", markup=False)
    show(f"  Postgres  {servers.postgres}", markup=False, soft_wrap=True)
    show(f"  Metrics   {servers.metrics_url}/metrics", markup=False)
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
