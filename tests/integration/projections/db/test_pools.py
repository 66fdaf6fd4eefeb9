"""Pools and patience: an outage is waited out, a fault is not."""

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg_pool import PoolClosed

from mnemolog.projections.db.pools import connection_settings, open_pool, prepare_connection, retry_while_unavailable
from mnemolog.projections.errors import SchemaMissingError

pytestmark = pytest.mark.postgres


async def no_sleep(_seconds: float) -> None:
    """Waits for nothing."""


async def test_a_connection_is_set_up(database: str) -> None:
    async with open_pool(database, min_size=1, max_size=1, application_name="mine", statement_timeout=2.5) as pool:
        settings = {}
        for name in ("search_path", "statement_timeout", "timezone", "application_name", "jit"):
            async with pool.connection() as connection:
                cursor = await connection.execute("SELECT current_setting(%s)", [name])
                settings[name] = (await cursor.fetchall())[0][0]
    assert settings == {
        "search_path": "mnemolog,mnemolog_journal,public",
        "statement_timeout": "2500ms",
        "timezone": "UTC",
        "application_name": "mine",
        "jit": "off",
    }


async def test_lists_are_sent_in_binary_form_whatever_stands_in_them(database: str) -> None:
    said = ['{"a": "b\\n"}', "", None, "null", "\u00fc, \u732b"]
    async with (
        open_pool(database, min_size=1, max_size=1, application_name="mine") as pool,
        pool.connection() as connection,
    ):
        query = "SELECT pg_typeof(%(said)s)::text, %(said)s, %(none)s::uuid []"
        cursor = await connection.execute(query, {"said": said, "none": []})
        assert await cursor.fetchall() == [("text[]", said, [])]


@pytest.mark.parametrize(("generic", "mode"), [(True, "force_generic_plan"), (False, "auto")])
async def test_statements_are_planned_once_where_that_is_asked_for(database: str, generic: bool, mode: str) -> None:
    async with (
        open_pool(database, min_size=1, max_size=1, application_name="mine", generic_plans=generic) as pool,
        pool.connection() as connection,
    ):
        cursor = await connection.execute("SHOW plan_cache_mode")
        assert await cursor.fetchall() == [(mode,)]


@pytest.mark.parametrize(("only_by_index", "setting"), [(True, "off"), (False, "on")])
async def test_tables_are_not_read_whole_where_that_is_asked_for(
    database: str, only_by_index: bool, setting: str
) -> None:
    async with (
        open_pool(database, min_size=1, max_size=1, application_name="mine", only_by_index=only_by_index) as pool,
        pool.connection() as connection,
    ):
        cursor = await connection.execute("SHOW enable_seqscan")
        assert await cursor.fetchall() == [(setting,)]


def test_options_of_the_url_are_kept() -> None:
    url = "postgresql://host/db?options=-c%20work_mem%3D64MB"
    assert str(connection_settings(url, application_name="x")["options"]).startswith("-c work_mem=64MB -c search_path=")


async def test_a_database_without_pgvector_says_what_to_do(postgres_admin_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_admin_url, dbname="postgres") as connection:
        with pytest.raises(SchemaMissingError, match="mnemolog migrate"):
            await prepare_connection(connection)


async def test_an_outage_is_waited_out() -> None:
    tries = 0
    waited: list[float] = []

    async def operation() -> str:
        nonlocal tries
        tries += 1
        if tries < 12:
            raise psycopg.OperationalError("connection refused")
        return "done"

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    before = REGISTRY.get_sample_value("mnemolog_database_retries_total", {"operation": "try"}) or 0
    assert await retry_while_unavailable(operation, name="try", jitter=lambda: 1.0, sleep=sleep) == "done"
    assert waited[:3] == [0.05, 0.1, 0.2]
    assert waited[-1] == 5.0
    after = REGISTRY.get_sample_value("mnemolog_database_retries_total", {"operation": "try"})
    assert after == before + 11


@pytest.mark.parametrize(
    "error",
    [
        PoolClosed("the pool is closed"),
        psycopg.errors.ProgramLimitExceeded("index row size exceeds maximum"),
        psycopg.errors.UndefinedTable("relation does not exist"),
        psycopg.DataError("not a number"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_waiting_cannot_mend_is_raised(error: psycopg.Error) -> None:
    async def operation() -> None:
        raise error

    with pytest.raises(type(error)):
        await retry_while_unavailable(operation, name="try", sleep=no_sleep)


async def test_a_pool_that_reaches_nobody_waits(database: str) -> None:
    """Opening does not wait for Postgres; the first operation does, and goes on when it is there."""
    nowhere = psycopg.conninfo.make_conninfo(database, port=1)
    pool = open_pool(nowhere, min_size=1, max_size=1, application_name="nobody")
    pool.timeout = 0.2
    async with pool:

        async def operation() -> list[tuple[object, ...]]:
            async with pool.connection() as connection:
                return await (await connection.execute("SELECT 1")).fetchall()

        async def postgres_comes_back(_seconds: float) -> None:
            pool.conninfo = database

        assert await retry_while_unavailable(operation, name="try", sleep=postgres_comes_back) == [(1,)]
