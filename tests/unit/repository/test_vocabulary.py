"""One table of words: it knows every event, and every word of the vocabularies it maps."""

from typing import get_args

import pytest

from mnemolog.schemas.events import EVENT_CLASSES
from scripts.vocabulary import (
    VOCABULARY,
    Arbitration,
    Classification,
    Reconciliation,
    Resolution,
)


def test_every_event_has_an_entry_and_an_effect() -> None:
    assert [entry.event for entry in VOCABULARY] == list(EVENT_CLASSES)
    assert all(entry.effect for entry in VOCABULARY)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("resolution", Resolution),
        ("arbitration", Arbitration),
        ("reconciliation", Reconciliation),
        ("classification", Classification),
    ],
)
def test_every_word_of_the_others_is_that_of_an_event(column: str, words: object) -> None:
    used = {word for entry in VOCABULARY for word in getattr(entry, column)}
    assert used == set(get_args(words))
