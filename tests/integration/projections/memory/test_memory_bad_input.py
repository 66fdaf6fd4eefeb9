"""Whatever the functions of the schema `memory` are asked: an error that says what to do, or an honest answer."""

import time
from typing import Any, Final

import psycopg
import pytest

from tests.support.builders.commits import BOB, added, commit
from tests.support.cases.questions import QUESTIONS, SECONDS
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

INVALID, MISSING, NO_TIME = "22023", "22004", "22007"
NOBODY, EMPTY = "neither a user_id nor an agent_id", "the text to search for is empty"


@pytest.fixture
async def known(db: ProjectedDatabase) -> ProjectedDatabase:
    await db.apply(commit("1", added("Alice likes tea.")), commit("2", added("Bob likes tea."), scope=BOB))
    return db


async def asked(db: ProjectedDatabase, call: str, *values: Any) -> list[tuple[Any, ...]] | psycopg.Error:
    started = time.perf_counter()
    try:
        rows = await (await db.conn.execute(f"SELECT text FROM memory.{call}".encode(), values or None)).fetchall()  # noqa: S608 - ours
    except psycopg.Error as error:
        return error
    finally:
        assert time.perf_counter() - started < SECONDS
    return rows


async def test_any_question_is_answered_from_its_own_scope(known: ProjectedDatabase) -> None:
    for name, text in QUESTIONS.items():
        if "\x00" in text or "\ud800" in text:  # no client can send it
            continue
        for function in ("search", "context"):
            found = await asked(known, f"{function}(%s, user_id => 'alice')", text)
            assert found in ([], [("Alice likes tea.",)]), (name, function)
            assert found or " tea " not in f" {text[:100]} ", name


REFUSED: Final = (
    ("facts_as_of()", INVALID, NOBODY),
    ("facts_as_of(user_id => '')", INVALID, "an id in the scope is empty"),
    ("facts_as_of(user_id => 'alice', tenant => '*')", INVALID, "sees one tenant, and this one names '*'"),
    ("facts_as_of(user_id => 'alice', tenant => NULL)", INVALID, "sees one tenant, and this one names none"),
    ("facts_as_of(NULL, user_id => 'alice')", MISSING, "believed_at is NULL"),
    ("facts_as_of('x', user_id => 'alice')", NO_TIME, "invalid input syntax"),
    ("changes_between('2026-01-02', '2026-01-01', user_id => 'alice')", INVALID, "is after until"),
    ("changes_between('infinity', '-infinity', user_id => 'alice')", INVALID, "is after until"),
    ("changes_between(NULL, user_id => 'alice')", MISSING, "since is NULL"),
    ("changes_between('2026-01-02', app_id => 'a')", INVALID, NOBODY),
    ("profile()", INVALID, NOBODY),
    ("profile(user_id => '')", INVALID, "an id in the scope is empty"),
    ("profile(user_id => '*')", INVALID, "this one has a wildcard"),
    ("search(NULL, user_id => 'alice')", INVALID, EMPTY),
    ("search(E' \\n\\t ', user_id => 'alice')", INVALID, EMPTY),
    ("search('tea')", INVALID, NOBODY),
    ("search('tea', user_id => '')", INVALID, "an id in the scope is empty"),
    ("search('tea', user_id => NULL)", INVALID, NOBODY),
    ("search('tea', user_id => 'alice', tenant => '**')", INVALID, "sees one tenant"),
    ("search('tea', user_id => 'alice', top_k => 0)", INVALID, "top_k is 0"),
    ("search('tea', user_id => 'alice', top_k => -1)", INVALID, "top_k is -1"),
    ("search('tea', user_id => 'alice', top_k => 2147483647)", INVALID, "top_k is 2147483647"),
    ("search('tea', user_id => 'alice', top_k => NULL)", INVALID, "top_k is NULL"),
    ("search('tea', user_id => 'alice', threshold => 'NaN')", INVALID, "threshold is NaN"),
    ("search('tea', user_id => 'alice', threshold => 'Infinity')", INVALID, "threshold is Infinity"),
    ("search('tea', '[1, 0]', user_id => 'alice')", "22000", "the vector has 2 dimensions, and those of the facts"),
    ("context('tea')", INVALID, NOBODY),
    ("context('tea', user_id => '*')", INVALID, "a context belongs to one scope"),
    ("context(' ', user_id => 'alice')", INVALID, EMPTY),
    ("context('tea', user_id => 'alice', threshold => -1.0)", INVALID, "threshold is -1"),
    ("context('tea', user_id => 'alice', budget_tokens => 0)", INVALID, "budget_tokens is 0"),
    ("context('tea', user_id => 'alice', budget_tokens => -1)", INVALID, "budget_tokens is -1"),
    ("context('tea', user_id => 'alice', min_confidence => 'NaN')", INVALID, "min_confidence NaN"),
)


async def test_what_makes_no_sense_is_refused_with_what_to_do(known: ProjectedDatabase) -> None:
    for call, code, words in REFUSED:
        found = await asked(known, call)
        assert isinstance(found, psycopg.Error), call
        assert (found.sqlstate, words in str(found)) == (code, True), (call, found)
        assert found.diag.message_hint or code == NO_TIME, call


async def test_an_unknown_scope_has_nothing(known: ProjectedDatabase) -> None:
    calls = ("search('tea', {})", "context('tea', {})", "profile({})", "facts_as_of(now(), {})")
    for call in (*calls, "changes_between('-infinity', 'infinity', {})"):
        for user in (" ", "x" * 1_000_000, "'; DROP TABLE facts; --", "\N{PARTY POPPER}"):
            assert await asked(known, call.format("user_id => %s"), user) == []
