"""The models that all workers share: one server that is slow, fails, or replies with nonsense, as the workload says.

A turn tells one fact about a place on a ring, which may concern facts of its own place and the two beside: turns of
near places depend on one another, and turns of others do not.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast
from zlib import crc32

from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.calls import CallFailure, CallRetrier, RetrySettings
from mnemolog.streams.llm.ports import Embeddings, ExtractionTask, Prompt, Reply, SharedPrompt, TaskPrompt, Usage
from tests.simulation.loop import SimulatedLoop
from tests.simulation.workload import Workload

MODEL: Final = "embedder"
PLACES: Final = 12
"""With so many, the facts of two places side by side conflict by MemLib's threshold, and those of any others do not."""
_AT: Final = re.compile(r"at place (\d+)$")


def place_of(seed: int, number: int) -> int:
    """What the turn of this number is about."""
    return crc32(f"{seed}/{number}".encode()) % PLACES


def fact_text(seed: int, kind: str, number: int) -> str:
    """What the turn of this number tells."""
    return f"{kind} number {number} at place {place_of(seed, number)}"


def direction_of(text: str) -> Vector:
    """The vector of a fact: that of its place."""
    found = _AT.search(text)
    angle = 2 * math.pi * int(found[1] if found else 0) / PLACES
    return Vector.from_values(MODEL, [math.cos(angle), math.sin(angle)])


_KNOWN: Final = re.compile(r"K(\d+) \(.*?\): \w+ number (\d+) ")
_NEW: Final = re.compile(r"N(\d+) \(.*?\): \w+ number (\d+) ")
_LISTED: Final = "  may concern: "
_BESIDE: Final = 4
"""Of the sums of the numbers, one in so many leaves all facts beside one another, as long as these are few."""
_MANY: Final = 3
Turn = list[dict[str, Any]]


def decisions_on(prompt: Prompt) -> str:
    """The reply to a question about the conflicts of one turn."""
    return json.dumps({"decisions": _turns(prompt)[0]})


def _turns(prompt: Prompt) -> list[Turn]:
    """The decisions on each turn of the question, with the numbers that stand there."""
    turns: list[Turn] = []
    known: dict[int, int] = {}
    new = label = 0
    for line in prompt.messages[1].content.splitlines():  # without earlier answers and what was wrong with them
        if line.startswith("Known facts:"):
            turns.append([])
        elif found := _KNOWN.match(line):
            known[int(found[1])] = int(found[2])
        elif found := _NEW.match(line):
            label, new = int(found[1]), int(found[2])
        elif line.startswith(_LISTED):
            listed = [int(one.removeprefix("K")) for one in line.removeprefix(_LISTED).split(", ")]
            turns[-1].append(_decision(label, new, listed, known))
    return turns


def _decision(label: int, new: int, listed: Sequence[int], known: Mapping[int, int]) -> dict[str, Any]:
    oldest_first = sorted(listed, key=lambda one: known[one])
    numbers = [known[one] for one in oldest_first]
    few = int((new + sum(numbers)) % _BESIDE > 0)
    replaced = oldest_first[: few if len(numbers) < _MANY else None]
    return {
        "number": label,
        "reason": f"{new} beside {', '.join(map(str, numbers))}",
        "verdict": "REPLACE" if replaced else "ADD",
        "targets": replaced,
    }


RETRY: Final = RetrySettings(max_concurrent=8, initial_delay=0.2, max_delay=3.0)
TIMEOUT_SECONDS: Final = 3.0


class StoredReplies:
    """The table of replies, which all workers share."""

    def __init__(self) -> None:
        self.kept: dict[ReplyKey, dict[int, StoredReply]] = {}

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        await asyncio.sleep(0.001)
        found = ((key, self.kept[key]) for key in keys if key in self.kept)
        return {key: tuple(attempts[number] for number in sorted(attempts)) for key, attempts in found}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        await asyncio.sleep(0.001)
        return [self.kept.setdefault(reply.key, {}).setdefault(reply.attempt, reply) for reply in replies]

    async def forget(self, owner: str, source_id: str) -> None:
        await asyncio.sleep(0.001)
        for key in [one for one in self.kept if one[:2] == (owner, source_id)]:
            del self.kept[key]

    async def paid(self, owner: str, source_id: str, stage: str, position: str) -> list[StoredReply]:
        asked = (owner, source_id, stage, position)
        kept = (reply for attempts in self.kept.values() for reply in attempts.values())
        return [one for one in kept if (one.owner, one.source_id, one.stage, one.paid_by) == asked]


class ModelServer:
    """Answers calls of all workers, as the workload says it does at that time."""

    def __init__(self, loop: SimulatedLoop, load: Workload) -> None:
        self._loop = loop
        self._load = load

    async def call(self, poison: str | None, seconds: float) -> CallFailure | None:
        await asyncio.sleep(seconds * (0.5 + self._loop.random.random()))
        if poison is not None:
            return CallFailure(kind="unavailable", code=poison)
        failing = max((one.failing for one in self._now()), default=0.0)
        if failing == 1.0:
            return CallFailure(kind="unavailable", code="http_503")
        if self._loop.random.random() < failing:
            await asyncio.sleep(TIMEOUT_SECONDS)
            return CallFailure(kind="unavailable", code="timeout")
        return None

    def is_useless(self) -> bool:
        """Whether the chat model replies with nonsense now."""
        return any(one.useless for one in self._now())

    def _now(self) -> list[Any]:
        return [one for one in self._load.models if one.begins <= self._loop.time() < one.ends]


class SimulatedEmbedder:
    """An embedder with the retries of the real one."""

    model = MODEL

    def __init__(self, server: ModelServer, uniform: Callable[[float, float], float]) -> None:
        self._server = server
        self._retrier = CallRetrier(RETRY, name="embed", probe=self._probe, uniform=uniform)

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:
        async def attempt() -> Embeddings | CallFailure:
            poison = "http_500" if any(text.startswith("poison_text") for text in texts) else None
            failure = await self._server.call(poison, 0.05)
            return failure or Embeddings(vectors=tuple(map(direction_of, texts)), usage=Usage())

        return await self._retrier.call(attempt, divisible=divisible)

    async def _probe(self) -> object:
        return await self._server.call(None, 0.05) or "ready"

    async def close(self) -> None: ...


EXTRACT_SECONDS: Final = 0.5
RESOLVE_SECONDS: Final = 0.2
SLOW_SECONDS: Final = 8.0
"""Of a prompt with a slow turn in it."""


@dataclass(frozen=True)
class SimulatedChat:
    """A chat model with the retries of the real one."""

    server: Any
    retrier: CallRetrier
    model: str = "simulated"

    async def complete(self, prompt: Prompt) -> Reply:
        answer = self._decide if prompt.purpose == "resolve" else self._extract

        async def attempt() -> Reply | CallFailure:
            return await answer(prompt)

        return await self.retrier.call(attempt, divisible=isinstance(prompt, SharedPrompt))

    async def close(self) -> None: ...

    async def _extract(self, prompt: Prompt) -> Reply | CallFailure:
        tasks = _tasks_of(prompt)
        kinds = {str(task.turn.metadata["kind"]) for task in tasks}
        poison = "http_429" if "poison_prompt" in kinds else None
        failure = await self.server.call(poison, SLOW_SECONDS if "slow" in kinds else EXTRACT_SECONDS)
        return failure or Reply(text=_excerpts(tasks), model=self.model)

    async def _decide(self, prompt: Prompt) -> Reply | CallFailure:
        is_slow = ": slow number" in prompt.messages[-1].content
        failure = await self.server.call(None, SLOW_SECONDS if is_slow else RESOLVE_SECONDS)
        return failure or Reply(text=decisions_on(prompt), model=self.model)


def _tasks_of(prompt: Prompt) -> tuple[ExtractionTask, ...]:
    asked = prompt.tasks if isinstance(prompt, SharedPrompt) else (cast("TaskPrompt", prompt).task,)
    return cast("tuple[ExtractionTask, ...]", asked)


def _excerpts(tasks: tuple[ExtractionTask, ...]) -> str:
    return json.dumps({"facts": [{"excerpt": task.turn.messages[0].content} for task in tasks]})
