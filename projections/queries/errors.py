"""Errors of queries, each of which says what to do, and the checks that raise them."""

from datetime import datetime
from uuid import UUID

from mnemolog.projections.errors import ProjectionError


class QueryError(ProjectionError, ValueError):
    """The arguments of a query are not valid."""


class UnknownTurnError(ProjectionError, LookupError):
    """No such turn or command is in the tables, at least not yet."""

    def __init__(self, tenant: str, turn_id: str) -> None:
        super().__init__(
            f"turn {turn_id!r} is not known in tenant {tenant!r}: check the id and the tenant; "
            "a turn that was published a moment ago appears once the journal has read it, a command once it has its end"
        )
        self.tenant = tenant
        self.turn_id = turn_id


class AmbiguousTurnError(QueryError):
    """Several owners of the tenant have a turn of this id."""

    def __init__(self, turn_id: str, owners: list[str]) -> None:
        named = ", ".join(owners[:5])
        super().__init__(
            f"turn {turn_id!r} is known of {len(owners)} owners ({named}): give the user_id of the one meant"
        )
        self.turn_id = turn_id
        self.owners = owners


class UnknownFactError(ProjectionError, LookupError):
    """No such fact is in this tenant."""

    def __init__(self, tenant: str, fact_id: UUID) -> None:
        super().__init__(f"fact {fact_id} is not known in tenant {tenant!r}: check the id and the tenant")
        self.tenant = tenant
        self.fact_id = fact_id


def check_unicode(text: str) -> None:
    """Raise `QueryError` for an unpaired surrogate, which bytes that are not UTF-8 become on a command line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"character {error.start} of {text!a:.80} is an unpaired surrogate (invalid UTF-8): give text in UTF-8"
        ) from error


def check_zones(**times: datetime) -> None:
    """Raise `QueryError` for a time without a zone: it would be another instant on another machine."""
    for name, time in times.items():
        if time.tzinfo is None:
            raise QueryError(f"{name} needs a zone, for example 2026-01-31T00:00:00+00:00")


def check_interval(since: datetime, until: datetime) -> None:
    """Raise `QueryError` for a time without a zone, or an end before the beginning."""
    check_zones(since=since, until=until)
    if since > until:
        raise QueryError(f"since ({since}) is after until ({until}): swap them")
