"""Logs go to stderr as events; what local variables held is not in them."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from mnemolog.logs import LogFormat, configure_logs


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize("form", ["console", "json"])
def test_an_exception_is_logged_without_local_variables(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", form)
    log = structlog.get_logger()
    logging.getLogger("driver").warning("driver speaks")
    said = "I live in Bern."
    try:
        int(said[:0])
    except ValueError:
        log.exception("stage_failed", stage="extract")
    log.debug("too fine")
    captured = capsys.readouterr()
    assert captured.out == ""
    for words in ("stage_failed", "invalid literal", "Traceback", "driver speaks"):
        assert words in captured.err
    assert "Bern" not in captured.err
    assert "too fine" not in captured.err
