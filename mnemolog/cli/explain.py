"""Commands that show where facts come from: history, explain, why-not, diff."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import typer

from mnemolog.cli import results
from mnemolog.cli.options import Query, query_command, time_option
from mnemolog.cli.read import TurnOwner


@query_command(results.show_history, scope={})
def history(*, fact_id: Annotated[UUID, typer.Argument(help="any version of the fact")]) -> Query:
    """Show a fact's versions, and every event that made or touched them, with the reasons."""
    return lambda client: client.history(fact_id)


@query_command(results.show_explanation, scope={})
def explain(*, fact_id: Annotated[UUID, typer.Argument(help="the fact")]) -> Query:
    """Explain a fact: where it comes from, how it was extracted and decided, and what happened to it since."""
    return lambda client: client.explain(fact_id)


@query_command(results.show_why_not, scope={})
def why_not(*, turn_id: Annotated[str, typer.Argument(help="the turn")], user: TurnOwner = None) -> Query:
    """Show which statements of a turn were not stored, and why."""
    return lambda client: client.why_not(turn_id, user_id=user)


@query_command(results.show_diff)
def diff(
    *,
    since: Annotated[datetime, time_option("--since", "a day, or ISO 8601; UTC unless it names a zone")],
    until: Annotated[datetime | None, time_option("--until", "the same; now unless given")] = None,
    axis: Annotated[
        Literal["believed", "true"],
        typer.Option("--axis", help="order changes by decision time (believed) or by the time they became true (true)"),
    ] = "believed",
) -> Query:
    """Show what changed between two times, and what was known at the end and not at the start."""
    return lambda client: client.diff(since, until, axis=axis)
