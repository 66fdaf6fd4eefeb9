"""The steps of the demonstration, on a stack of their own; `test_screens.py` runs the command `demo`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mnemolog.cli.demo import Demo
from mnemolog.client.discovery import ServerAddresses
from mnemolog.settings import Settings
from mnemolog.texts import OFFLINE_NOTICE
from scripts.screens import OTHERS
from tests.support.harnesses.command_line import CommandLine, server_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]


async def test_the_demo_shows_the_whole_way(
    bootstrap: str, database_without_tables: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = CommandLine(folder=tmp_path, settings=server_settings(bootstrap, database_without_tables))
    settings = Settings.model_validate({name.lower(): value for name, value in shell.settings.items()})
    with shell.start("up") as up:
        servers = ServerAddresses.model_validate(up.ready_message())
        await Demo(settings, servers, as_json=True).run()
        assert up.terminate() == 0
    steps: dict[int, list[Any]] = {}
    for line in capsys.readouterr().out.splitlines():
        document = json.loads(line)
        steps.setdefault(document["step"], []).append(document["result"])
    assert list(steps) == list(range(1, 18))
    assert steps[2][0]["acknowledged"] == len(steps[3]) == 42
    assert {end["status"] for end in steps[3]} == {"facts", "no_facts", "failed"}
    assert [end["memories"][0]["event"] for end in steps[6][1:]] == ["pending_confirmed"]
    assert [end["memories"][0]["action"] for end in steps[7][1:]] == ["fact_replaced", "decision_undone"]
    assert steps[9][0]["reason"] == "not_a_record"
    names = [one["name"] for one in steps[11][0]]
    assert (names.count("Tom"), names.count("Ana Keller")) == (2, 1)
    assert {name["name"] for name in steps[12][0]["names"]} >= {"Ana", "Ana Keller"}
    assert {one["object"]: one["is_active"] for one in steps[13][0] if one["predicate"] == "employer"} == {
        "Siemens": False,
        "Bosch": True,
    }
    assert [report["swapped"] for step in (15, 16) for report in steps[step]] == [True, True]
    assert steps[17][0]["in_flight"] == 0


def test_people_see_what_to_do_next() -> None:
    """The demonstration that `test_screens.py` compares with what `demo` prints, in 80 columns."""
    shown = OTHERS.read_text(encoding="utf-8").partition("$ mnemolog demo\n")[2]
    lines = [line for line in shown.splitlines() if not re.search(r"^[a-zA-Z ]+( \.\.\.|: \d+\.\d s)$", line)]
    assert [line for line in lines if line != line.rstrip()] == []
    assert len(lines) < 160
    headings = [line for line in lines if re.match(r"\d+\. ", line)]
    assert [int(line.split(".")[0]) for line in headings] == list(range(1, 18))
    following = [lines[lines.index(heading) + 1] for heading in headings if "changed today" not in heading]
    assert all(line.startswith("  ") and line.strip() for line in following)
    uncertain = re.compile(
        r"\b1 (record|turn|fact|table|row)s\b|\b0 \w+|nothing is believed|None|[0-9a-f]{8}-[0-9a-f]{4}|\d\.\d{6}"
    )
    assert [line for line in lines if uncertain.search(re.sub("0 in flight|in no facts", "", line))] == []
    assert " ".join(OFFLINE_NOTICE.split()) in " ".join(shown.split())
    assert lines[-1].endswith("mnemolog demo --keep demo-data")
