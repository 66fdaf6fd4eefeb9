"""Databases and data folders that are removed after use."""

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder with a random name is made in it
_PREFIX, _LOCK = "mnemolog-tests-", ".lock"
MEMORY_BYTES: Final = 4 * 2**30
"""What has to be free in memory for servers' data to lie there: a process of `make test` takes up to half a GiB."""


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
def server_folder(memory: Path = MEMORY) -> Iterator[Path]:
    """A temporary folder for servers whose data need not survive a power cut, in `memory` if much is free there.

    There a database is made and dropped in a seventh of the time that a disk takes, and topics in half of it.
    """
    if not _has_room(memory):
        with temporary_folder() as folder:
            yield folder
        return
    _remove_left_folders(memory)
    with temporary_folder(prefix=_PREFIX, parent=str(memory)) as folder, (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _remove_left_folders(memory: Path) -> None:
    """Those of runs that were killed: nobody holds their lock, and what lies in them takes memory."""
    for path in memory.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path.parent)


def _has_room(memory: Path) -> bool:
    """Whether files may be put there. What a container may use of it is often little, and of RAM less than that."""
    if not os.access(memory, os.W_OK):
        return False
    return min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) >= MEMORY_BYTES


@contextmanager
def fresh_database(admin_url: str, *, template: str = "template1", name: str | None = None) -> Iterator[str]:
    """The URL of a new database, copied from `template`; dropped afterwards, whoever is connected to it."""
    name = name or f"test_{uuid.uuid4().hex[:12]}"
    database = sql.Identifier(name)
    with psycopg.connect(admin_url, autocommit=True) as admin:
        copied = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(database, sql.Identifier(template))
        admin.execute(copied)  # page by page through the WAL, as by default, takes a third more time
        try:
            yield urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


def database_name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
