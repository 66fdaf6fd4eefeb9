"""The schema `memory` is brought up to date in its place, or made anew where nothing else depends on it."""

from typing import Any

import psycopg
import pytest

from mnemolog.projections.errors import MemorySchemaRefusedError, SchemaInUseError
from mnemolog.projections.migrations.upgrade import migrate
from tests.support.databases import database_name

pytestmark = pytest.mark.postgres
OTHER_BODY = "CREATE OR REPLACE VIEW memory.pending AS SELECT * FROM memory.pending_rows() WHERE false"
OTHER_COLUMNS = """
DROP FUNCTION memory.changes_between;
CREATE FUNCTION memory.changes_between(
    since timestamptz, until timestamptz DEFAULT now(), tenant text DEFAULT 'default', user_id text DEFAULT NULL,
    agent_id text DEFAULT NULL, app_id text DEFAULT NULL, run_id text DEFAULT NULL
) RETURNS TABLE (at timestamptz) LANGUAGE sql AS 'SELECT now()'
"""
OTHER_PARAMETERS = """
DROP FUNCTION memory.profile;
CREATE FUNCTION memory.profile(fact uuid) RETURNS TABLE (text text) LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION memory.check_given(parameter text) RETURNS void LANGUAGE sql AS 'SELECT NULL::void'
"""
OLD = """
DO $$ BEGIN
    EXECUTE format(
        'COMMENT ON SCHEMA memory IS %L',
        replace(obj_description('memory'::regnamespace, 'pg_namespace'), 'by ', 'by 0')
    );
END $$
"""
DEFINITIONS = """
SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'memory'::regnamespace
UNION ALL
SELECT viewname, definition FROM pg_views WHERE schemaname = 'memory'
UNION ALL
SELECT 'schema', obj_description('memory'::regnamespace, 'pg_namespace')
ORDER BY 1, 2
"""


def rows(url: str, *statements: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((OTHER_BODY, OLD), id="other bodies are replaced"),
        pytest.param((OTHER_PARAMETERS, OLD), id="a function with other parameters takes the place of the former one"),
    ],
)
async def test_what_depends_on_the_schema_stays(database: str, changes: tuple[str, ...]) -> None:
    made = rows(database, DEFINITIONS)
    rows(database, *changes, "CREATE VIEW public.mine AS SELECT text FROM memory.pending")
    assert rows(database, DEFINITIONS) != made
    await migrate(database)
    assert rows(database, DEFINITIONS) == made
    assert rows(database, "SELECT * FROM public.mine") == []


async def test_other_columns_are_made_anew_with_their_grants_beside_what_others_have_made(database: str) -> None:
    made, role = rows(database, DEFINITIONS), f"reader_of_{database_name(database)}"
    rows(database, f"CREATE ROLE {role}")
    try:
        rows(database, f"GRANT USAGE ON SCHEMA memory TO {role}; GRANT SELECT ON memory.current_facts TO {role}")
        rows(database, OTHER_COLUMNS, OLD, "CREATE TABLE memory.mine (one integer)")
        await migrate(database)
        assert rows(database, DEFINITIONS) == made
        asked = f"""
            SELECT has_schema_privilege('{role}', 'memory', 'USAGE'),
                has_table_privilege('{role}', 'memory.current_facts', 'SELECT'),
                has_table_privilege('{role}', 'memory.facts', 'SELECT')
        """
        assert rows(database, asked) == [(True, True, False)]
        assert rows(database, "SELECT * FROM memory.mine") == []
    finally:
        rows(database, f"DROP OWNED BY {role}; DROP ROLE {role}")


OF_FACTS = "CREATE FUNCTION mine() RETURNS SETOF memory.facts LANGUAGE sql AS 'SELECT * FROM memory.facts'"


@pytest.mark.parametrize(
    ("change", "dependent"),
    [
        (OTHER_PARAMETERS, "CREATE VIEW public.mine AS SELECT * FROM memory.profile(NULL)"),
        (OTHER_PARAMETERS, "CREATE VIEW memory.mine AS SELECT * FROM memory.profile(NULL)"),
        (OTHER_COLUMNS, "CREATE VIEW public.mine AS SELECT text FROM memory.facts"),
        (OTHER_COLUMNS, OF_FACTS),
        (OTHER_COLUMNS, "CREATE TABLE public.mine (one memory.facts)"),
    ],
)
async def test_nothing_is_taken_away_from_those_who_depend_on_it(database: str, change: str, dependent: str) -> None:
    rows(database, change, OLD, dependent)
    before = rows(database, DEFINITIONS)
    with pytest.raises(SchemaInUseError, match=r"as they are: drop (memory\.)?mine.*, migrate, and create it"):
        await migrate(database)
    assert rows(database, DEFINITIONS) == before


async def test_it_is_not_touched_where_it_is_up_to_date(database: str) -> None:
    """Its views have no lock to wait for."""
    with psycopg.connect(database) as reader:
        reader.execute("SELECT * FROM memory.current_facts")
        await migrate(database)


async def test_a_schema_of_another_application_is_refused_and_an_empty_one_is_filled(empty_database: str) -> None:
    rows(empty_database, "CREATE SCHEMA memory; CREATE TABLE memory.pages (one integer)")
    with pytest.raises(MemorySchemaRefusedError, match="of another application, with pages: rename"):
        await migrate(empty_database)
    assert rows(empty_database, "SELECT count(*) FROM memory.pages") == [(0,)]
    rows(empty_database, "DROP TABLE memory.pages; GRANT USAGE ON SCHEMA memory TO PUBLIC")
    await migrate(empty_database)
    assert rows(empty_database, "SELECT * FROM memory.current_facts") == []
