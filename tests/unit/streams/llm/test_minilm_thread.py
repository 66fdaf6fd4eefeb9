"""A local model is closed, also by a program that only ends."""

import subprocess
import sys

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
