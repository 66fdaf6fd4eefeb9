"""Steps of a start on a terminal: each is named while it runs, and leaves a line with its seconds."""

import re

import pytest

from mnemolog.cli.servers import StartSteps


def test_on_a_terminal_running_steps_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with StartSteps() as steps:
        steps("starting Kafka", 0, 1)
        steps("fetching Kafka", 0, 46)
        steps("fetching Kafka", 45, 46)
        steps("fetching Kafka", 46, 46)
        steps("starting Kafka", 1, 1)
    shown = capsys.readouterr().err
    assert "\x1b" in shown
    assert re.search(r"^.*fetching Kafka: \d\.\d s\s*$", shown, re.MULTILINE)
    assert shown.index("starting Kafka") < shown.index("fetching Kafka: ") < shown.index("starting Kafka: ")
    assert "starting Kafka ..." not in shown


def test_elsewhere_each_step_has_two_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with StartSteps() as steps:
        steps("fetching Kafka", 0, 46)
        steps("fetching Kafka", 1, 46)
        steps("fetching Kafka", 46, 46)
    assert re.fullmatch(r"fetching Kafka \.\.\.\nfetching Kafka: \d\.\d s\n", capsys.readouterr().err)
