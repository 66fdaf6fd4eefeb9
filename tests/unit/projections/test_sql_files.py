"""Statements as they are sent: short enough for Psycopg to remember them."""

import pytest

from mnemolog.projections.sql import queries

REMEMBERED = 4096  # characters; Psycopg looks for the parameters of longer statements at each call
EACH_TURN = (
    *("candidates", "conversation", "entities", "limits", "linked_facts", "policies", "replies"),
    *("shown_entities", "shown_facts"),
)


@pytest.mark.parametrize("file", EACH_TURN)
def test_what_is_asked_for_every_turn_is_remembered(file: str) -> None:
    assert {name: len(query.as_string()) for name, query in queries(file).items() if _long(query.as_string())} == {}


def test_a_statement_is_sent_without_comments_and_indentation() -> None:
    for query in queries("candidates").values():
        lines = query.as_string().splitlines()
        assert lines
        assert all(line == line.strip() and line and not line.startswith("--") for line in lines)


def _long(text: str) -> bool:
    return len(text) > REMEMBERED
