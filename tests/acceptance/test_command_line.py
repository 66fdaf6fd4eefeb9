"""Publishing and commands that read, explain and rebuild, on one running installation; `test_screens.py` has more."""

import json
import socket
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json
from tests.support.polling import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

MIRA = ("--user", "mira")
TURNS = [
    turn_json("cl-1", "I live in Berlin. I'm allergic to peanuts."),
    turn_json("cl-2", "I moved from Berlin to Munich!", at="2026-03-04T09:00:00+01:00"),
    turn_json("cl-3", "I'm allergic to peanuts.", at="2026-03-05T09:00:00+01:00"),
    turn_json("cl-4", "Actually, I'm not allergic to peanuts.", at="2026-03-06T09:00:00+01:00"),
    turn_json("cl-5", "Contract until 2027.", infer=False),
    turn_json("cl-6", "Thank you!"),
]


@pytest.fixture(scope="module")
def populated(shell: CommandLine) -> CommandLine:
    """The installation after the turns were published."""
    tally = shell.json("publish", "-", "--wait", stdin="\n".join(TURNS))
    assert (tally["read"], tally["acknowledged"], tally["ends"]) == (6, 6, {"stored": 5, "nothing_stored": 1})
    return shell


def texts(facts: list[dict[str, str]]) -> set[str]:
    return {fact["text"] for fact in facts}


def test_status_tells_what_a_turn_did_and_verbose_its_costs_and_decisions(populated: CommandLine) -> None:
    plain, verbose = populated.json("status", "cl-2", *MIRA), populated.json("status", "cl-2", "--verbose")
    assert (plain["status"], plain["success"], len(plain["updated"])) == ("stored", True, 1)
    assert [memory["event"] for memory in plain["changes"]] == ["fact_replaced"]
    assert populated.json("status", "cl-3")["skipped"] == 1
    assert plain["trace"] is None
    (decided,) = verbose["trace"]["decisions"]
    assert (decided["event"], decided["by"], decided["verdict"]) == ("fact_replaced", "rule", "REPLACE")
    assert "Mira lives in Berlin." in texts(decided["retrieved"])
    assert [stage["stage"] for stage in verbose["stages"]] == ["extract", "embed", "match", "resolve"]
    assert verbose["tokens"]["total"] == verbose["tokens"]["input"] + verbose["tokens"]["output"]
    shown = populated.run("status", "cl-2", "--verbose").stdout
    assert all(title in shown for title in ("1 added", "cost by stage", "1 decision"))


def test_commands_that_read_answer_in_json(populated: CommandLine) -> None:
    now, every = (texts(populated.json("facts", *MIRA, *flags)) for flags in ((), ("--all",)))
    assert every - now >= {"Mira lives in Berlin."}
    (munich,) = (one for one in populated.json("facts", *MIRA) if one["text"] == "Mira lives in Munich.")
    history = populated.json("history", munich["fact_id"])
    assert [(version["text"], version["status"]) for version in history["versions"]] == [
        ("Mira lives in Berlin.", "superseded"),
        ("Mira lives in Munich.", "active"),
    ]
    explained = populated.json("explain", munich["fact_id"])
    assert explained["source"]["messages"][0]["content"] == "I moved from Berlin to Munich!"
    (moved,) = populated.json("diff", "--since", "2026-03-04", "--until", "2026-03-05", "--axis", "true", *MIRA)[
        "replaced"
    ]
    assert (moved["text"], moved["old"][0]["text"]) == ("Mira lives in Munich.", "Mira lives in Berlin.")
    then = texts(populated.json("facts", "--believed", "2100-01-01", "--true", "2026-03-03", *MIRA))
    assert then - now == {"Mira lives in Berlin."}
    asked = ("search", "quantum chromodynamics", *MIRA, "--threshold")
    assert populated.run(*asked, "0.9").stdout == "nothing known is near enough to this question\n"
    assert populated.json(*asked, "0")["hits"]
    assert populated.json("facts", *MIRA, "--tenant", "other") == populated.json("unresolved", *MIRA) == []


async def test_a_dry_run_says_within_seconds_what_it_waits_for(populated: CommandLine, tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listened at: it refuses connections
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        away = CommandLine(folder=tmp_path, settings={**populated.settings, "PROVIDER": "openai", "BASE_URL": address})
        with away.start("dry-run", "I moved to Ulm.", *MIRA) as running:
            await eventually(lambda: "waiting for" in running.log.read_text(), timeout=60)
            said = " ".join(running.log.read_text().split())
    assert f"waiting for the model's server ({address}): no server answers, or its answers break off: start it" in said


def test_a_rebuild_gives_equal_tables_and_the_audit_balances(populated: CommandLine) -> None:
    before = populated.json("facts", *MIRA, "--all")
    verified = populated.json("rebuild", "--from", "kafka", "--verify-only")
    assert (verified["equal"], verified["report"]["swapped"]) == (True, False)
    report = populated.json("rebuild", "--from", "table")["report"]
    assert report["swapped"]
    assert all(table["live_digest"] == table["rebuilt_digest"] for table in report["tables"])
    assert {table["table"] for table in report["tables"] if table["kept"]} == {"commits", "memory_events"}
    full = populated.json("rebuild", "--from", "kafka", "--full", "--verify-only")["report"]
    assert not any(table["kept"] for table in full["tables"])
    assert populated.json("facts", *MIRA, "--all") == before
    assert populated.json("audit")["ok"]


def test_publishing_the_file_again_from_a_process_of_its_own_changes_nothing(populated: CommandLine) -> None:
    """The other tests call the program within this process."""
    before = populated.json("facts", *MIRA, "--all")
    program = CommandLine(folder=populated.folder, settings=populated.settings)
    done = program.run("publish", "-", "--json", "--wait", stdin="\n".join(TURNS))
    assert (done.code, done.json["acknowledged"], done.stderr) == (0, len(TURNS), "")
    assert populated.json("facts", *MIRA, "--all") == before
    unknown = program.run("status", "cl-never")
    assert (unknown.code, unknown.stdout, "cl-never" in unknown.stderr) == (1, "", True)


def test_a_broken_line_is_refused_by_its_number_and_the_rest_is_sent(populated: CommandLine) -> None:
    good = (turn_json("cl-7", "I speak German."), turn_json("cl-8", "I like tea."))
    lines = "\n".join([good[0], "{", '{"scope": {"user_id": "mira"}}', good[1]])
    done = populated.run("publish", "-", "--json", "--wait", stdin=lines)
    assert (done.code, done.json["acknowledged"], done.json["ends"]) == (1, 2, {"stored": 2})
    assert "turn_id" in done.json["refused"]["3"]
    assert "line 2 refused: not_a_record" in populated.run("publish", "-", stdin=lines).stderr
    assert populated.json("publish", "-", "--wait")["read"] == 0


def test_a_command_is_not_published_as_a_turn_not_even_raw(populated: CommandLine) -> None:
    command = {
        "kind": "command",
        "command_id": "cl-command",
        "scope": {"user_id": "alice"},
        "issued_at": "2026-03-03T09:00:00+01:00",
        "order": {"kind": "delete_all"},
    }
    for mode in ((), ("--raw",)):
        done = populated.run("publish", "-", *mode, "--wait", stdin=json.dumps(command))
        assert done.code == 1
        assert "a command is not published as a turn: use `mnemolog delete`" in done.stderr
    assert populated.run("status", "cl-command").code == 1


def test_a_turn_that_never_comes_is_a_timeout(populated: CommandLine) -> None:
    done = populated.run("status", "cl-never", "--wait", "0.5")
    assert done.code == 1
    assert "did not finish within 0.5 s: not in the tables yet" in done.stderr
