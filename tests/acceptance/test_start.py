"""`mnemolog.start()`: the whole stack beside the program, from an installed wheel and without a clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.extra_sizes import build

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(300)]
PROGRAM = """
import sys
import mnemolog
from mnemolog.errors import DataFolderInUse

def facts(memory):
    return [fact.text for fact in memory.facts(user_id="ann")]

assert mnemolog.__file__.startswith(sys.argv[2]), mnemolog.__file__
steps = []
with mnemolog.start(sys.argv[1], progress=lambda step, done, total: steps.append(step)) as memory:
    memory.add("I live in Zurich.", user_id="ann", speaker="Ann", wait=60)
    assert facts(memory) == ["Ann lives in Zurich."]
    with mnemolog.MemoryClient(settings=mnemolog.Settings(data_dir=sys.argv[1])) as another:
        assert facts(another) == facts(memory)
    try:
        with mnemolog.start(sys.argv[1]):
            raise AssertionError
    except DataFolderInUse:
        pass
assert "starting the stages" in steps
with mnemolog.start(sys.argv[1]) as memory:
    assert facts(memory) == ["Ann lives in Zurich."]
    raise KeyError("the program's own error comes out, and everything is stopped")
"""


def test_a_program_runs_the_stack_in_its_own_process(tmp_path: Path) -> None:
    """The wheel's files stand before the clone on the path; dependencies are those of this environment."""
    target = tmp_path / "site"
    wheel = build(tmp_path)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(target)], check=True)
    run = [sys.executable, "-W", "error", "-P", "-c", PROGRAM, str(tmp_path / "data"), str(target)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
    environment = inherited | {"PYTHONPATH": str(target)}
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("KeyError: \"the program's own error"), done.stderr
    assert "Traceback" not in done.stderr.partition("Traceback")[2], done.stderr
