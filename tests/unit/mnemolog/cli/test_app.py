"""The command line starts quickly and hides secrets; the demonstration's records are what it says they are."""

import shlex
from collections import Counter
from datetime import date
from importlib.metadata import version

import pytest
import typer

from mnemolog.cli.admin import setting_rows
from mnemolog.cli.app import PANELS, CommandEntry, app, run
from mnemolog.cli.demo import LAST_DAY, shifted_records
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.settings import Settings
from tests.support.imports import packages_loaded_by


def test_help_loads_no_driver() -> None:
    drivers = ("aiokafka", "faust", "psycopg", "pydantic", "openai")
    assert packages_loaded_by("mnemolog.cli.app", *drivers) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            [],
            "Memory for assistants: extracts facts from conversations, and explains, undoes and rebuilds",
        ),
        (["audit"], "Check from the tables that no turn was lost"),
        (["as-of"], "List the facts that were known at the time --believed to be true at the time --true"),
    ],
)
def test_help_says_plainly_what_it_is(
    command: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*command, "--help"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())


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
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [panel for panel in PANELS if f" {panel} " not in shown] == []
    assert "Exit codes: 0 done; 1 failed" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"mnemolog {version('mnemolog')}\n"


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


def test_the_conversation_is_of_three_people_with_one_broken_record() -> None:
    parsed = [parse_turn(line, position="p") for line in shifted_records(LAST_DAY)]
    turns = [turn for turn in parsed if not isinstance(turn, Refusal)]
    assert [refusal.reason for refusal in parsed if isinstance(refusal, Refusal)] == ["not_a_record"]
    assert set(Counter(turn.scope.user_id for turn in turns)) == {"mira", "jonas", "priya"}
    assert len({turn.turn_id for turn in turns}) == len(turns) == 41
    assert sum(not turn.infer for turn in turns) == 1


def test_the_conversation_is_moved_to_the_days_before() -> None:
    moved = [
        turn
        for line in shifted_records(date(2030, 1, 10))
        if not isinstance(turn := parse_turn(line, position="p"), Refusal)
    ]
    assert min(turn.occurred_at for turn in moved).date() == date(2030, 1, 5)
    assert max(turn.occurred_at for turn in moved).date() == date(2030, 1, 10)
