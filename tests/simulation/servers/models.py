"""The models that all workers share: one server that is slow, fails, or replies with nonsense, as the workload says."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.streams.llm.calls import CallFailure, CallRetrier, RetrySettings
from mnemolog.streams.llm.ports import Embeddings, Usage
from tests.simulation.loop import SimulatedLoop
from tests.simulation.told_facts import MODEL, direction_of
from tests.simulation.workload import Workload

RETRY: Final = RetrySettings(max_concurrent=8, initial_delay=0.2, max_delay=3.0)
TIMEOUT_SECONDS: Final = 3.0


class StoredReplies:
    """The table of replies, which all workers share."""

    def __init__(self) -> None:
        self._replies: dict[ReplyKey, dict[int, StoredReply]] = {}

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        await asyncio.sleep(0.001)
        found = ((key, self._replies[key]) for key in keys if key in self._replies)
        return {key: tuple(attempts[number] for number in sorted(attempts)) for key, attempts in found}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        await asyncio.sleep(0.001)
        return [self._replies.setdefault(reply.key, {}).setdefault(reply.attempt, reply) for reply in replies]

    async def forget(self, owner: str, source_id: str) -> None:
        await asyncio.sleep(0.001)
        for key in [one for one in self._replies if one[:2] == (owner, source_id)]:
            del self._replies[key]

    async def paid(self, owner: str, source_id: str, stage: str, position: str) -> list[StoredReply]:
        asked = (owner, source_id, stage, position)
        kept = (reply for attempts in self._replies.values() for reply in attempts.values())
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
