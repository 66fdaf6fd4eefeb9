"""A file of commands is refused, and nothing of what is shown looks like success."""

from pathlib import Path
from typing import Any, Self

import pytest

from mnemolog.cli.app import run
from mnemolog.client.producer import RecordProducer


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


def test_the_help_of_raw_says_that_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["publish", "--help"]) == 0
    assert "commands are refused" in " ".join(capsys.readouterr().out.replace("│", " ").split())
