"""Databases and data folders that are removed after use."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql


@contextmanager
def temporary_folder(prefix: str = "mnemolog-tests-", parent: str | None = None) -> Iterator[Path]:
    """A folder for server data. Other users may pass through it: as root, Postgres runs as one of them."""
    # Not pytest's own folder: another run of pytest closes that to other users.
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def fresh_database(admin_url: str, *, template: str = "template1", name: str | None = None) -> Iterator[str]:
    """The URL of a new database, copied from `template`; dropped afterwards, whoever is connected to it."""
    name = name or f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def database_name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
