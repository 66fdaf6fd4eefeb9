"""The demonstration runs to its end on servers of its own."""

import json
from typing import Any

import pytest

from tests.support.harnesses.command_line import CommandLine

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]


def test_the_demo_shows_the_whole_way(empty_shell: CommandLine) -> None:
    done = empty_shell.run("demo", "--json", seconds=300)
    assert done.code == 0, done.stderr
    steps: dict[int, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        document = json.loads(line)
        steps.setdefault(document["step"], []).append(document["result"])
    assert steps[2][0]["acknowledged"] == len(steps[3]) == 42
    assert {end["status"] for end in steps[3]} == {"facts", "no_facts", "failed"}
    assert [end["memories"][0]["event"] for end in steps[6][1:]] == ["pending_confirmed"]
    assert [end["memories"][0]["action"] for end in steps[7][1:]] == ["fact_replaced", "decision_undone"]
    assert steps[9][0]["reason"] == "not_a_record"
    assert [report["swapped"] for step in (11, 12) for report in steps[step]] == [True, True]
    assert steps[13][0]["in_flight"] == 0
    assert list(empty_shell.folder.iterdir()) == []
