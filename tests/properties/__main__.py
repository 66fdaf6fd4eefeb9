"""`make properties`: the properties over thousands of histories; with FAULTS=1 the table of what they find."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from tests.properties.faults import FAULTS, Fault
from tests.properties.runs import PROPERTIES, run_property, running_harness
from tests.support.databases import fresh_database, temporary_folder
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "discussions.md"
BEGIN, END = "<!-- faults: written by make properties FAULTS=1 -->", "<!-- faults: end -->"


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


def check_properties(url: str, chosen: argparse.Namespace) -> int:
    """Run each property; gives how many found a fault, and prints the smallest history of each."""
    failed = 0
    with running_harness(url) as (runner, harness):
        for one in PROPERTIES:
            if chosen.property not in (None, one.name):
                continue
            started = time.monotonic()
            found = run_property(
                runner,
                harness,
                one,
                histories=chosen.histories,
                start=chosen.seed,
                shrink=not chosen.no_shrink,
                progress=_progress(one.name, chosen.histories),
            )
            _say(f"{one.name}: {found.tried} histories of seed {chosen.seed} in {time.monotonic() - started:.0f} s")
            if found.error is not None:
                failed += 1
                _say(f"a fault, found after {found.first_after} histories:\n{found.error}\n")
    return failed


def write_fault_table(url: str, chosen: argparse.Namespace) -> int:
    """Put each fault back and run the properties until one finds it; gives how many none has found."""
    rows, missed = [], 0
    for fault in FAULTS:
        with fault.put_back():
            name, after = _first_to_find(url, fault, chosen)
        missed += name is None
        rows.append(f"| {fault.what} | {name or 'none'} | {after} |")
        _say(rows[-1])
    head = ["| fault | found by | after how many histories |", "|---|---|---|"]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table = "\n".join([BEGIN, "", *head, *rows, "", END])
    PAGE.write_text(before + table + rest.partition(END)[2], encoding="utf-8")
    return missed


def _first_to_find(url: str, fault: Fault, chosen: argparse.Namespace) -> tuple[str | None, int]:
    with running_harness(url) as (runner, harness):
        for one in sorted(PROPERTIES, key=lambda one: one.name != fault.found_by):
            found = run_property(runner, harness, one, histories=chosen.histories, start=chosen.seed, shrink=False)
            if found.first_after is not None:
                return one.name, found.first_after
    return None, chosen.histories


def _progress(name: str, histories: int) -> Callable[[int], None]:
    def tell(tried: int) -> None:
        if tried and tried % 200 == 0:
            sys.stderr.write(f"{name}: {tried} of {histories}\n")

    return tell


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--histories", type=int, default=2000, help="how many of each property")
    parser.add_argument("--seed", type=int, default=0, help="others give other histories")
    parser.add_argument("--property", choices=[one.name for one in PROPERTIES], help="only this one")
    parser.add_argument("--no-shrink", action="store_true", help="show the first faulty history, not the smallest")
    parser.add_argument("--faults", action="store_true", help="put former faults back, and write the table")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with fresh_postgres() as url:
        return write_fault_table(url, chosen) if chosen.faults else check_properties(url, chosen)


if __name__ == "__main__":
    sys.exit(main())
