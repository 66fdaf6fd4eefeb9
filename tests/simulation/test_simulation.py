"""Some hundred seeds of the simulation, and faults that it finds soon. `make simulation` runs thousands of seeds."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SEEDS = 200


def begin(*arguments: str) -> subprocess.Popen[str]:
    """In a process of its own: the order of sets, which depends on a seed of Python, has a part in what happens."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def simulation(*arguments: str) -> tuple[int, str]:
    with begin(*arguments) as process:
        told, _ = process.communicate()
    return process.returncode, told


def test_no_seed_loses_doubles_reorders_or_blocks_anything() -> None:
    half = str(SEEDS // 2)
    with begin("--seeds", half) as one, begin("--seeds", half, "--first", half) as other:
        told = [process.communicate()[0] for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), told


def test_a_seed_is_repeatable() -> None:
    code, told = simulation("--seed", "3")
    assert code == 0, told


@pytest.mark.parametrize(
    ("fault", "first", "told"),
    [
        ("fausts_account", 3, "had no output yet"),
        ("offset_first", 0, "stuck: mnemolog-project"),
        ("first_partition", 0, "had no output yet"),
        ("duplicates_applied", 0, "do not have one end"),
        ("stale_unmarked", 0, "marked stale"),
        ("no_wait", 0, "did not see"),
        ("decided_again", 11, "decided again"),
        ("finished_at_hand_on", 0, "had no output yet"),
        ("later_windows_go_on", 20, "stuck"),
        ("chain_waits_not", 50, "came before"),
        ("lane_without_limit", 0, "beside a hot owner"),
        ("newest_committed", 0, "had no output yet"),
        ("command_lane", 0, "came before"),
        ("hot_owner", 0, "beside a hot owner"),
        ("endless_retries", 0, "stuck"),
        ("forgotten_failures", 0, "ended as failed"),
    ],
)
def test_a_fault_that_is_put_back_is_found(fault: str, first: int, told: str) -> None:
    """Those that are found within some seeds; `make simulation FAULTS=1` looks for the rarer ones as well."""
    code, found = simulation("--fault", fault, "--seeds", "20", "--first", str(first))
    assert code == 0, found
    assert told in found
