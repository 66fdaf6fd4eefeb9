import os
import subprocess
import sys

from tests.bench.environment import cpu_seconds

BUSY = """
import sys, time
while time.process_time() < 0.5:
    pass
print(flush=True)
sys.stdin.read()
"""


def test_a_child_counts_for_itself_and_not_for_this_process() -> None:
    before = cpu_seconds({"client": os.getpid()})["client"]
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = cpu_seconds({"client": os.getpid(), "worker": child.pid})
    assert after["worker"] >= 0.4
    assert after["client"] - before < 0.25


def test_another_process_counts_with_its_children() -> None:
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}]); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_seconds({"worker": child.pid})["worker"] >= 0.4
