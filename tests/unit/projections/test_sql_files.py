"""Statements as they are sent: short enough for Psycopg to remember them."""

import pytest

from mnemolog.projections.sql import queries

REMEMBERED = 4096  # characters; Psycopg looks for the parameters of longer statements at each call
EACH_TURN = (
    *("candidates", "conversation", "entities", "limits", "linked_facts", "policies", "replies"),
    "shown",
)


@pytest.mark.parametrize("file", EACH_TURN)
def test_what_is_asked_for_every_turn_is_remembered(file: str) -> None:
    assert {name: len(query.as_string()) for name, query in queries(file).items() if _long(query.as_string())} == {}


def test_a_statement_is_sent_without_comments_and_indentation() -> None:
    for query in queries("candidates").values():
        lines = query.as_string().splitlines()
        assert lines
        assert all(line == line.strip() and line and not line.startswith("--") for line in lines)


def test_includes_are_put_in_when_a_file_is_read() -> None:
    shown = queries("pending")["merges"].as_string()
    assert "proposed.tenant, nullif(proposed.user_id, '') AS user_id, nullif(proposed.agent_id, '')" in shown
    texts = queries("facts")["texts"].as_string()
    assert "(tenant, user_id, agent_id, app_id, run_id) = (%(tenant)s, %(user_id)s, %(agent_id)s" in texts
    holding = queries("facts")["holding"].as_string()
    assert "(f.true_to IS NULL OR f.true_to > %(at)s)" in holding


def _long(text: str) -> bool:
    return len(text) > REMEMBERED
