"""`make properties`: the properties over thousands of histories; with FAULTS=1 the table of what they find."""

import argparse
import logging
import sys
import time

import structlog

from tests.properties.faults.table import write_fault_table
from tests.properties.runs import PROPERTIES, fresh_postgres, run_property, running_harness


def check_properties(url: str, chosen: argparse.Namespace) -> int:
    """Run each property; gives how many histories are wrong, and prints the smallest form of each."""
    failed = 0
    with running_harness(url) as (runner, harness):
        for one in PROPERTIES:
            if chosen.property not in (None, one.name):
                continue
            started = time.monotonic()
            left = range(chosen.histories)
            while left:
                found = run_property(runner, harness, one, histories=left, seed=chosen.seed)
                left = range(found.history + 1, chosen.histories)
                if found.error is not None:
                    failed += 1
                    _say(f"{one.name}, history {found.history} of seed {chosen.seed}:\n{found.error}\n")
            each = 1000 * (time.monotonic() - started) / chosen.histories
            _say(f"{one.name}: {chosen.histories} histories of seed {chosen.seed}, {each:.0f} ms each")
    return failed


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--histories", type=int, default=2000, help="how many of each property")
    parser.add_argument("--seed", type=int, default=0, help="others give other histories")
    parser.add_argument("--property", choices=[one.name for one in PROPERTIES], help="only this one")
    parser.add_argument("--faults", action="store_true", help="put former faults back, and write the table")
    parser.add_argument("--fault", action="append", default=[], help="put only this one back, and write its row")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if chosen.faults or chosen.fault:
        return write_fault_table(chosen.histories, chosen.seed, chosen.fault, _say)
    with fresh_postgres() as url:
        return check_properties(url, chosen)


if __name__ == "__main__":
    sys.exit(main())
