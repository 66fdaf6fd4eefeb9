"""Kafka's jars: a locked list with checksums, fetched once into the user's cache and checked on each start."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from mnemolog.errors import JarsUnavailableError

LOCK_FILE = Path(__file__).with_name("kafka.jars.lock")
FETCH_STEP = "fetching Kafka"
FETCH_THREADS = 8
ATTEMPTS = 3
FETCH_TIMEOUT_SECONDS = 20

Progress = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and of how much; possibly from another thread than the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One line of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def read_lock(path: Path = LOCK_FILE) -> tuple[Jar, ...]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    parts = (line.replace(":", " ").split() for line in lines)
    return tuple(Jar(group=group, artifact=name, version=version, sha256=sha) for group, name, version, sha in parts)


def fetch_with_jgo(jar: Jar, scratch: Path) -> Path:
    """The downloaded file, in the scratch folder; jgo knows the repository. Raises OSError or RuntimeError."""
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415 - an optional extra

    context = MavenContext(repo_cache=scratch, resolver=PythonResolver(), timeout=FETCH_TIMEOUT_SECONDS)
    return Path(context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve())


def cache_folder(fallback: Path) -> Path:
    """The user's cache folder, or one below `fallback` where the user has none that can be written."""
    import platformdirs  # noqa: PLC0415 - an optional extra

    try:
        cache = Path(platformdirs.user_cache_dir("mnemolog"))
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, such as a container's
        return fallback / "cache"
    return cache if os.access(cache, os.W_OK) else fallback / "cache"


def ensure_jars(
    cache: Path,
    *,
    jars: tuple[Jar, ...],
    fetch: Callable[[Jar, Path], Path] = fetch_with_jgo,
    progress: Progress | None = None,
) -> Path:
    """Return a folder that holds exactly the named jars with the named sums.

    Missing and damaged files are fetched anew; several processes may call it at once. Blocks on the network.
    Raises JarsUnavailableError when a jar cannot be had, or has another sum than the lock file says.
    """
    digest = hashlib.sha256("\n".join(f"{jar} {jar.sha256}" for jar in jars).encode()).hexdigest()
    folder = cache / "kafka" / digest[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = [jar for jar in jars if not _has_expected_sum(folder / jar.file_name, jar)]
        if not wanted:
            return folder
        for left_over in folder.glob("fetching-*"):
            shutil.rmtree(left_over)
        report = progress or (lambda *_: None)
        with (
            tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch,
            ThreadPoolExecutor(FETCH_THREADS) as pool,
        ):
            report(FETCH_STEP, 0, len(wanted))
            tasks = [pool.submit(_fetch_one, jar, folder, Path(scratch), fetch) for jar in wanted]
            try:
                for done, task in enumerate(as_completed(tasks), start=1):
                    task.result()
                    report(FETCH_STEP, done, len(wanted))
            finally:
                pool.shutdown(cancel_futures=True)
    return folder


def _has_expected_sum(path: Path, jar: Jar) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _fetch_one(jar: Jar, folder: Path, scratch: Path, fetch: Callable[[Jar, Path], Path]) -> None:
    reason = ""
    for attempt in range(ATTEMPTS):
        attempt_folder = scratch / f"{jar.file_name}.{attempt}"
        attempt_folder.mkdir()
        try:
            fetched = fetch(jar, attempt_folder)
        except (OSError, RuntimeError) as error:
            reason = str(error)
            continue
        if _has_expected_sum(fetched, jar):
            fetched.replace(folder / jar.file_name)
            return
        reason = "the file has another sha256 than the lock file"
    raise JarsUnavailableError(
        f"{jar} could not be fetched in {ATTEMPTS} attempts ({reason}): "
        "check the network and free disk space, then start again"
    )


def main() -> None:
    """`python -m mnemolog.embedded.jars`: fetch what is missing into the user's cache."""
    try:
        fetched = ensure_jars(cache_folder(Path.cwd() / ".mnemolog"), jars=read_lock())
    except (JarsUnavailableError, OSError) as error:
        sys.exit(f"Kafka could not be fetched: {error}")
    print(fetched)  # noqa: T201 - its result


if __name__ == "__main__":
    main()
