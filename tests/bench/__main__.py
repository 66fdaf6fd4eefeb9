"""`python -m tests.bench`: measure, and write docs/performance.md.

With `--quick` less and shorter, to see that it works; the page is then printed, unless `--output` names a file.
"""

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from tests.bench.environment import timed_steps
from tests.bench.page import page
from tests.bench.plan import FULL, QUICK, measure
from tests.support.paths import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute or two, for figures that mean little")
    parser.add_argument("--seconds", type=float, help="length of each measurement; half of it is warm-up")
    parser.add_argument("--output", type=Path, help="the file to write")
    given = parser.parse_args()
    tell = timed_steps()
    plan = QUICK if given.quick else FULL
    if given.seconds:
        plan = replace(plan, seconds=given.seconds, warm_up=given.seconds / 2)
    text = page(asyncio.run(measure(plan, tell)))
    output = given.output or (None if given.quick else ROOT / "docs" / "performance.md")
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)
        tell(f"written to {output}")


if __name__ == "__main__":
    main()
