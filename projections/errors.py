"""Errors of the tables, of queries and of a rebuild; each says what to do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.errors import InvalidArgumentError, MnemologError
from mnemolog.schemas.scope import Scope


class ProjectionError(MnemologError):
    """Base of every error of this package."""


class MigrationRefusedError(ProjectionError):
    """This program cannot migrate the database."""


class SchemaInUseError(ProjectionError):
    """Views or functions get other columns or parameters, and objects of others need them as they are."""

    def __init__(self, dependents: Sequence[str]) -> None:
        super().__init__(
            "views or functions get other columns or parameters, and what others have made needs them as they are: "
            f"drop {', '.join(dependents)}, migrate, and create it again in another schema"
        )


class MemorySchemaRefusedError(ProjectionError):
    """The database has a schema `memory` of another application."""

    def __init__(self, content: Sequence[str]) -> None:
        super().__init__(
            f"the database has a schema memory of another application, with {', '.join(content)}: "
            "rename that schema, or use another database"
        )


class PartitionError(ProjectionError):
    """One partition of the log cannot be folded on; others can."""

    def __init__(self, partition: int, message: str) -> None:
        super().__init__(message)
        self.partition = partition


class LogGapError(PartitionError):
    """Records of the log are missing before the ones at hand: folding on would lose them silently."""

    def __init__(self, partition: int, expected: int, found: int) -> None:
        super().__init__(
            partition,
            f"memory_events partition {partition} continues at offset {found}, the tables expect {expected}: "
            f"read again from offset {expected}; if the topic no longer holds it, restore the topic "
            "or rebuild the projections",
        )


class LogChangedError(PartitionError):
    """The log has another record where the tables have folded one: it was truncated or recreated."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(
            partition,
            f"memory_events partition {partition} has another record at offset {offset} than the one that the tables "
            "were made from, so its new commits would be taken for repeats: restore the topic, or rebuild the "
            "projections from it as it is",
        )


class StatementTimeoutError(ProjectionError):
    """A statement is stopped by the statement timeout again and again, while others are not."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"the operation {operation} took longer than the statement timeout in each attempt, while others did not: "
            "raise MNEMOLOG_POSTGRES_STATEMENT_TIMEOUT"
        )


class CommitTimeoutError(PartitionError):
    """A commit of the log cannot be written within the statement timeout. It is not skipped: the projection stops."""

    def __init__(self, partition: int, offset: int, source_id: str) -> None:
        super().__init__(
            partition,
            f"the commit of {source_id} (partition {partition}, offset {offset} of memory_events) could not be written "
            "within the statement timeout: raise MNEMOLOG_POSTGRES_STATEMENT_TIMEOUT, or see why Postgres is slow; "
            "the projection tries again",
        )


class SchemaMissingError(ProjectionError):
    """The database is not migrated."""


_SHOWN_CANDIDATES: Final = 5
_MOST_ROWS: Final = 2**63 - 1


class QueryError(InvalidArgumentError, ProjectionError):
    """The arguments of a query are not valid."""


class UnknownTurnError(ProjectionError, LookupError):
    """No such turn or command is in the tables, at least not yet."""

    def __init__(self, tenant: str, turn_id: str) -> None:
        super().__init__(
            f"turn {turn_id!r:.300} is not known in tenant {tenant!r}: check the id and the tenant; "
            "a turn that was published a moment ago appears once the journal has read it, a command once it has its end"
        )


class AmbiguousTurnError(QueryError):
    """Several owners of the tenant have a turn of this id."""

    def __init__(self, turn_id: str, owners: list[str]) -> None:
        named = ", ".join(owners[:5])
        super().__init__(
            f"turn {turn_id!r} is known of {len(owners)} owners ({named}): give the user_id of the one meant, or what "
            "publishing it returned"
        )


class AmbiguousIdError(QueryError):
    """Several ids begin so, or several have this name; `candidates` are some of them, each with what it stands for."""

    def __init__(self, kind: str, given: str, candidates: Sequence[tuple[str, str]], *, is_name: bool = False) -> None:
        named = ", ".join(f"{one} ({text:.40})" for one, text in candidates[:_SHOWN_CANDIDATES])
        more = ", ..." if len(candidates) > _SHOWN_CANDIDATES else ""
        if is_name:
            wanted = f"more than one {kind} has the name {given!r:.80}: give the id"
        else:
            wanted = f"several {kind} ids begin with {given!r}: give more characters"
        super().__init__(f"{wanted} of the one meant: {named}{more}")
        self.candidates = tuple(candidates)


class UnknownFactError(ProjectionError, LookupError):
    """No such fact is in this tenant, or not in the scope that was named; then `scope` is the one that it is in."""

    def __init__(self, tenant: str, fact_id: UUID | str, *, within: str = "", scope: Scope | None = None) -> None:
        if scope is None:
            super().__init__(f"fact {fact_id} is not known in tenant {tenant!r}: check the id and the tenant")
        else:
            super().__init__(f"fact {fact_id} is not of {within}, but of {scope_in_words(scope)}: check whose is meant")
        self.scope = scope


class UnknownEntityError(ProjectionError, LookupError):
    """No entity of this name or id is in the scope."""

    def __init__(self, given: str) -> None:
        super().__init__(f"no entity {given!r:.80} is known in this scope: `entities` lists those that are")


class UnknownEventError(ProjectionError, LookupError):
    """No such event is in this tenant and scope."""

    def __init__(self, tenant: str, event_id: UUID | str) -> None:
        super().__init__(
            f"event {event_id} is not known in tenant {tenant!r} and this scope: check the id; "
            "`history` and `explain` of a fact list its events"
        )


def scope_in_words(scope: Scope) -> str:
    """The ids that a scope sets, but for the tenant: "user_id 'alice', agent_id 'bot'"."""
    return ", ".join(f"{name} {value!r}" for name, value in scope.columns.items() if value and name != "tenant")


def check_id_text(**ids: object) -> None:
    """Raise `QueryError` for an id that no stored one can be: not text, empty, with U+0000 or a lone surrogate."""
    for name, value in ids.items():
        if not isinstance(value, str):
            raise QueryError(f"{name} must be text, not {type(value).__name__}")
        if not value.strip() or "\x00" in value:
            raise QueryError(f"{name} is empty or holds U+0000, which no stored id does")
        check_unicode(value)


def check_limit(limit: int | None) -> None:
    """Raise `QueryError` for a page without room, or of more rows than Postgres counts."""
    if limit is not None and not 1 <= limit <= _MOST_ROWS:
        raise QueryError(f"limit is {limit}: give 1 or more, at most {_MOST_ROWS}, or leave it out for all")


def check_unicode(text: str) -> None:
    """Raise `QueryError` for an unpaired surrogate, which bytes that are not UTF-8 become on a command line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"character {error.start} of {text!a:.80} is an unpaired surrogate (invalid UTF-8): give text in UTF-8"
        ) from error


def check_zones(**times: datetime | None) -> None:
    """Raise `QueryError` for a time without a zone: it would be another instant on another machine."""
    for name, time in times.items():
        if time is not None and time.tzinfo is None:
            raise QueryError(f"{name} needs a zone, for example 2026-01-31T00:00:00+00:00")


def check_interval(since: datetime, until: datetime) -> None:
    """Raise `QueryError` for a time without a zone, or an end before the beginning."""
    check_zones(since=since, until=until)
    if since > until:
        raise QueryError(f"since ({since}) is after until ({until}): give an earlier since, or a later until")


class RebuildError(ProjectionError):
    """The rebuild stopped; the live tables are as they were."""


class RebuildRunningError(RebuildError):
    """Another rebuild of this database is at work."""

    def __init__(self) -> None:
        super().__init__("another rebuild of this database is running: wait until it has ended, then start again")


class LogTooShortError(RebuildError):
    """The log ends before what the live tables already hold."""

    def __init__(self, partition: int, end: int, live: int) -> None:
        super().__init__(
            f"partition {partition} of the log ends at offset {end}, the live tables hold it up to {live}: "
            "this log is not the one that they were made from, or it has lost records; restore it first"
        )


class LogCopyDamagedError(RebuildError):
    """The copy of the log in the live tables is not what the log gives. A rebuild then writes it anew."""

    def __init__(self, table: str, partition: int, start: int, stop: int) -> None:
        super().__init__(
            f"{table} has other rows than the log gives for partition {partition}, offsets {start} to {stop - 1}: "
            "rebuild with --full"
        )


class LogUnreadableError(RebuildError):
    """The log's server did not answer in time."""


class SwapRefusedError(RebuildError):
    """Someone else's transaction is in the way of a lock and stays there."""

    def __init__(self) -> None:
        super().__init__(
            "a transaction of a projector or a reader stays open and keeps the tables from being swapped or dropped: "
            "end it (pg_stat_activity shows it), then start the rebuild again"
        )


class ForeignObjectsError(RebuildError):
    """Objects that Mnemolog did not make are in the live schema or hang on its tables."""

    def __init__(self, names: Sequence[str]) -> None:
        named = ", ".join(names[:10])
        super().__init__(
            f"{len(names)} objects that Mnemolog did not make are in its schema or hang on its tables ({named}): "
            "a swap would lose them or leave them with the old tables; drop them, rebuild, and create them again"
        )
