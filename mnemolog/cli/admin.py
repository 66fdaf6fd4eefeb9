"""Commands of operators: rebuild, audit, migrate, topics."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import ProgressBars, cell, escape, print_result, print_table, stdout
from mnemolog.cli.runtime import discovered_settings, run_async

if TYPE_CHECKING:
    from mnemolog.projections.queries.audit import Audit
    from mnemolog.projections.rebuild.rebuild import RebuildReport
    from mnemolog.streams.kafka.admin import TopicState

_DIGEST_CHARACTERS = 12


def audit(*, as_json: options.AsJson = False) -> None:
    """Prove that no turn was lost: accepted = ended + in flight. Exit code 1 if that does not hold."""
    from mnemolog.admin import audit as audit_tables  # noqa: PLC0415 - loads the drivers

    report = run_async(audit_tables(discovered_settings()))
    print_result({"ok": report.ok, "audit": report}, lambda _: show_audit(report), as_json=as_json)
    if not report.ok:
        raise typer.Exit(FAILED)


def rebuild(
    *,
    source: Annotated[
        Literal["kafka", "table"], typer.Option("--from", help="the log to read: the topic, or its copy in the tables")
    ] = "kafka",
    verify_only: Annotated[bool, typer.Option("--verify-only", help="compare only")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Rebuild all tables from the log, beside the live ones, compare both, and swap.

    No model is called. Exit code 1 where a table differed.
    """
    from mnemolog.admin import rebuild as rebuild_tables  # noqa: PLC0415 - loads the drivers

    with ProgressBars() as progress:
        report = run_async(rebuild_tables(discovered_settings(), source, verify_only=verify_only, on_progress=progress))
    print_result({"equal": report.equal, "report": report}, lambda _: show_rebuild(report), as_json=as_json)
    if not report.equal:
        raise typer.Exit(FAILED)


def show_rebuild(report: "RebuildReport") -> None:
    """Show both digests of every table."""
    rows = [
        (
            one.table,
            one.live_rows,
            one.live_digest[:_DIGEST_CHARACTERS],
            one.rebuilt_rows,
            one.rebuilt_digest[:_DIGEST_CHARACTERS],
            "equal" if one.equal else f"{one.differing} rows differ",
        )
        for one in report.tables
    ]
    print_table("live and rebuilt", ("table", "rows", "live", "rows", "rebuilt", ""), rows)


def show_audit(report: "Audit") -> None:
    show = stdout().print
    show(f"{report.accepted} turns accepted = {sum(report.ends.values())} ended + {report.in_flight} in flight")
    show("ends: " + (", ".join(f"{count} {end}" for end, count in sorted(report.ends.items())) or "none"))
    for finding in report.findings:
        show(f"[red]{finding.severity}:[/] {escape(finding.what)}: {escape(finding.advice)}")
    show("[green]audit passed[/]" if report.ok else "[red]audit failed[/]")


def migrate(*, as_json: options.AsJson = False) -> None:
    """Bring the tables to the newest version; does nothing if they are current."""
    from mnemolog.admin import migrate_tables  # noqa: PLC0415 - loads the drivers

    run_async(migrate_tables(discovered_settings()))
    print_result({"migrated": True}, lambda _: stdout().print("the tables are up to date"), as_json=as_json)


def topics(
    *,
    create: Annotated[bool, typer.Option("--create", help="create those that are missing")] = False,
    forward_commands: Annotated[
        bool,
        typer.Option("--forward-commands", help="append unread commands of memory_commands to conversation_turns"),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the topics as declared and as the broker has them. Exit code 1 where one is missing."""
    from mnemolog.admin import create_topics, topic_states  # noqa: PLC0415 - loads the drivers

    settings = discovered_settings()
    if create or forward_commands:
        run_async(create_topics(settings, forward_commands=forward_commands))
    states = run_async(topic_states(settings))
    print_result(states, _show_topics, as_json=as_json)
    if any(state.partitions == 0 for state in states):
        raise typer.Exit(FAILED)


def _show_topics(states: "list[TopicState]") -> None:
    rows = [
        (
            state.name,
            state.partitions or "missing",
            sum(state.end_offsets.values()),
            cell(state.topic.retention) or "for ever",
            ", ".join(state.topic.producers),
            ", ".join(state.topic.consumers),
        )
        for state in states
    ]
    columns = ("topic", "partitions", "records", "retention", "producers", "consumers")
    print_table(f"{len(rows)} topics", columns, rows)
