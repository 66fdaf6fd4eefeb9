"""The command that tells how good decisions were: quality."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemolog.cli import options
from mnemolog.cli.output import cell, print_json, print_table, stdout
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.projections.queries.quality import DecisionQuality


def quality(
    *,
    since: Annotated[
        str | None, typer.Option("--since", help="a day, or a time; 30 days ago unless given", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="the same; now unless given", show_default=False)] = None,
    user: options.User = "*",
    agent: options.Agent = "*",
    app: options.App = "*",
    run: options.Run = "*",
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how often memory was overwritten, how often wrongly, and what waits for somebody's word."""
    begin, end = (options.parse_time(given) if given else None for given in (since, until))
    figures = call_client(
        lambda client: client.quality(begin, end, user_id=user, agent_id=agent, app_id=app, run_id=run), tenant=tenant
    )
    print_json(figures) if as_json else show_quality(figures)


def show_quality(figures: "DecisionQuality") -> None:
    rows = [
        (one.model, one.prompt_version, one.event, one.overwrites, one.undone, one.rejected, one.corrected)
        for one in figures.overwrites
    ]
    print_table(
        f"overwrites by models, {cell(figures.wrong_overwrite_rate) or 'none'} of them wrong",
        ("model", "prompt", "event", "number", "undone", "rejected", "corrected"),
        rows,
    )
    held = figures.held
    stdout().print(
        f"held back: {held.held}, confirmed {held.confirmed}, rejected {held.rejected}, overtaken {held.overtaken} "
        f"(resolution rate {cell(held.resolution_rate) or 'none'}); "
        f"{held.open} wait now, the oldest for {held.oldest_seconds:.0f} s"
    )
    stdout().print(f"unresolved: {figures.unresolved}; decisions on what had changed (stale): {figures.stale}")
