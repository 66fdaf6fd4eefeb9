import subprocess
import sys

SERVING = """
from mnemolog.cli.runtime import run_and_exit

async def work():
    return 7

run_and_exit(work())
"""
COLLECTIONS = """
import gc
from mnemolog.cli import main

try:
    main(["--version"])
finally:
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(10_000)]
    print(gc.get_stats()[0]["collections"] - before)
"""


def test_a_process_that_serves_ends_with_its_code() -> None:
    assert subprocess.run([sys.executable, "-c", SERVING], check=False).returncode == 7


def test_a_command_seldom_looks_for_cycles() -> None:
    shown = subprocess.run([sys.executable, "-c", COLLECTIONS], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert int(shown.split()[-1]) <= 1
