"""At 80 and at 200 columns: what is shown fits, and every id that the next command needs is there and is accepted."""

import re
from typing import Any

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

USER = "a-user-with-quite-a-long-name@example.org"
TURN = "conversation-0190a5d0-ac96-774b-bcce-b302099a8057/message-0000"
TURNS = [
    turn_json(f"{TURN}1", "I live in Berlin. I'm allergic to peanuts.", user=USER),
    turn_json(f"{TURN}2", "I moved from Berlin to Munich.", user=USER, at="2026-03-04T09:00:00+01:00"),
    turn_json(f"{TURN}3", "Actually, I'm not allergic to peanuts.", user=USER, at="2026-03-06T09:00:00+01:00"),
    turn_json(f"{TURN}4", f"{'A long note. ' * 30}", user=USER, infer=False),
]
COMMANDS = (
    *(("facts", "--user", USER), ("facts", "--user", USER, "--all"), ("facts", "--user", "*", "--full-ids")),
    *(("search", "Where is home?", "--user", USER), ("profile", "--user", USER), ("pending", "--user", USER)),
    *(("unresolved", "--user", USER), ("diff", "--since", "2020-01-01", "--user", USER)),
    *(("status", f"{TURN}2", "--verbose"), ("why-not", f"{TURN}3"), ("quality",), ("audit",), ("topics",)),
    *(("status",), ("failed",), ("dead-letters",)),
)


@pytest.fixture(scope="module")
def populated(shell: CommandLine) -> CommandLine:
    """The installation after the turns were published."""
    shell.json("publish", "-", "--wait", stdin="\n".join(TURNS))
    return shell


def fact(shell: CommandLine, text: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = shell.json("facts", "--user", USER, "--all")
    return next(one for one in found if text in one["text"])


def unfit(shown: str, width: int) -> list[str]:
    """The lines that are too wide; one with a command to type, or a name that is longer than a line, may be."""
    return [line for line in shown.splitlines() if len(line) > width and "mnemolog " not in line and TURN not in line]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_shown_fits(populated: CommandLine, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        done = populated.run(*command)
        assert (done.code, done.stderr) == (0, ""), done
        assert unfit(done.stdout, width) == []
        assert "…" not in done.stdout


@pytest.mark.parametrize("width", [80, 200])
def test_every_id_for_the_next_command_is_shown_and_accepted(
    populated: CommandLine, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    munich = fact(populated, "Munich")
    assert munich["fact_id"] in populated.run("facts", "--user", USER, "--full-ids").stdout
    assert munich["fact_id"] not in populated.run("facts", "--user", USER).stdout
    for command in (("facts", "--user", USER), ("search", "home", "--user", USER), ("profile", "--user", USER)):
        shown = populated.run(*command).stdout
        short = re.search(rf"\b{munich['fact_id'][:8]}\S*", shown)
        assert short, shown
        assert munich["fact_id"] in populated.run("explain", short[0], "--json").stdout
    history = populated.run("history", munich["fact_id"][:8])
    assert "2 versions" in history.stdout
    assert "2 events" in history.stdout
    assert f"source {TURN}2" in " ".join(history.stdout.split())
    for event in populated.json("history", munich["fact_id"])["events"]:
        assert event["event_id"][:8] in history.stdout


def test_the_next_commands_work_as_they_stand(populated: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = populated.run("explain", fact(populated, "Munich")["fact_id"][:8]).stdout
    lines = [line.partition("mnemolog ")[2] for line in shown.splitlines() if "mnemolog " in line]
    assert [line.split()[0] for line in lines] == ["history", "correct", "undo"]
    assert populated.run(*lines[0].split()).code == 0
    undone = populated.json(*lines[2].split())
    assert undone["status"] == "done"
    assert populated.json("undo", "--turn", undone["turn_id"], "--user", USER)["status"] == "done"
    shown = populated.run("pending", "--user", USER).stdout
    (reject,) = [line.partition("mnemolog ")[2] for line in shown.splitlines() if "mnemolog reject" in line]
    hits = populated.json("search", "peanut allergy", "--user", USER)["hits"]
    assert {hit["fact"]["status"] for hit in hits} >= {"active", "pending_confirmation"}
    assert populated.json(*reject.split())["status"] == "done"


def test_the_settings_names_are_whole(populated: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [row["variable"] for row in populated.json("settings")]
    shown = populated.run("settings").stdout
    assert [name for name in names if not re.search(rf"^ *{name}\b", shown, re.MULTILINE)] == []
    assert unfit(shown, 80) == []
