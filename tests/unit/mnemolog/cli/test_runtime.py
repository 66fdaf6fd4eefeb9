import subprocess
import sys

PROGRAM = """
import gc
from mnemolog.cli.runtime import run_and_exit

async def work():
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(10_000)]
    return 7 if gc.get_stats()[0]["collections"] - before <= 1 else 1

run_and_exit(work())
"""


def test_a_process_that_serves_ends_with_its_code_and_seldom_looks_for_cycles() -> None:
    assert subprocess.run([sys.executable, "-c", PROGRAM], check=False).returncode == 7
