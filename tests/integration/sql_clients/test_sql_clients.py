"""The SQL of the documentation, run by psql, JDBC and node-postgres: all give the same rows."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
import pytest

from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.errors import JarsUnavailableError
from mnemolog.schemas.entities import Alias
from tests.support.builders.commits import added, commit, day, fact_id_at, pending, replaced
from tests.support.builders.entity_events import entity_id_at, linked, registered, relation_stated, with_entities
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.paths import ROOT
from tests.support.programs import required_program

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(300)]
HERE: Final = Path(__file__).parent
SECONDS: Final = 200
STATEMENT, ROW, FIELD = "\x1d", "\x1e", "\x1f"
Answers = list[list[list[str]]]
Reader = Callable[[str, Sequence[str]], Answers]
ENVIRONMENT: Final = {**os.environ, "TZ": "UTC", "PGTZ": "UTC"}


def documented() -> list[str]:
    """Every statement that reads, of the README and of the pages about SQL."""
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/sql.md", "docs/how-to/query.md")]
    blocks = [block for page in pages for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL)]
    statements = [one.strip() for block in blocks for one in re.split(r";\n", block)]
    return [one for one in statements if one.startswith(("SELECT", "WITH"))]


WITH_PARAMETERS: Final = tuple(
    FIELD.join(one)
    for one in (
        (
            "SELECT text, state FROM memory.facts_as_of($1, $2, user_id => $3)",
            *("timestamptz=2026-01-02T12:00:00Z", "timestamptz=2026-01-02T12:00:00+01:00", "text=alice"),
        ),
        (
            "SELECT kind, text FROM memory.changes_between($1, $2, user_id => $3)",
            *("timestamptz=2026-01-01T00:00:00Z", "timestamptz=2030-01-01T00:00:00Z", "text=alice"),
        ),
        (
            "SELECT text, similarity FROM memory.search($1, $2::halfvec, user_id => $3, threshold => 0)",
            *("text=coffee", "halfvec=[0.6,0.8,0]", "text=alice"),
        ),
        ("SELECT text FROM memory.current_facts WHERE user_id = $1", "text=alice"),
    )
)


async def fill(db: ProjectedDatabase) -> None:
    known = commit(
        "t1",
        added("Lives in Vienna.", key="home_city", value="Vienna", category="identity"),
        added("Is allergic to nuts.", category="health"),
        added("Alice's wife Ana is a nurse."),
        at=day(1),
    )
    alice, nuts, ana, eva, acme = (entity_id_at(known, place) for place in range(5))
    user = Alias(text="Alice", kind="user", key="user")
    others = (("nuts", "other"), ("Ana", "person"), ("Eva", "person"), ("Acme", "organisation"))
    named = (
        registered("Alice", user),
        *(registered(name, place=n, kind=kind) for n, (name, kind) in enumerate(others, 1)),
    )
    stated = (
        relation_stated(1, alice, "allergic_to", nuts),
        relation_stated(2, alice, "spouse", ana),
        relation_stated(2, ana, "manager", eva),
        relation_stated(2, alice, "employer", acme),
    )
    await db.apply(
        with_entities(known, *named, linked(2, alice, ana), *stated),
        commit("t2", replaced("Lives in Munich.", fact_id_at(known), key="home_city", value="Munich"), at=day(2)),
        commit("t3", pending("Is not allergic to nuts.", fact_id_at(known, 1), needs_human=True), at=day(3)),
    )
    await db.journal_turns("t1", "t2", "t3", text="I live in Munich.")


def url_parts(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}"
    return {"host": host, "user": parts.username or "", "password": parts.password or "", "database": parts.path[1:]}


def psql(url: str, statements: Sequence[str]) -> Answers:
    """psql has no parameters of the protocol: it gets the values as literals."""
    command = [required_program("psql"), "--no-psqlrc", "-At", f"-F{FIELD}", f"-R{ROW}", "-v", "ON_ERROR_STOP=1", url]
    return [
        table(output([*command, "-c", with_literals(statement)], cwd=HERE).removesuffix("\n"))
        for statement in statements
    ]


def with_literals(statement: str) -> str:
    text, *fields = statement.split(FIELD)
    for place, field in enumerate(fields, 1):
        text = text.replace(f"${place}", "'" + field.split("=", 1)[1] + "'")
    return text


def jdbc(url: str, statements: Sequence[str]) -> Answers:
    required_program("javac")
    try:
        jars = ensure_jars(cache_folder(ROOT / ".mnemolog"), jars=read_lock(HERE / "jdbc.jars.lock"))
    except JarsUnavailableError as error:
        pytest.skip(str(error))
    parts = url_parts(url)
    address = "jdbc:postgresql://{host}/{database}?user={user}&password={password}".format(**parts)
    command = ["java", "-Duser.timezone=UTC", "-cp", f"{jars}/*", str(HERE / "Reader.java"), address]
    return tables(output(command, cwd=HERE, given=STATEMENT.join(statements)))


@pytest.fixture
def node_postgres(tmp_path: Path) -> Reader:
    """node-postgres as its lock file names it, from npm's cache where it is there."""
    required_program("node")
    npm = required_program("npm")
    for name in ("package.json", "package-lock.json", "reader.mjs"):
        shutil.copy(HERE / name, tmp_path)
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", "--prefer-offline", "--loglevel=error")
    fetched = subprocess.run(
        [npm, "ci", *quiet], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if fetched.returncode:
        pytest.skip(f"node-postgres could not be fetched: {fetched.stderr.strip()[-300:]}")

    def read(url: str, statements: Sequence[str]) -> Answers:
        return tables(output(["node", "reader.mjs", url], cwd=tmp_path, given=STATEMENT.join(statements)))

    return read


def output(command: list[str], *, cwd: Path, given: str = "") -> str:
    done = subprocess.run(
        command, input=given, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(text: str) -> Answers:
    return [table(one) for one in text.split(STATEMENT)]


def table(text: str) -> list[list[str]]:
    return [row.split(FIELD) for row in text.split(ROW)] if text else []


def expected(url: str, statements: Sequence[str]) -> Answers:
    """What Postgres gives as text."""
    with psycopg.connect(url, autocommit=True, options="-c timezone=UTC") as connection:
        answers = []
        for statement in statements:
            found = connection.execute(with_literals(statement).encode()).pgresult
            assert found is not None
            values = [[found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)]
            answers.append([[(value or b"").decode() for value in row] for row in values])
    return answers


@pytest.fixture(params=["psql", "jdbc", "node_postgres"])
def read(request: pytest.FixtureRequest) -> Reader:
    client: Reader = {"psql": psql, "jdbc": jdbc}.get(request.param) or request.getfixturevalue(request.param)
    return client


async def test_each_client_gives_the_rows_that_postgres_gives(db: ProjectedDatabase, read: Reader) -> None:
    await fill(db)
    assert len(documented()) > 15
    statements = [*documented(), *WITH_PARAMETERS]
    answers, wanted = read(db.url, statements), expected(db.url, statements)
    assert dict(zip(statements, answers, strict=True)) == dict(zip(statements, wanted, strict=True))
    assert [one for one, answer in zip(statements, wanted, strict=True) if not answer] == []
