"""Runs mem0 in an environment of its own, and is told what to do by `mem0_process`.

    .venv-rival/bin/python tests/bench/rival/mem0_client.py '{"task": "store", ...}'

prints one JSON object a line: `{}` when it is ready; then, for each line of its standard input, what was done by then.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LIMIT = 10


def refuse_other_hosts(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook. Raises PermissionError for a connection to another machine."""
    if event == "socket.connect" and isinstance(address := arguments[1], tuple) and address[0] not in LOOPBACK:
        raise PermissionError(f"mem0 connects to {address[0]}: only loopback is allowed")
    if event == "socket.getaddrinfo" and arguments[0] not in LOOPBACK:
        raise PermissionError(f"mem0 looks up {arguments[0]}: only loopback is allowed")


class Tally:
    """What has been done so far; several threads write it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = {"done": 0, "memories": 0, "calls": 0, "prompt_tokens": 0, "reply_tokens": 0}
        self.error: str | None = None

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def called(self, _llm: object, response: Any, _parameters: object) -> None:
        """A `response_callback` of mem0."""
        usage = response.usage
        self.add(calls=1, prompt_tokens=usage.prompt_tokens, reply_tokens=usage.completion_tokens)

    def report(self) -> dict[str, Any]:
        with self._lock:
            return {**self._counts, "error": self.error}


class Turns:
    """The turns of a file, one for each call, until `stop`."""

    def __init__(self, path: str) -> None:
        self._lines: Iterator[str] = iter(Path(path).read_text().splitlines())
        self._lock = threading.Lock()
        self.stopped = False

    def next(self) -> dict[str, Any] | None:
        """Raises RuntimeError where the file has no more: a figure would mean nothing."""
        with self._lock:
            if self.stopped:
                return None
            line = next(self._lines, None)
        if line is None:
            raise RuntimeError("there are too few turns for this rate")
        turn: dict[str, Any] = json.loads(line)
        return turn


def configuration(job: dict[str, Any], tally: Tally) -> dict[str, Any]:
    """The documented one for Postgres; everything else is mem0's default."""
    model = {"openai_base_url": job["base_url"], "api_key": "none"}
    store = {"connection_string": job["postgres"]} | ({"maxconn": job["pool"]} if job.get("pool") else {})
    return {
        "vector_store": {"provider": "pgvector", "config": store},
        "llm": {"provider": "openai", "config": {**model, "response_callback": tally.called}},
        "embedder": {"provider": "openai", "config": model},
    }


def record(tally: Tally, result: dict[str, Any]) -> None:
    if not result["results"]:
        raise RuntimeError("a turn left no memory: the figures mean nothing")
    tally.add(done=1, memories=len(result["results"]))


def store_in_threads(memory: Any, job: dict[str, Any], turns: Turns, tally: Tally) -> None:
    def run() -> None:
        try:
            while turn := turns.next():
                record(tally, memory.add(turn["messages"], user_id=turn["user_id"], infer=job["infer"]))
        except Exception as error:  # noqa: BLE001 -- the parent process ends the measurement with it
            tally.error = repr(error)

    threads = [threading.Thread(target=run) for _ in range(job["at_once"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def store_in_tasks(memory: Any, job: dict[str, Any], turns: Turns, tally: Tally) -> None:
    async def run() -> None:
        try:
            while turn := turns.next():
                record(tally, await memory.add(turn["messages"], user_id=turn["user_id"], infer=job["infer"]))
        except Exception as error:  # noqa: BLE001 -- the parent process ends the measurement with it
            tally.error = repr(error)

    await asyncio.gather(*(run() for _ in range(job["at_once"])))


def answer(report: Callable[[], dict[str, Any]], stop: Callable[[], None]) -> None:
    """A report for each line of standard input; its end stops the work."""
    for _ in sys.stdin:
        say(report())
    stop()


def store(job: dict[str, Any], tally: Tally) -> None:
    from mem0 import AsyncMemory, Memory  # type: ignore[import-not-found]  # noqa: PLC0415 -- after the audit hook

    turns = Turns(job["turns"])
    memory = (AsyncMemory if job["tasks"] else Memory).from_config(configuration(job, tally))
    create_tables(memory)
    say({})

    def stop() -> None:
        turns.stopped = True

    answering = threading.Thread(target=answer, args=(tally.report, stop))
    answering.start()
    if job["tasks"]:
        asyncio.run(store_in_tasks(memory, job, turns, tally))
    else:
        store_in_threads(memory, job, turns, tally)
    answering.join()
    say(tally.report())
    memory.close()


def search(job: dict[str, Any], tally: Tally) -> None:
    """Create the tables, wait for a line, and search; milliseconds and texts of each search."""
    from mem0 import Memory  # noqa: PLC0415 -- after the audit hook

    memory = Memory.from_config(configuration(job, tally))
    create_tables(memory)
    say({})
    sys.stdin.readline()
    waits, texts = [], []
    for number, (user_id, question) in enumerate([job["questions"][0], *job["questions"]]):
        started = time.perf_counter()
        found = memory.search(question, filters={"user_id": user_id}, top_k=LIMIT)
        if number:
            waits.append((time.perf_counter() - started) * 1000)
            texts.append([hit["memory"] for hit in found["results"]])
    say({"waits": waits, "texts": texts})
    memory.close()


def create_tables(memory: Any) -> None:
    """By a first search; concurrent first calls would fail, because each creates them."""
    memory.vector_store.search(query="", vectors=[0.0] * memory.embedding_model.config.embedding_dims, top_k=1)


def say(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.addaudithook(refuse_other_hosts)
    {"store": store, "search": search}[(given := json.loads(sys.argv[1]))["task"]](given, Tally())
