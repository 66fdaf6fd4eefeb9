"""`mnemolog dry-run`: what a text would do to a memory, and what it would cost."""

import json
from typing import Annotated, Any

import typer

from mnemolog.cli import options
from mnemolog.cli.output import print_json
from mnemolog.cli.results import show_status
from mnemolog.cli.runtime import call_client


def dry_run(
    *,
    text: Annotated[str, typer.Argument(help="what a user says")],
    user: options.User = None,
    agent: options.Agent = None,
    app: options.App = None,
    run: options.Run = None,
    tenant: options.Tenant = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="when it was said: a day, or ISO 8601", show_default=False),
    ] = None,
    speaker: Annotated[
        str | None, typer.Option("--speaker", help="the name of who says it", show_default=False)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="as a raw store would take it: no model reads it")] = False,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", help="name=value, for this turn; several times", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell what a text would do and cost if it were stored now. Nothing is stored."""
    occurred_at = options.parse_time(at) if at else None
    overrides = dict(map(_override, override or []))
    result = call_client(
        lambda client: client.dry_run(
            text,
            user_id=user,
            agent_id=agent,
            app_id=app,
            run_id=run,
            occurred_at=occurred_at,
            speaker=speaker,
            infer=not raw,
            overrides=overrides,
        ),
        tenant=tenant,
    )
    print_json(result) if as_json else show_status(result)


def _override(text: str) -> tuple[str, Any]:
    """`conflict=0.5` is a number, `add_only=true` a truth value, and what is neither is text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"{text!r} is no override: write name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
