"""The sentence that says where a fact came from names who said it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mnemolog.texts import _source_sentence


@pytest.mark.parametrize(("speaker", "who"), [("Alice", "Alice says"), (None, "it says")])
def test_the_speaker_of_an_excerpt_is_named(speaker: str | None, who: str) -> None:
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    source: Any = SimpleNamespace(kind="turn", source_id="t1", occurred_at=at)
    fact: Any = SimpleNamespace(speaker=speaker, excerpt="I moved to Bern.")
    expected = f'It comes from turn t1 of 2026-03-01 09:00 UTC, where {who}: "I moved to Bern.".'
    assert _source_sentence(source, None, fact) == expected
