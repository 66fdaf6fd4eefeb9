"""Loggers of all packages: structlog where the process has set it up, else the logging of the standard library.

Structlog by itself writes everything to stdout, in the midst of what an application prints. A worker sets it up; in an
application the level and the form are those of its own logging: nothing below warning unless it asks.
"""

import logging
import sys
import time
from typing import Any, Final

NOISE_SECONDS: Final = 60.0


class Logger:
    """Takes a static name of the event, and fields.

    It chooses at each event, because a process may set structlog up after the import. A process that has not imported
    structlog has not set it up either: an application does not pay for its import.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._standard = logging.getLogger(name)

    def debug(self, event: str, **fields: Any) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        self._log(logging.ERROR, event, fields | {"exc_info": True})

    def _log(self, level: int, event: str, fields: dict[str, Any]) -> None:
        structlog = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            getattr(structlog.get_logger(self._name), logging.getLevelName(level).lower())(event, **fields)
        elif self._standard.isEnabledFor(level):
            error = fields.pop("exc_info", None)
            words = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
            self._standard.log(level, words, exc_info=error)


def get_logger(name: str) -> Logger:
    return Logger(name)


class _OneLine(logging.Handler):
    """Says once in a while what aiokafka says at every attempt to connect."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said_at = -NOISE_SECONDS
        self._unsaid = 0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now - self._said_at < NOISE_SECONDS:
            self._unsaid += 1
            return
        get_logger(__name__).warning("kafka_trouble", said=record.getMessage(), lines_before=self._unsaid)
        self._said_at, self._unsaid = now, 0


def limit_noise() -> None:
    """Let `_OneLine` speak for aiokafka, unless the application has set up that logger itself."""
    library = logging.getLogger("aiokafka")
    if not library.handlers and library.level == logging.NOTSET:
        library.addHandler(_OneLine())
        library.propagate = False
