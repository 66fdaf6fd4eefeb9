"""Kafka's classes in one file of the user's cache, as Java keeps them in memory: Kafka starts in half the time.

Java calls it an archive of class data (CDS). It fits one Java and these very jars, so both are in its name. It is made
in the background of the first start, and a start without it is only slower. One that Java refuses is made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mnemolog.embedded.child import Child, ServerCommand
from mnemolog.embedded.errors import ServerFailedError
from mnemolog.projections.logs import get_logger

MAKE_SECONDS = 300
CLASS_LIST = "classes.list"
CUT_LIST = "classes.cut.list"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    """The archive for this Java and these jars, which may not exist yet."""

    path: Path

    @classmethod
    def of(cls, java: Path, jars: Sequence[Path]) -> ClassArchive:
        identity = hashlib.sha256((java.parent.parent / "release").read_bytes())
        for jar in jars:  # Java compares them too, and ignores the archive after a change
            state = jar.stat()
            identity.update(f"{jar} {state.st_size} {state.st_mtime_ns}\n".encode())
        folder = jars[0].parent
        return cls(path=folder.with_name(f"{folder.name}-{identity.hexdigest()[:16]}.jsa"))

    def start_options(self, scratch: Path) -> tuple[str, ...]:
        """Java's options to use it, or to write down what has to be in it.

        With the former, Java ends at once where the archive is damaged or does not fit.
        """
        if self.path.exists():
            return ("-Xshare:on", f"-XX:SharedArchiveFile={self.path}", "-XX:+VerifySharedSpaces")
        return (f"-XX:DumpLoadedClassList={scratch / CLASS_LIST}",)

    def discard(self) -> bool:
        """Remove the archive; whether there was one."""
        with suppress(FileNotFoundError):
            self.path.unlink()
            return True
        return False

    async def make(self, scratch: Path, command: Callable[[Sequence[str]], ServerCommand]) -> None:
        """Make it of the classes that a running Kafka has loaded, unless another process is at it.

        `command` builds the call of Java with some options. A failure is only logged.
        """
        try:
            with self.path.with_suffix(".lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unfinished = self.path.with_suffix(".new")
                _cut_list(scratch)
                options = ("-Xshare:dump", f"-XX:SharedClassListFile={scratch / CUT_LIST}")
                child = Child(command((*options, f"-XX:SharedArchiveFile={unfinished}")))
                await child.wait_until_finished(timeout=MAKE_SECONDS)
                unfinished.replace(self.path)
                self._remove_older()
        except (OSError, ServerFailedError) as error:
            log.info("class_archive_not_made", error=str(error))

    def _remove_older(self) -> None:
        """Those of another Java, or of the same jars before they were fetched again: 64 MB each."""
        jars, _, _ = self.path.stem.rpartition("-")
        for other in self.path.parent.glob(f"{jars}-*.jsa"):
            if other != self.path:
                other.unlink(missing_ok=True)


def _cut_list(scratch: Path) -> None:
    """Java is still writing the list: take its whole lines."""
    lines = (scratch / CLASS_LIST).read_bytes()
    (scratch / CUT_LIST).write_bytes(lines[: lines.rfind(b"\n") + 1])
