"""The table of former faults: each is put back, and looked for by its property."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.properties.faults import FAULTS, Fault
from tests.properties.runs import PROPERTIES, Found, fresh_postgres, run_property, running_harness

FOUND: Final = Path(__file__).with_name("found.md")


def write_fault_table(histories: int, seed: int, names: list[str], say: Callable[[str], None]) -> int:
    """Look for each fault in up to `histories` of its property; gives how many were not found.

    Writes the rows of these faults to found.md; those of others stay as they are.
    """
    searches: dict[str, Found] = {}
    with fresh_postgres() as url:
        for fault in FAULTS:
            if fault.name in names or not names:
                searches[fault.what] = found = _search(fault, url, histories, seed)
                say(f"{fault.name} {found.history + 1} {str(found.error).splitlines()[0]}")
    *head, table = FOUND.read_text(encoding="utf-8").split("\n\n")
    FOUND.write_text("\n\n".join([*head, table_with(table, searches)]) + "\n", encoding="utf-8")
    return sum(found.error is None for found in searches.values())


def table_with(table: str, searches: Mapping[str, Found]) -> str:
    """The table with the rows of these faults in words, in the order of all faults."""
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in table.strip().splitlines()}
    for fault in FAULTS:
        if found := searches.get(fault.what):
            by, after = (fault.found_by, found.history + 1) if found.error else ("none", found.history)
            rows[fault.what] = f"| {fault.what} | {by} | {after} |"
    known = (rows[fault.what] for fault in FAULTS if fault.what in rows)
    return "\n".join(["| fault | found by | after how many histories |", "|---|---|---|", *known])


def _search(fault: Fault, url: str, histories: int, seed: int) -> Found:
    """The first history that is wrong with the fault, and right without it."""
    (tested,) = (one for one in PROPERTIES if one.name == fault.found_by)
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
