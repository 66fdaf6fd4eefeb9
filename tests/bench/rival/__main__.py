"""`python -m tests.bench.rival`: the same measurements with mem0 beside Mnemolog, in one run.

Prints both columns and their ratio, and writes tests/bench/rival/comparison.json, from which `make bench` takes them
into docs/performance.md. With `--quick` less and shorter, to see that it works; nothing is written then.
"""

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from tests.bench.environment import timed_steps
from tests.bench.rival.comparison import FIGURES, report
from tests.bench.rival.measure import FULL, QUICK, Window, compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="some minutes, for figures that mean little")
    parser.add_argument("--seconds", type=float, help="length of each measurement; a third of it is warm-up")
    parser.add_argument("--facts", type=int, help="how many memories are searched in")
    parser.add_argument("--output", type=Path, help="the file to write")
    given = parser.parse_args()
    tell = timed_steps()
    plan = QUICK if given.quick else FULL
    if given.seconds:
        plan = replace(plan, window=Window(warm_up=given.seconds / 3, seconds=given.seconds))
    both = asyncio.run(compare(replace(plan, facts=given.facts or plan.facts), tell))
    sys.stdout.write(report(both))
    if output := given.output or (None if given.quick else FIGURES):
        output.write_bytes(both.to_json())
        tell(f"written to {output}")


if __name__ == "__main__":
    main()
