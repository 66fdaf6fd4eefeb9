"""Scopes of a query that can find nothing, and filters that do not say whose facts are wanted."""

from typing import Any

import pytest

from mnemolog.projections.errors import QueryError, check_unicode
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters import parse_filter


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "name a user_id or an agent_id"),
        ({"run_id": "r1"}, "name a user_id or an agent_id"),
        ({"user_id": ""}, "empty or holds U[+]0000"),
        ({"user_id": "a\x00"}, "empty or holds U[+]0000"),
        ({"user_id": "a\udcff"}, "UTF-8"),
        ({"tenant": "*", "user_id": "a"}, "a query sees one tenant"),
        ({"tenant": "**", "user_id": "a"}, "a query sees one tenant"),
    ],
)
def test_a_scope_that_can_find_nothing_is_refused(wrong: dict[str, str], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        ScopeFilter(**wrong)


@pytest.mark.parametrize(
    "wanted",
    [
        {"categories": "health"},
        {"run_id": "r1"},
        {"NOT": [{"user_id": "alice"}]},
        {"OR": [{"user_id": "alice"}, {"categories": "health"}]},
        {"AND": [{"OR": [{"user_id": "alice"}, {"run_id": "r1"}]}]},
        {"user_id": None},
    ],
)
def test_a_filter_that_does_not_say_whose_facts_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="name a user_id or an agent_id"):
        ScopeFilter.of_filter("default", parse_filter(wanted))


def test_text_in_any_language_is_a_question_but_not_bytes_that_are_no_utf_8() -> None:
    for text in ("", "plain", "Zürich 💩", "語" * 1000):
        check_unicode(text)
    with pytest.raises(QueryError, match=r"character 2 .* give text in UTF-8"):
        check_unicode("x \udcff")
