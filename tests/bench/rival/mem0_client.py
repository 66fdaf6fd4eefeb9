"""Runs mem0 in an environment of its own; `mem0_process` starts it and asks it.

    .venv-rival/bin/python tests/bench/rival/mem0_client.py '{"task": "store", ...}'

prints one JSON object a line: `{}` when it is ready; then, for each line of its standard input, what was done by then.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
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

    def stored(self, result: dict[str, Any]) -> None:
        """Raises RuntimeError for a turn that left no memory."""
        if not result["results"]:
            raise RuntimeError("a turn left no memory: the figures mean nothing")
        self.add(done=1, memories=len(result["results"]))

    def report(self) -> dict[str, Any]:
        with self._lock:
            return {**self._counts, "error": self.error}


class Turns:
    """The turns of a file, one for each call, until `stopped`."""

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


def opened(kind: Any, job: dict[str, Any], tally: Tally) -> Any:
    """A memory in the documented set-up for Postgres, with its tables; everything else is mem0's default.

    The tables are made by a first search: concurrent first calls would fail, because each creates them.
    """
    model = {"openai_base_url": job["base_url"], "api_key": "none"}
    embedder = {"openai_base_url": job.get("embedding_url", job["base_url"]), "api_key": "none"}
    store = {"connection_string": job["postgres"]} | ({"maxconn": job["pool"]} if job.get("pool") else {})
    if dimensions := job.get("dimensions"):
        embedder["embedding_dims"] = store["embedding_model_dims"] = dimensions
    memory = kind.from_config(
        {
            "vector_store": {"provider": "pgvector", "config": store},
            "llm": {"provider": "openai", "config": {**model, "response_callback": tally.called}},
            "embedder": {"provider": "openai", "config": embedder},
        }
    )
    memory.vector_store.search(query="", vectors=[0.0] * memory.embedding_model.config.embedding_dims, top_k=1)
    return memory


def store(job: dict[str, Any], tally: Tally) -> None:  # noqa: C901 -- the loops of two kinds of calls
    """Store turns by threads or by asyncio tasks until standard input ends; each of its lines is answered meanwhile."""
    from mem0 import AsyncMemory, Memory  # type: ignore[import-not-found]  # noqa: PLC0415 -- after the audit hook

    turns = Turns(job["turns"])
    memory = opened(AsyncMemory if job["tasks"] else Memory, job, tally)
    say({})

    def answer() -> None:
        for _ in sys.stdin:
            say(tally.report())
        turns.stopped = True

    def run_in_thread() -> None:
        try:
            while turn := turns.next():
                tally.stored(memory.add(turn["messages"], user_id=turn["user_id"], infer=job["infer"]))
        except Exception as error:  # noqa: BLE001 -- the parent process ends the measurement with it
            tally.error = repr(error)

    async def run_in_task() -> None:
        try:
            while turn := turns.next():
                tally.stored(await memory.add(turn["messages"], user_id=turn["user_id"], infer=job["infer"]))
        except Exception as error:  # noqa: BLE001 -- the parent process ends the measurement with it
            tally.error = repr(error)

    async def run_tasks() -> None:
        await asyncio.gather(*(run_in_task() for _ in range(job["at_once"])))

    threads = [threading.Thread(target=answer)]
    threads += [] if job["tasks"] else [threading.Thread(target=run_in_thread) for _ in range(job["at_once"])]
    for thread in threads:
        thread.start()
    if job["tasks"]:
        asyncio.run(run_tasks())
    for thread in threads:
        thread.join()
    say(tally.report())
    memory.close()


def search(job: dict[str, Any], tally: Tally) -> None:
    """Create the tables, wait for a line, and search; milliseconds and texts of each search."""
    from mem0 import Memory  # noqa: PLC0415 -- after the audit hook

    memory = opened(Memory, job, tally)
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


def converse(job: dict[str, Any], tally: Tally) -> None:
    """For each line, a user with messages and a question: store them, then search; memories by message, and hits."""
    from mem0 import Memory  # noqa: PLC0415 -- after the audit hook

    memory = opened(Memory, job, tally)
    say({})
    for line in sys.stdin:
        if not line.strip():
            continue
        asked, before, started = json.loads(line), tally.report(), time.perf_counter()
        stored: list[list[str] | None] = []
        for said in asked["messages"]:
            try:
                added = memory.add([{"role": "user", **said}], user_id=asked["user_id"])
            except Exception as error:  # noqa: BLE001 -- a turn that fails leaves nothing, and the next one follows
                sys.stderr.write(f"{asked['user_id']}: {error!r}\n")
                stored.append(None)
            else:
                stored.append([one["id"] for one in added["results"]])
        spent = {name: count - before[name] for name, count in tally.report().items() if name != "error"}
        seconds = time.perf_counter() - started
        found = memory.search(asked["question"], filters={"user_id": asked["user_id"]}, top_k=LIMIT)["results"]
        hits = [{"id": hit["id"], "text": hit["memory"]} for hit in found]
        say({"stored": stored, "hits": hits, "seconds": seconds, **spent})
    memory.close()


def say(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.addaudithook(refuse_other_hosts)
    {"store": store, "search": search, "converse": converse}[(given := json.loads(sys.argv[1]))["task"]](given, Tally())
