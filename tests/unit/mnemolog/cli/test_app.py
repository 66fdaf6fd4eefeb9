"""The command line starts quickly and hides secrets; the demonstration's records are what it says they are."""

from collections import Counter
from datetime import date

import pytest

from mnemolog.cli.admin import rows_of
from mnemolog.cli.demo.steps import LAST_DAY, shifted_records
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.settings import Settings
from tests.support.imports import packages_loaded_by


def test_help_loads_no_driver() -> None:
    drivers = ("aiokafka", "faust", "psycopg", "pydantic", "openai", "sqlalchemy")
    assert packages_loaded_by("mnemolog.cli.app", *drivers) == []


def test_every_setting_is_listed_and_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_API_KEY", "sk-secret")
    monkeypatch.setenv("MNEMOLOG_POSTGRES", "postgresql://me:secret@host/db")
    rows = {row.variable: row for row in rows_of(Settings())}
    assert len(rows) == len(Settings.model_fields)
    assert all(row.meaning for row in rows.values())
    assert "secret" not in "".join(row.value or "" for row in rows.values())
    assert rows["MNEMOLOG_POSTGRES"].value == "postgresql://me:********@host/db"
    assert (rows["MNEMOLOG_API_KEY"].is_set, rows["MNEMOLOG_KAFKA"].is_set) == (True, False)


def test_the_conversation_is_of_three_people_with_one_broken_record() -> None:
    judged = [parse_turn(line, position="p") for line in shifted_records(LAST_DAY)]
    turns = [turn for turn in judged if not isinstance(turn, Refusal)]
    assert [refusal.reason for refusal in judged if isinstance(refusal, Refusal)] == ["not_a_record"]
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
