"""Connections: their settings, their patience, and vectors on their way into Postgres."""

import psycopg
import pytest

from mnemolog.projections.database import (
    connection_settings,
    open_pool,
    prepare_connection,
    retry_while_unavailable,
)
from mnemolog.projections.errors import SchemaMissingError
from mnemolog.schemas.vector import Vector

pytestmark = pytest.mark.postgres


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


@pytest.mark.parametrize(("looks_up", "settings"), [(True, [("force_generic_plan", "off")]), (False, [("auto", "on")])])
async def test_statements_are_planned_once_and_by_index_where_that_is_asked_for(
    database: str, looks_up: bool, settings: list[tuple[str, str]]
) -> None:
    async with (
        open_pool(database, min_size=1, max_size=1, application_name="mine", looks_up=looks_up) as pool,
        pool.connection() as connection,
    ):
        cursor = await connection.execute(
            "SELECT current_setting('plan_cache_mode'), current_setting('enable_seqscan')"
        )
        assert await cursor.fetchall() == settings


def test_options_of_the_url_are_kept() -> None:
    url = "postgresql://host/db?options=-c%20work_mem%3D64MB"
    assert str(connection_settings(url, application_name="x")["options"]).startswith("-c work_mem=64MB -c search_path=")


async def test_a_database_without_pgvector_says_what_to_do(postgres_admin_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_admin_url, dbname="postgres") as connection:
        with pytest.raises(SchemaMissingError, match="mnemolog migrate"):
            await prepare_connection(connection)


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


async def test_every_half_arrives_as_it_is(database: str) -> None:
    values = [0.0, -0.0, 1.0, -2.0, 0.333251953125, 65504.0, -5.960464477539063e-08]
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await prepare_connection(connection)
        cursor = await connection.execute(
            "SELECT %b::halfvec::float4[]", [Vector.from_values("m", values)], binary=True
        )
        assert await cursor.fetchone() == (pytest.approx(values),)
