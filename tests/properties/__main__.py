"""`make properties`: the properties over thousands of generated histories; with FAULTS=1 the table of what they find."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from tests.properties.registry import PROPERTIES
from tests.properties.runs import run_property, running_harness
from tests.support.databases import fresh_database, temporary_folder


@contextmanager
def fresh_postgres() -> Iterator[str]:
    """The URL of a migrated database on a Postgres of its own."""
    with asyncio.Runner() as runner, temporary_folder() as folder:
        stack = runner.run(EmbeddedStack.start(folder / "data", kafka=False, test=True))
        try:
            with fresh_database(stack.postgres_url) as url:
                runner.run(migrate(url))
                yield url
        finally:
            runner.run(stack.__aexit__(None, None, None))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--histories", type=int, default=2000, help="how many of each property")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--property", choices=[one.name for one in PROPERTIES], help="only this one")
    parser.add_argument("--no-shrink", action="store_true")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    failed = 0
    with fresh_postgres() as url, running_harness(url) as (runner, harness):
        for one in PROPERTIES:
            if chosen.property not in (None, one.name):
                continue
            started = time.monotonic()

            def tell(tried: int, name: str = one.name) -> None:
                if tried % 100 == 0:
                    print(f"{name}: {tried} of {chosen.histories}", file=sys.stderr, flush=True)

            found = run_property(
                runner,
                harness,
                one,
                histories=chosen.histories,
                start=chosen.seed,
                shrink=not chosen.no_shrink,
                progress=tell,
            )
            seconds = time.monotonic() - started
            print(f"{one.name}: {found.tried} histories in {seconds:.0f} s, seed {chosen.seed}", flush=True)
            if found.error is not None:
                failed += 1
                print(f"fault found after {found.first_after} histories:\n{found.error}\n", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
