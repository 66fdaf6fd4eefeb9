"""Without a set-up of structlog, our logs are those of the standard library: an application decides what is shown."""

import logging
import subprocess
import sys

import pytest
import structlog

from mnemolog.common.logs import get_logger

PROGRAM = """
import logging, sys
from mnemolog.common.logs import get_logger
if "basic" in sys.argv:
    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
log = get_logger("mnemolog.x")
log.debug("looked", turn_id="50%")
log.info("done")
log.warning("limits_not_checked", error="away")
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True, timeout=60
    )


def test_an_application_that_asks_for_nothing_sees_warnings_alone() -> None:
    done = run()
    assert (done.stdout, done.stderr.splitlines()) == ("", ["limits_not_checked error='away'"])


def test_an_application_that_asks_sees_all_in_its_own_form() -> None:
    assert run("basic").stderr.splitlines() == [
        "DEBUG mnemolog.x looked turn_id='50%'",
        "INFO mnemolog.x done",
        "WARNING mnemolog.x limits_not_checked error='away'",
    ]


def test_with_structlog_set_up_the_events_are_its_own(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("mnemolog.x")
    with structlog.testing.capture_logs() as logs:
        log.debug("looked", turn_id="t1")
        log.error("broken")
    assert [(one["event"], one["log_level"]) for one in logs] == [
        ("looked", "debug"),
        ("broken", "error"),
    ]
    assert caplog.records == []
    structlog.reset_defaults()
    with caplog.at_level(logging.INFO, logger="mnemolog.x"):
        log.info("done", number=1)
    assert caplog.messages == ["done number=1"]
