"""Errors of the projections; each says what to do."""

from collections.abc import Sequence

from mnemolog.schemas.errors import MnemologError


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
