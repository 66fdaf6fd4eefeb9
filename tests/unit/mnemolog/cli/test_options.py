"""`--wait` has one meaning wherever it stands, an id may be shortened, and an interrupted command says what it left."""

import asyncio
import os
import signal
from collections.abc import Sequence
from uuid import UUID

import pytest
import typer

from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.options import CliCommand, Wait, parse_id, state_of_sent
from mnemolog.cli.runtime import run_async
from mnemolog.cli.tables import ShortIds, ids_in
from mnemolog.projections.queries.results import FactChange, Profile, Result

ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)


def parsed(arguments: Sequence[str]) -> tuple[str, float | None]:
    """What a command with a text and `--wait` gets."""
    got: list[tuple[str, float | None]] = []
    app = typer.Typer()

    @app.command(cls=CliCommand)
    def say(text: str, wait: Wait = None) -> None:
        got.append((text, wait))

    with pytest.raises(SystemExit) as end:
        app(list(arguments))
    assert end.value.code == 0, arguments
    return got[0]


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        (["hello"], None),
        (["hello", "--wait"], 60),
        (["--wait", "hello"], 60),
        (["hello", "--wait", "5"], 5),
        (["--wait", "0.5", "hello"], 0.5),
        (["--wait=7", "hello"], 7),
        (["hello", "--wait", "0"], 0),
    ],
)
def test_wait_may_stand_alone_anywhere(arguments: list[str], seconds: float | None) -> None:
    assert parsed(arguments) == ("hello", seconds)
    assert parsed(["--", "--wait"]) == ("--wait", None)


def test_an_id_may_be_its_first_characters() -> None:
    for text in ("3f2a", "3F2A1B4C", "3f2a1b4c-", str(ONE)):
        assert parse_id(text) == text
    for text in ("", "3f2", "no-id-at-all", f"{ONE}0"):
        with pytest.raises(typer.BadParameter, match="is not an id"):
            parse_id(text)


def test_every_id_in_a_result_is_found_and_shown_whole_where_it_has_no_short_form() -> None:
    memory = FactChange(fact_id=ONE, text="x", event="e", targets=(TWO,))
    profile = Profile(identity=[{"fact_id": str(THREE), "text": "y"}])
    assert set(ids_in([Result(turn_id="t", status="stored", changes=(memory,)), profile])) == {ONE, TWO, THREE}
    shown = ShortIds({ONE: "00000000"})
    assert (shown(ONE), shown(TWO), shown(None)) == ("00000000", str(TWO), "")


def test_an_interrupted_command_says_what_it_left(capsys: pytest.CaptureFixture[str]) -> None:
    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    with pytest.raises(typer.Exit) as end:
        run_async(interrupted(), interrupted=lambda: "the tables are as they were")
    assert end.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "stopped: the tables are as they were\n"


def test_a_sent_command_is_named_when_it_is_not_waited_for_any_longer() -> None:
    assert state_of_sent([]) == "nothing was changed"
    assert "mnemolog status c1 --wait" in state_of_sent([Result(turn_id="c1")])
