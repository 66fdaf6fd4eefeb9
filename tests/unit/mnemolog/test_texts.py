"""Sentences about facts: where one came from, and why a search found none."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mnemolog.projections.queries.search import ScopeCount
from mnemolog.texts import _source_sentence, no_hit_sentence


@pytest.mark.parametrize(("speaker", "who"), [("Alice", "Alice says"), (None, "it says")])
def test_the_speaker_of_an_excerpt_is_named(speaker: str | None, who: str) -> None:
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    source: Any = SimpleNamespace(kind="turn", source_id="t1", occurred_at=at)
    fact: Any = SimpleNamespace(speaker=speaker, excerpt="I moved to Bern.")
    expected = f'It comes from turn t1 of 2026-03-01 09:00, where {who}: "I moved to Bern.".'
    assert _source_sentence(source, None, fact) == expected


@pytest.mark.parametrize(
    ("missed", "sentence"),
    [
        (ScopeCount(within=3, beside=0, ids=()), "nothing known is near enough to this question"),
        (ScopeCount(within=0, beside=0, ids=()), "nothing is known in this scope"),
        (
            ScopeCount(within=0, beside=12, ids=("run_id",)),
            (
                "nothing is known in this scope; facts in scopes that also name a run: 12, "
                "search with run_id='**' (--run '**')"
            ),
        ),
        (
            ScopeCount(within=1, beside=1, ids=("agent_id", "app_id")),
            (
                "nothing known is near enough to this question; facts in scopes that also name an agent or an app: 1, "
                "search with agent_id='**', app_id='**' (--agent '**' --app '**')"
            ),
        ),
    ],
)
def test_a_search_without_a_hit_says_why_and_where_else_to_look(missed: ScopeCount, sentence: str) -> None:
    assert no_hit_sentence(missed) == sentence
