"""Whatever the functions of the schema `memory` are asked: an error that says what to do, or an honest answer."""

import time
from typing import Any, Final

import psycopg
import pytest

from tests.integration.projections.search.test_search_bad_input import TEXTS
from tests.support.builders.commits import BOB, added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

SECONDS: Final = 5.0
INVALID, MISSING, NO_TIME = "22023", "22004", "22007"


@pytest.fixture
async def known(db: ProjectedDatabase) -> ProjectedDatabase:
    await db.apply(commit("1", added("Alice likes tea.")), commit("2", added("Bob likes tea."), scope=BOB))
    return db


async def asked(db: ProjectedDatabase, call: str, *values: Any) -> list[tuple[Any, ...]] | psycopg.Error:
    started = time.perf_counter()
    try:
        rows = await (await db.conn.execute(f"SELECT text FROM memory.{call}".encode(), values)).fetchall()  # noqa: S608 - ours
    except psycopg.Error as error:
        return error
    finally:
        assert time.perf_counter() - started < SECONDS
    return rows


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "U+0000"])
async def test_any_question_is_answered_from_its_own_scope(known: ProjectedDatabase, name: str) -> None:
    for function in ("search", "context"):
        assert await asked(known, f"{function}(%s, user_id => 'alice')", TEXTS[name]) in ([], [("Alice likes tea.",)])


REFUSED: Final = (
    ("search(%s, user_id => 'alice')", " ", INVALID),
    ("search(%s, user_id => 'alice')", None, INVALID),
    ("context(%s, user_id => 'alice')", "", INVALID),
    ("search('tea', user_id => %s)", "", INVALID),
    ("search('tea', user_id => %s)", None, INVALID),
    ("search('tea', tenant => %s, user_id => 'alice')", "*", INVALID),
    ("context('tea', user_id => %s)", "**", INVALID),
    ("profile(user_id => %s)", "", INVALID),
    ("search('tea', user_id => 'alice', top_k => %s)", -1, INVALID),
    ("search('tea', user_id => 'alice', top_k => %s)", 0, INVALID),
    ("search('tea', user_id => 'alice', top_k => %s)", 2**31 - 1, INVALID),
    ("search('tea', user_id => 'alice', threshold => %s)", float("nan"), INVALID),
    ("search('tea', user_id => 'alice', threshold => %s)", float("inf"), INVALID),
    ("context('tea', user_id => 'alice', threshold => %s)", -1.0, INVALID),
    ("context('tea', user_id => 'alice', budget_tokens => %s)", -1, INVALID),
    ("context('tea', user_id => 'alice', min_confidence => %s)", float("nan"), INVALID),
    ("facts_as_of(%s::timestamptz, user_id => 'alice')", None, MISSING),
    ("changes_between(%s::timestamptz, user_id => 'alice')", None, MISSING),
    ("changes_between(%s::timestamptz, '-infinity', user_id => 'alice')", "infinity", INVALID),
    ("facts_as_of(%s::timestamptz, user_id => 'alice')", "x", NO_TIME),
)


@pytest.mark.parametrize(("call", "value", "code"), REFUSED)
async def test_what_makes_no_sense_is_refused(known: ProjectedDatabase, call: str, value: Any, code: str) -> None:
    found = await asked(known, call, value)
    assert isinstance(found, psycopg.Error)
    assert found.sqlstate == code
    assert found.diag.message_hint or code == NO_TIME


@pytest.mark.parametrize(
    "call",
    [
        "search('tea', user_id => %s)",
        "context('tea', user_id => %s)",
        "profile(user_id => %s)",
        "facts_as_of(now(), user_id => %s)",
        "changes_between('-infinity', 'infinity', user_id => %s)",
    ],
)
@pytest.mark.parametrize("user", [" ", "x" * 1_000_000, "'; DROP TABLE facts; --", "\N{PARTY POPPER}"])
async def test_an_unknown_scope_has_nothing(known: ProjectedDatabase, call: str, user: str) -> None:
    assert await asked(known, call, user) == []
