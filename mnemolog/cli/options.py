"""The options that many commands share."""

from datetime import UTC, datetime
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="write JSON instead of tables")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="also how it came about, and what each stage cost")]
User = Annotated[str | None, typer.Option("--user", "-u", help="whose memory; '*' for any", show_default=False)]
Agent = Annotated[str | None, typer.Option("--agent", help="of which agent; '*' for any", show_default=False)]
App = Annotated[str | None, typer.Option("--app", help="of which app; '*' for any", show_default=False)]
Run = Annotated[str | None, typer.Option("--run", help="of which run; '*' for any", show_default=False)]
Tenant = Annotated[str | None, typer.Option("--tenant", help="MNEMOLOG_TENANT unless given", show_default=False)]
TurnOwner = Annotated[
    str | None, typer.Option("--user", "-u", help="needed where several users have this turn id", show_default=False)
]


def parse_time(text: str) -> datetime:
    """Read a time as people write it: a day, or ISO 8601; UTC where it names no zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no time: write 2026-01-31 or 2026-01-31T09:30:00+01:00") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
