"""What commands write: JSON with every kind of value, and text for terminals of every kind."""

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID

import pytest
from pydantic import BaseModel

from mnemolog.cli.app import run
from mnemolog.cli.demo import print_lines
from mnemolog.cli.errors import print_error
from mnemolog.cli.output import (
    prepare_streams,
    print_json,
    print_labelled,
    print_line,
    print_note,
    print_text,
    program_name,
    read_input,
    without_password,
)
from mnemolog.cli.servers import StartSteps
from mnemolog.cli.tables import Entry, print_entries, print_table
from mnemolog.client.producer import RecordProducer


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


OBEYED = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x202E, 0x2066, 0x2069)]
KEPT = "25\u00a0000, \u0646\u0645\u06cc\u200c\u062e\u0648, \U0001f468\u200d\U0001f469, \ue000"


@pytest.mark.parametrize(
    "show",
    [
        print_line,
        print_text,
        print_note,
        lambda text: print_entries("1 fact", [Entry(text, text, [text])]),
        lambda text: print_table(text, ("a",), [(text,)]),
        lambda text: print_error(ValueError(text)),
        lambda text: print_json({text: text}),
        print_lines,
        lambda text: print_labelled(text, text, style="bold"),
    ],
)
def test_no_text_moves_the_terminal_and_no_letter_of_it_is_lost(
    show: Callable[[str], object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    show("".join(f"a{one}b" for one in OBEYED) + f" two\twords {KEPT} ")
    shown = "".join(capsys.readouterr())
    assert {one for one in OBEYED if one in shown} <= {"\n"}
    assert KEPT in re.sub(r"[ \n]+", " ", shown)
    assert "twowords" not in shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://a:se:cr@et@b/c", "postgresql://a:********@b/c"),
        ("postgresql://a:secret@b:1,d:2/c?sslmode=require", "postgresql://a:********@b:1,d:2/c?sslmode=require"),
        ("postgresql://a@b/c?password=secret&port=1", "postgresql://a@b/c?password=********&port=1"),
        ("postgresql://b/c?sslpassword=secret", "postgresql://b/c?sslpassword=********"),
        ("host=b password=secret dbname=c", "host=b password=******** dbname=c"),
        (r"password = 'se\'cr et' host=b", "password = ******** host=b"),
        ("http://b/v1?api-key=secret", "http://b/v1?api-key=********"),
        ("postgresql://a@b:5432/c", "postgresql://a@b:5432/c"),
        ("b:9092,c:9092", "b:9092,c:9092"),
    ],
)
def test_a_password_is_never_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown


def test_text_of_users_is_escaped_where_the_stream_takes_no_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii", write_through=True))
    print_json({"text": "Zürich \U0001f600"})
    assert json.loads(out.getvalue().decode("ascii")) == {"text": "Zürich \U0001f600"}
    prepare_streams()
    print_line("Zürich \U0001f600 \udcff")
    print_entries("1 fact", [Entry("3f2a1b4c", "Łódź")])
    print_table("a table", ("a", "b"), [("é", 1)])
    shown = out.getvalue().decode("ascii")
    assert "Z\\xfcrich \\U0001f600 \\udcff\n" in shown
    assert "3f2a1b4c  \\u0141\\xf3d\\u017a" in shown


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({}, "utf-8"),
        ({"LANG": "C.UTF-8"}, "utf-8"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),  # what Python makes of the one before
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "utf-8"),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "ascii"),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "utf-8"),
    ],
)
def test_a_plain_locale_gets_ascii(environment: dict[str, str], encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONUTF8", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    prepare_streams()
    assert sys.stdout.encoding.lower() == encoding


def test_output_that_goes_to_no_terminal_has_no_colour_and_no_line_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_entries("1 fact", [Entry("3f2a1b4c", "text", ["below"])])
    print_error(ValueError("wrong"))
    print_line("x" * 100)
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "x" * 100 in shown.out


def test_at_a_terminal_it_is_said_that_stdin_is_read_and_an_interruption_what_it_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, buffer=io.BytesIO(b"said")))
    assert read_input("the text") == b"said"
    assert "reading the text from the terminal; Ctrl-D" in capsys.readouterr().err

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=interrupted), isatty=lambda: False))
    with pytest.raises(KeyboardInterrupt):
        read_input("the text")
    assert capsys.readouterr().err == "stopped: nothing was changed\n"


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


class SilentProducer:
    """Takes every record of a stream and acknowledges none: none may come."""

    async def publish_stream(self, records: Any) -> Any:
        async for record in records:
            yield record

    @classmethod
    async def connect(cls, *_: object, **__: object) -> Self:
        return cls()

    async def close(self) -> None: ...


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_refused_commands_are_no_success(
    raw: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MNEMOLOG_KAFKA", "localhost:1")
    monkeypatch.setenv("MNEMOLOG_POSTGRES", "postgresql://localhost:1/x")
    monkeypatch.setattr(RecordProducer, "connect", SilentProducer.connect)
    file = tmp_path / "turns.jsonl"
    file.write_text('{"kind": "command"}\n')
    assert run(["publish", str(file), "--wait", *raw]) == 1
    shown = capsys.readouterr()
    assert "finished" not in shown.out
    assert "0 acknowledged" in shown.out
    assert "line 1 refused" in shown.err
