"""Errors that stop a rebuild; each says what to do."""

from mnemolog.projections.errors import ProjectionError


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


class DependentViewsError(RebuildError):
    """Views of other schemas depend on the live tables."""

    def __init__(self, views: list[str]) -> None:
        named = ", ".join(views[:5])
        super().__init__(
            f"{len(views)} views depend on the live tables and would still show the old ones ({named}): "
            "drop them, rebuild, and create them again"
        )
