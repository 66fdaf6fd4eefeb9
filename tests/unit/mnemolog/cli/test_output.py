"""What commands write: JSON with every kind of value, and tables that obey nobody's control sequences."""

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import BaseModel

from mnemolog.cli.output import cell, print_json, print_table, program_name, stacked


class Model(BaseModel):
    at: datetime


@dataclass(frozen=True, slots=True)
class Value:
    id: UUID
    ends: dict[int, int]
    model: Model
    path: Path
    raw: bytes
    age: timedelta


def test_every_kind_of_value_has_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    print_json(Value(UUID(int=1), {0: 1}, Model(at=at), Path("a"), b"\xff{", timedelta(seconds=1)))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "id": str(UUID(int=1)),
        "ends": {"0": 1},
        "model": {"at": "2026-03-01T00:00:00Z"},
        "path": "a",
        "raw": "\\xff{",
        "age": "0:00:01",
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0.956, "0.96"),
        (datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2026-02-28 23:30"),
        (timedelta(days=7), "7 days"),
        (timedelta(minutes=5), "0:05:00"),
        (timedelta(microseconds=694093), "0:00:00"),
        (3, "3"),
    ],
)
def test_values_are_shown_as_people_read_them(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_a_table_shows_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("2 rows", ("a", "b"), [("[red]x[/]", "\x1b[31mred"), (stacked("[b]first", None), 2)])
    out = capsys.readouterr().out
    assert "[red]x[/]" in out
    assert "[b]first" in out
    assert "\x1b" not in out


def test_a_very_long_text_is_cut_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("1 rows", ("a", "b"), [(stacked("word " * 50_000, "below"), "x" * 100_000)])
    out = capsys.readouterr().out
    assert "below" in out
    assert "…" in out
    assert len(out) < 10_000


def test_the_program_is_named_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "mnemolog").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == str(folder / "mnemolog")
    monkeypatch.chdir(tmp_path)
    assert program_name() == "./.venv/bin/mnemolog"
    monkeypatch.setenv("PATH", str(folder))
    assert program_name() == "mnemolog"
