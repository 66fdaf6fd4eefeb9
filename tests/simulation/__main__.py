"""`make simulation`: many seeds, or one again; with FAULTS=1 the table of faults that it finds."""

# ruff: noqa: T201 -- it prints

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import count, islice

from tests.simulation.fault import Fault
from tests.simulation.faults import FAULTS
from tests.simulation.simulation import Result, simulate
from tests.simulation.workload import WEATHERS, weather_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, twice: both runs have to be equal")
    parser.add_argument("--only", nargs="*", choices=WEATHERS, default=[], help="only seeds of these situations")
    parser.add_argument("--faults", action="store_true", help="put each known fault back and see when it is found")
    parser.add_argument("--fault", choices=[fault.name for fault in FAULTS], help="put this one back")
    parser.add_argument("--told", default="", help="it counts as found where the checker says this")
    chosen = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets has a part in what happens
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], _environment())  # noqa: S606 -- itself
    gc.freeze()  # what is imported stays: a collection before each seed need not look at it
    every = (seed for seed in count(chosen.first) if not chosen.only or weather_of(seed) in chosen.only)
    seeds = list(islice(every, chosen.seeds))
    if chosen.faults:
        return _table(FAULTS, seeds)
    if chosen.fault:
        return _table([fault for fault in FAULTS if fault.name == chosen.fault], seeds, chosen.told)
    if chosen.seed is not None:
        return _twice(chosen.seed)
    return _many(seeds)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": "0"}


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


def _table(faults: Iterable[Fault], seeds: Sequence[int], told: str = "") -> int:
    print("| fault | found after | what the checker says |\n|---|---|---|")
    missed = 0
    for fault in faults:
        with fault.put_back():
            results = ((seed, problem) for seed in seeds for problem in simulate(seed).problems if told in problem)
            seed, problem = next(results, (None, ""))
        missed += seed is None
        found = f"not in {len(seeds)} seeds" if seed is None else f"{seeds.index(seed) + 1} seeds"
        print(f"| {fault.words} | {found} | {problem} |", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
