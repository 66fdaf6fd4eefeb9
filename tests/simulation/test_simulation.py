"""Some hundred seeds of the simulation, and faults that it finds soon. `make simulation` runs thousands of seeds."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SEEDS = 200


def simulation(*arguments: str) -> tuple[int, str]:
    """In a process of its own: the order of sets, which depends on a seed of Python, has a part in what happens."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_no_seed_loses_doubles_reorders_or_blocks_anything() -> None:
    code, told = simulation("--seeds", str(SEEDS))
    assert code == 0, told


def test_a_seed_is_repeatable() -> None:
    code, told = simulation("--seed", "3")
    assert code == 0, told


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("fausts_account", "had no output yet"),
        ("newest_committed", "had no output yet"),
        ("command_lane", "came before"),
        ("hot_owner", "beside a hot owner"),
        ("endless_retries", "stuck"),
        ("forgotten_failures", "ended as failed"),
    ],
)
def test_a_fault_that_is_put_back_is_found(fault: str, told: str) -> None:
    code, found = simulation("--fault", fault, "--seeds", "20")
    assert code == 0, found
    assert told in found
