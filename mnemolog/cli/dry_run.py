"""`mnemolog dry-run`: what storing a text would do and cost."""

import json
from datetime import datetime
from typing import Annotated, Any

import typer

from mnemolog.cli.options import EXACT_SCOPE, Query, query_command, time_option
from mnemolog.cli.results import show_status


@query_command(show_status, scope=EXACT_SCOPE)
def dry_run(
    *,
    text: Annotated[str, typer.Argument(help="what a user says")],
    at: Annotated[datetime | None, time_option("--at", "when it was said: a day, or ISO 8601")] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="the user's name", show_default=False)] = None,
    raw: Annotated[bool, typer.Option("--raw", help="store the text as it is, without a model")] = False,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", help="name=value, for this turn; several times", show_default=False),
    ] = None,
) -> Query:
    """Show what storing a text would do and cost. Nothing is stored."""
    overrides = dict(map(_override, override or []))
    return lambda client: client.dry_run(text, occurred_at=at, speaker=speaker, infer=not raw, overrides=overrides)


def _override(text: str) -> tuple[str, Any]:
    """`conflict=0.5` is a number, `add_only=true` a truth value, and what is neither is text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"{text!r} is not a valid override: write name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
