"""Resolve the jars of the embedded Kafka and write them down with their sums.

Run it to move to another Kafka version:
    python scripts/kafka_jar_lock.py org.apache.kafka:kafka_2.13:4.1.2 org.slf4j:slf4j-simple:1.7.36
Resolving takes about a minute; starting the embedded stack only ever reads the list that this writes.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from pathlib import Path

from jgo.maven import MavenContext, PythonResolver

LOCK = Path(__file__).parent.parent / "mnemolog" / "embedded" / "kafka.jars.lock"
HEADER = "# group:artifact:version sha256; written by scripts/kafka_jar_lock.py\n"


def lock_lines(coordinates: list[str], *, cache: Path) -> list[str]:
    """One `group:artifact:version sha256` line per jar of the run-time class path, sorted."""
    context = MavenContext(repo_cache=cache, resolver=PythonResolver())
    inputs, transitive = context.resolver.resolve([context.create_dependency(text) for text in coordinates])
    jars = {
        dependency.artifact
        for dependency in (*inputs, *transitive)
        if dependency.scope not in ("test", "provided", "system") and not dependency.optional
    }
    return sorted(
        f"{jar.groupId}:{jar.artifactId}:{jar.version} {hashlib.sha256(jar.resolve().read_bytes()).hexdigest()}"
        for jar in jars
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("coordinates", nargs="+", help="group:artifact:version")
    with tempfile.TemporaryDirectory() as cache:
        lines = lock_lines(parser.parse_args().coordinates, cache=Path(cache))
    LOCK.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    print(f"{LOCK}: {len(lines)} jars")


if __name__ == "__main__":
    main()
