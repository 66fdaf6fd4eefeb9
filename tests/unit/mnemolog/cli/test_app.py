"""The command line starts quickly and hides secrets; the demonstration's records are what it says they are."""

import json
import shlex
import subprocess
import sys
from collections import Counter
from datetime import date
from importlib.metadata import version

import pytest
import typer

from mnemolog.cli.admin import setting_rows
from mnemolog.cli.app import PANELS, CommandEntry, app, run
from mnemolog.cli.demo import Demo, shifted_records
from mnemolog.client.discovery import ServerAddresses
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.settings import Settings
from tests.support.imports import packages_loaded_by


def test_help_loads_no_driver() -> None:
    drivers = ("aiokafka", "faust", "psycopg", "pydantic", "openai")
    assert packages_loaded_by("mnemolog.cli.app", *drivers) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "Memory for assistants: extracts facts from conversations, and explains, undoes and rebuilds"),
        (["audit"], "Check from the tables that no turn was lost"),
        (["facts"], "or those that were known at the time --believed to be true at --true"),
        (["publish"], "commands are refused"),
    ],
)
def test_help_says_plainly_what_it_is(
    command: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*command, "--help"]) == 0
    assert words in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("listed", [one for panel in PANELS.values() for one in panel], ids=lambda one: one.example)
def test_every_command_has_an_example_that_it_takes(listed: CommandEntry, capsys: pytest.CaptureFixture[str]) -> None:
    program, name, *arguments = shlex.split(listed.example)
    assert program == "mnemolog"
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]  # a group, by its commands
    assert command.callback.__wrapped__ is listed.run or name == listed.run.__name__.replace("_", "-")
    assert command.make_context(name, arguments).params
    assert run([name, "--help"]) == 0
    assert listed.example.split()[-1] in capsys.readouterr().out


def test_the_help_has_a_panel_for_each_theme_and_says_the_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"mnemolog {version('mnemolog')}\n"
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [panel for panel in PANELS if f" {panel} " not in shown] == []
    assert "Exit codes: 0 done; 1 failed" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MNEMOLOG_COMPLETE", f"source_{shell}")
    run([])
    assert "_MNEMOLOG_COMPLETE=complete_" in capsys.readouterr().out
    monkeypatch.setenv("_MNEMOLOG_COMPLETE", f"complete_{shell}")
    for typed, completed in (("mnemolog dead", "dead-letters"), ("mnemolog facts --us", "--user")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        run([])
        assert completed in capsys.readouterr().out


def test_every_setting_is_listed_and_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_API_KEY", "sk-secret")
    monkeypatch.setenv("MNEMOLOG_POSTGRES", "postgresql://me:secret@host/db")
    rows = {row.variable: row for row in setting_rows(Settings())}
    assert len(rows) == len(Settings.model_fields)
    assert all(row.meaning for row in rows.values())
    assert "secret" not in "".join(row.value or "" for row in rows.values())
    assert rows["MNEMOLOG_POSTGRES"].value == "postgresql://me:********@host/db"
    assert (rows["MNEMOLOG_API_KEY"].is_set, rows["MNEMOLOG_KAFKA"].is_set) == (True, False)


def test_the_conversation_is_of_three_people_with_one_broken_record_on_the_days_before() -> None:
    parsed = [parse_turn(line, position="p") for line in shifted_records(date(2030, 1, 10))]
    turns = [turn for turn in parsed if not isinstance(turn, Refusal)]
    assert [refusal.reason for refusal in parsed if isinstance(refusal, Refusal)] == ["not_a_record"]
    assert set(Counter(turn.scope.user_id for turn in turns)) == {"mira", "jonas", "priya"}
    assert len({turn.turn_id for turn in turns}) == len(turns) == 41
    assert sum(not turn.infer for turn in turns) == 1
    days = [turn.occurred_at.date() for turn in turns]
    assert (min(days), max(days)) == (date(2030, 1, 5), date(2030, 1, 10))


def test_the_demonstration_writes_each_result_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    servers = ServerAddresses(kafka="k:1", postgres="postgresql://p", topic_prefix="", metrics_url=None, pid=1)
    demo = Demo(Settings(), servers, as_json=True)
    demo.heading("A search", "by meaning")
    demo.show(["found"])
    assert json.loads(capsys.readouterr().out) == {"step": 1, "result": ["found"]}


SERVING = """
from mnemolog.cli.runtime import run_and_exit

async def work():
    return 7

run_and_exit(work())
"""
COLLECTIONS = """
import gc
from mnemolog.cli import main

try:
    main(["--version"])
finally:
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(10_000)]
    print(gc.get_stats()[0]["collections"] - before)
"""


def test_a_process_that_serves_ends_with_its_code() -> None:
    assert subprocess.run([sys.executable, "-c", SERVING], check=False).returncode == 7


def test_a_process_whose_output_nobody_reads_ends_without_a_word() -> None:
    program = SERVING.replace("return 7", "from mnemolog.cli.output import stdout; stdout().print('x' * 200_000)")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_command_seldom_looks_for_cycles() -> None:
    shown = subprocess.run([sys.executable, "-c", COLLECTIONS], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert int(shown.split()[-1]) <= 1
