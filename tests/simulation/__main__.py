"""`make simulation`: many seeds, or one again; with FAULTS=1 the table of faults that it finds."""

# ruff: noqa: T201 -- it prints

import argparse
import gc
import os
import sys
import time
from collections.abc import Sequence
from itertools import count, islice

from tests.simulation.faults import FAULTS, Fault
from tests.simulation.simulation import Result, simulate
from tests.simulation.workload import WEATHERS, weather_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, twice: both runs have to be equal")
    parser.add_argument("--only", nargs="*", choices=WEATHERS, default=[], help="only seeds of these situations")
    parser.add_argument(
        "--faults",
        nargs="*",
        choices=[one.name for one in FAULTS],
        help="put each known fault back and see when it is found; some by their own rules",
    )
    chosen = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets has a part in what happens
        arguments = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 -- itself
    gc.freeze()  # what is imported stays: a collection before each seed need not look at it
    every = (seed for seed in count(chosen.first) if not chosen.only or weather_of(seed) in chosen.only)
    seeds = list(islice(every, chosen.seeds))
    if chosen.faults is not None:
        return _table(seeds, chosen.faults)
    if chosen.seed is not None:
        return _twice(chosen.seed)
    return _many(seeds)


def _many(seeds: Sequence[int]) -> int:
    began, failed = time.monotonic(), 0
    for seed in seeds:
        result = simulate(seed)
        if result.problems:
            failed += 1
            _say(result)
    print(f"{len(seeds)} seeds, {failed} with problems, {time.monotonic() - began:.0f} s")
    return min(failed, 1)


def _twice(seed: int) -> int:
    one, other = simulate(seed), simulate(seed)
    _say(one)
    if one != other:
        print("the second run differs from the first: something is not simulated")
    return int(bool(one.problems) or one != other)


def _say(result: Result) -> None:
    for problem in result.problems or ("no problem",):
        print(f"seed {result.seed}: {problem}")
    if result.problems:
        print(f"again: make simulation SEED={result.seed}", flush=True)


def _table(seeds: Sequence[int], names: Sequence[str]) -> int:
    """Print when each fault is found; gives how many are not."""
    print("| fault | found after | what the checker says |\n|---|---|---|")
    missed = 0
    for fault in FAULTS:
        if names and fault.name not in names:
            continue
        tried = sorted(seeds, key=lambda seed: weather_of(seed) != fault.situation) if names else seeds
        found = _first_problem(fault, tried, fault.rule if names else "")
        missed += found is None
        place, problem = found or (f"not in {len(seeds)}", "")
        print(f"| {fault.words} | {place} seeds | {problem} |", flush=True)
    return missed


def _first_problem(fault: Fault, seeds: Sequence[int], rule: str) -> tuple[object, str] | None:
    """After how many seeds the checker says something by this rule while the fault is back, and what."""
    with fault.put_back():
        for place, seed in enumerate(seeds, 1):
            for problem in simulate(seed).problems:
                if rule in problem:
                    return place, problem
    return None


if __name__ == "__main__":
    sys.exit(main())
