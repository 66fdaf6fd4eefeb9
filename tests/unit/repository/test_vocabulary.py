"""One table of words: it knows every event, and every word of the vocabularies it maps."""

import re
from typing import get_args

from mnemolog.schemas.base import Outcome
from mnemolog.schemas.events import EVENT_CLASSES
from mnemolog.schemas.facts import FactStatus
from scripts.vocabulary import (
    FACT_STATUSES,
    SETTLEMENTS,
    TURN_STATUSES,
    VOCABULARY,
    Arbitration,
    Classification,
    Reconciliation,
    Resolution,
)
from tests.support.paths import ROOT


def test_every_status_has_a_meaning() -> None:
    assert set(TURN_STATUSES) == {*get_args(Outcome), "pending"}
    assert set(FACT_STATUSES) == set(get_args(FactStatus))


def test_the_settlements_are_those_of_the_table() -> None:
    tables = (ROOT / "projections/migrations/projections/tables.sql").read_text(encoding="utf-8")
    allowed = re.search(r"settlement text CHECK \(settlement IN \((.*?)\)\)", tables)
    assert allowed is not None
    assert re.findall(r"'(\w+)'", allowed[1]) == list(SETTLEMENTS)


def test_every_event_has_an_entry_and_an_effect() -> None:
    assert [entry.event for entry in VOCABULARY] == list(EVENT_CLASSES)
    assert all(entry.effect for entry in VOCABULARY)


def test_every_word_of_the_others_is_that_of_an_event() -> None:
    for column, words in (
        ("resolution", Resolution),
        ("arbitration", Arbitration),
        ("reconciliation", Reconciliation),
        ("classification", Classification),
    ):
        assert {word for entry in VOCABULARY for word in getattr(entry, column)} == set(get_args(words))
