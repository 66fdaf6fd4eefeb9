"""A local model is closed, also by a program that only ends."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, atexit
from concurrent.futures import ThreadPoolExecutor
from mnemolog.streams.llm.minilm_embedder import end_thread

thread = ThreadPoolExecutor(max_workers=1)
thread.submit(print, "worked")
atexit.register(lambda: asyncio.run(end_thread(thread)))
"""


def test_a_thread_is_ended_at_the_exit_of_the_program() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("worked\n", "")


FORKED = """
import os, sys
from mnemolog.streams.llm.minilm_embedder import load_model

load_model()
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
load_model()
sys.exit(4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_uses_a_model_of_its_own_and_ends() -> None:
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False).returncode == 4
