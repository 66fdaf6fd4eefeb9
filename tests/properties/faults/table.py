"""The table of former faults: each is put back, seen by its example test, and looked for by the properties."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from tests.properties.faults import FAULTS, Fault
from tests.properties.runs import PROPERTIES, Found, Property, fresh_postgres, run_property, running_harness
from tests.support.paths import ROOT

FOUND: Final = Path(__file__).with_name("found.md")
PROCESSES: Final = 1
_TESTS_FAILED: Final = 1


@dataclass(frozen=True)
class Search:
    """What the properties found of a fault: which of them, and after how many histories; the first of it in words."""

    fault: Fault
    found_by: str | None
    histories: int
    first: str
    seconds: float

    @property
    def row(self) -> str:
        return f"| {self.fault.what} | {self.found_by or 'none'} | {self.histories} |"


def write_fault_table(histories: int, seed: int, names: list[str], say: Callable[[str], None]) -> int:
    """Look for each fault in up to `histories` of its property; gives how many were not found.

    Writes the rows of these faults to found.md; those of others stay as they are.
    """
    chosen = [fault for fault in FAULTS if fault.name in names or not names]
    with ProcessPoolExecutor(PROCESSES) as pool:
        tasks = [pool.submit(_search, fault.name, histories, seed) for fault in chosen]
        searches = [_told(task.result(), say) for task in tasks]
    *head, table = FOUND.read_text(encoding="utf-8").split("\n\n")
    FOUND.write_text("\n\n".join([*head, table_with(table, searches)]) + "\n", encoding="utf-8")
    return sum(one.found_by is None for one in searches)


def table_with(table: str, searches: Sequence[Search]) -> str:
    """The table with the rows of these searches, in the order of the faults."""
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in table.strip().splitlines()}
    rows |= {one.fault.what: one.row for one in searches}
    known = (rows[fault.what] for fault in FAULTS if fault.what in rows)
    return "\n".join(["| fault | found by | after how many histories |", "|---|---|---|", *known])


def _told(search: Search, say: Callable[[str], None]) -> Search:
    say(f"{search.fault.name} {search.row} {search.seconds:.0f} s {search.first}")
    return search


def _search(name: str, histories: int, seed: int) -> Search:
    """In a process of its own, because what is put back is put back everywhere in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    (fault,) = (one for one in FAULTS if one.name == name)
    started = time.monotonic()
    check_example(fault)
    (tested,) = (one for one in PROPERTIES if one.name == fault.found_by)
    with fresh_postgres() as url:
        found = _found(fault, tested, url, histories, seed)
    seconds = time.monotonic() - started
    if found.error is None:
        return Search(fault, None, histories, "", seconds)
    return Search(fault, tested.name, found.history + 1, str(found.error).splitlines()[0], seconds)


def _found(fault: Fault, tested: Property, url: str, histories: int, seed: int) -> Found:
    """The first history that is wrong with the fault, and right without it."""
    found = Found(-1)
    while found.history + 1 < histories:
        tried = range(found.history + 1, histories)
        with fault.put_back(), running_harness(url) as (runner, harness):
            found = run_property(runner, harness, tested, histories=tried, seed=seed)
        only = range(found.history, found.history + 1)
        with running_harness(url) as (runner, harness):
            if found.error is None or run_property(runner, harness, tested, histories=only, seed=seed).error is None:
                return found
    return Found(histories)


def check_example(fault: Fault) -> None:
    """Raise where the example test does not fail while the fault is back: then it is not back."""
    if not fault.example:
        return
    options = ["-p", "tests.properties.faults.plugin", "--fault", fault.name, "-n0", "-q", "--no-header"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, fault.example], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if run.returncode != _TESTS_FAILED:
        raise AssertionError(
            f"{fault.example} does not see that {fault.what}:\n{run.stdout[-2000:]}{run.stderr[-500:]}"
        )
