"""Logs as events on stderr: ours through structlog, the drivers' warnings in the same form."""

import logging
import sys
from typing import Literal

import structlog

from mnemolog.common.logs import limit_noise

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json"]


def configure_logs(level: LogLevel, log_format: LogFormat) -> None:
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
    ]
    # Plain tracebacks: others show local variables, which hold texts of users.
    plain = structlog.dev.plain_traceback
    renderer: list[structlog.typing.Processor] = [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    ]
    if log_format == "json":
        renderer = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    limit_noise()
