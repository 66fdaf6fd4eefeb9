"""Some seeds of the simulation, and faults that it finds soon. `make simulation` runs thousands of seeds."""

import os
import subprocess
import sys
from typing import get_args

import pytest

from tests.simulation.faults import FAULTS, Fault
from tests.simulation.workload import WEATHERS, OneStage, Weather
from tests.support.paths import ROOT

EACH = 10
"""So many seeds of each situation, but for the one that takes longest."""
SITUATIONS: dict[tuple[Weather, ...], int] = {
    get_args(OneStage): EACH,
    ("batches", "chain"): EACH,
    ("servers", "zombies"): EACH,
    ("crowded",): EACH // 3,
}
PARTS = 3
SOON_FOUND = [fault.name for fault in FAULTS if fault.rule]


def run_simulation(*arguments: str) -> None:
    """In a process of its own: the order of sets, which depends on a seed of Python, has a part in what happens."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("situations", "each"), SITUATIONS.items(), ids=map(" ".join, SITUATIONS))
def test_no_seed_loses_doubles_reorders_or_blocks_anything(situations: tuple[Weather, ...], each: int) -> None:
    run_simulation("--only", *situations, "--seeds", str(each * len(situations)))


def test_a_seed_is_repeatable() -> None:
    run_simulation("--seed", "3")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_functions_that_a_fault_replaces_exist(fault: Fault) -> None:
    with fault.put_back():
        pass


@pytest.mark.parametrize("part", range(PARTS))
def test_faults_that_are_put_back_are_found(part: int) -> None:
    """By the rule that each breaks, in seeds of the situation where it is found soonest, and then in others.

    A change of the code makes another run of each seed, so three times as many seeds are tried as above.
    `make simulation FAULTS=1` looks for the rarer faults as well.
    """
    run_simulation("--seeds", str(3 * EACH * len(WEATHERS)), "--faults", *SOON_FOUND[part::PARTS])
