"""The discovery file, which a running `mnemolog up` keeps in its data folder so that clients find its servers."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import BaseModel, ValidationError

from mnemolog.errors import NotConnectedError, SettingsError
from mnemolog.settings import Settings

DISCOVERY_FILE = "connection.json"


class ServerAddresses(BaseModel, frozen=True, defer_build=True):
    """Where the servers of a running `up` are. The file holds a password and is its owner's alone (0600)."""

    kafka: str
    postgres: str
    topic_prefix: str
    metrics_url: str | None
    http_url: str | None = None
    pid: int
    partitions: int | None = None


def with_discovered_servers(settings: Settings, *, needed: Sequence[str] = ("kafka", "postgres")) -> Settings:
    """Complete `settings` with the servers of a running `up` on the same data folder, if a `needed` one is not set.

    Raises `NotConnectedError` when no `up` runs.
    """
    check_addresses(settings)
    if all(getattr(settings, name) for name in needed):
        return settings
    folder = settings.data_dir.resolve()
    path = folder / DISCOVERY_FILE
    advice = (
        f"`mnemolog up --data {folder}` runs one; MNEMOLOG_DATA_DIR names another folder, "
        "MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES other servers"
    )
    try:
        found = ServerAddresses.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise NotConnectedError(f"no stack runs over {folder}: {advice}") from error
    except (OSError, ValidationError) as error:
        raise NotConnectedError(f"{path} cannot be read ({error}): {advice}") from error
    if not _is_running(found.pid):
        raise NotConnectedError(f"the stack over {folder} (process {found.pid}) has ended: {advice}")
    counted = not settings.kafka and "partitions" not in settings.model_fields_set and found.partitions
    return settings.model_copy(
        update={
            "kafka": settings.kafka or found.kafka,
            "postgres": settings.postgres or found.postgres,
            "topic_prefix": settings.topic_prefix or found.topic_prefix,
            "partitions": counted or settings.partitions,
        }
    )


def check_addresses(settings: Settings) -> None:
    """Raise `SettingsError` where a server's address is not valid."""
    try:
        conninfo_to_dict(settings.postgres or "")
    except ProgrammingError as error:
        raise SettingsError(
            f"MNEMOLOG_POSTGRES is not a valid database URL ({str(error).strip()}): "
            "write it like postgresql://user:password@localhost:5432/database"
        ) from error
    hosts = (settings.kafka or "localhost:9092").split(",")
    if any(not port.isdecimal() for _, _, port in (host.rpartition(":") for host in hosts)):
        raise SettingsError(f"MNEMOLOG_KAFKA is {settings.kafka!r}: write host:port, several separated by commas")


@contextmanager
def discovery_file(folder: Path, servers: ServerAddresses) -> Iterator[None]:
    """Keep the file for as long as the block runs."""
    path = folder / DISCOVERY_FILE
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(servers.model_dump_json(indent=2))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":  # where signal 0 is Ctrl-C; the file may be of an `up` in WSL
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        pass
    return True
