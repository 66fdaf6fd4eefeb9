"""The simulated worker: the project's own supervisor, App, window, processor, batcher and retriers over the broker."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Literal

from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.app import KafkaTuning, StageApp, build_app
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.llm.cached_models import CachedEmbedder
from mnemolog.streams.llm.call_retry import CallFailure, CallRetrier, RetrySettings
from mnemolog.streams.llm.errors import PromptRefusedError
from mnemolog.streams.llm.ports import Embeddings, RequestSource, Usage
from mnemolog.streams.runtime.supervisor import run_stages
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.failure_budget import FailureBudgets
from mnemolog.streams.stages.processor import StageDefinition, StageProcessor
from tests.simulation.broker import Broker
from tests.simulation.loop import SimulatedLoop
from tests.simulation.workload import Workload

OUTPUT: Final = "extracted_facts"
TUNING: Final = KafkaTuning(session_timeout=5.0, heartbeat_interval=1.0, drain_timeout=4.0, idempotent=False)
RETRY: Final = RetrySettings(max_concurrent=8, initial_delay=0.2, max_delay=3.0)
TIMEOUT_SECONDS: Final = 3.0
SLOW_SECONDS: Final = 8.0


@dataclass(frozen=True)
class Input:
    """A record as the processor reads it."""

    envelope: Any
    said: Mapping[str, Any]


@dataclass(frozen=True)
class Output:
    """What the stage sends: where its source stands, and how it ended."""

    partition: int
    offset: int
    owner: str
    end: str

    @property
    def key(self) -> bytes:
        return self.owner.encode()

    def to_bytes(self) -> bytes:
        return json.dumps({"partition": self.partition, "offset": self.offset, "end": self.end}).encode()


def read(record: KafkaRecord) -> Input:
    said = json.loads(record.value or b"{}")
    envelope = SimpleNamespace(
        origin=SimpleNamespace(position=record.position, partition=record.partition, offset=record.offset),
        source_id=f"s{said['number']}",
        source_kind="command" if said["kind"] == "command" else "turn",
        end=None,
    )
    return Input(envelope, said)


def output_of(stage_input: Input, end: str) -> Output:
    origin = stage_input.envelope.origin
    return Output(origin.partition, origin.offset, stage_input.said["owner"], end)


class StoredReplies:
    """The table of replies, which all workers share."""

    def __init__(self) -> None:
        self.replies: dict[ReplyKey, StoredReply] = {}

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        await asyncio.sleep(0.001)
        return {key: (self.replies[key],) for key in keys if key in self.replies}

    async def put_many(self, replies: Sequence[StoredReply]) -> Sequence[StoredReply]:
        await asyncio.sleep(0.001)
        return [self.replies.setdefault(reply.key, reply) for reply in replies]


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

    model = "embedder"

    def __init__(self, server: ModelServer, uniform: Callable[[float, float], float]) -> None:
        self._server = server
        self._retrier = CallRetrier(RETRY, name="embed", probe=self._probe, uniform=uniform)

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:
        async def attempt() -> Embeddings | CallFailure:
            poison = "http_500" if any(text.startswith("poison_text") for text in texts) else None
            failure = await self._server.call(poison, 0.05)
            return failure or Embeddings(vectors=(_VECTOR,) * len(texts), usage=Usage())

        return await self._retrier.call(attempt, divisible=divisible)

    async def _probe(self) -> object:
        return await self._server.call(None, 0.05) or "ready"

    async def close(self) -> None: ...


_VECTOR: Final = Vector.from_values("embedder", [1.0, 0.0])


class SimulatedWorker:
    """One life of a worker process."""

    def __init__(
        self, name: str, loop: SimulatedLoop, broker: Broker, load: Workload, server: ModelServer, replies: Any
    ) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._loop = loop
        self._broker = broker
        self._load = load
        self._server = server
        self._chat = CallRetrier(RETRY, name="chat", probe=self._probe, uniform=loop.random.uniform)
        self._embedder = CachedEmbedder(
            SimulatedEmbedder(server, loop.random.uniform), replies, max_texts=8, max_wait=0.01, max_concurrent=2
        )
        self._budgets = FailureBudgets()
        self._lives = 0

    async def run(self) -> None:
        """Run until `stop` is set, as the real worker does."""
        await run_stages([self._build], self.stop)

    def _build(self) -> StageApp:
        self._lives += 1
        app: Any = build_app("extract", CONVERSATION_TURNS, self._window, bootstrap="nowhere:1", tuning=TUNING)
        app.broker, app.member_name = self._broker, f"{self.name}/{self._lives}"
        if app.window.reread is not None:
            app.window.reread = self._broker.reread
        return app

    def _window(self, sender: Sender) -> Window:
        definition = StageDefinition(
            stage="extract",
            topic=OUTPUT,
            read=read,
            work=self._work,
            finish=lambda stage_input, _end, _step: output_of(stage_input, "failed"),
        )
        processor = StageProcessor(
            definition,
            sender=sender,
            dead_letters=DeadLetterWriter(sender),
            seen=SeenOrigins(),
            budgets=self._budgets,
        )
        return KeyedWindow(
            processor,
            max_in_flight=self._load.max_in_flight,
            max_pending=self._load.max_pending,
            clock=self._loop.time,
        )

    async def _work(self, stage_input: Input, record: KafkaRecord) -> Output | None:
        kind = stage_input.said["kind"]
        if kind in ("raw", "command"):
            await asyncio.sleep(0.002)
            return output_of(stage_input, "done")
        try:
            await self._ask(kind)
            source = RequestSource(
                owner=stage_input.said["owner"], source_id=stage_input.envelope.source_id, stage="embed"
            )
            await self._embedder.embed(source, (f"{kind} {record.position}",))
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail) from error
        return output_of(stage_input, "done")

    async def _ask(self, kind: str) -> None:
        async def attempt() -> Literal["ready"] | CallFailure:
            poison = "http_429" if kind == "poison_prompt" else None
            failure = await self._server.call(poison, SLOW_SECONDS if kind == "slow" else 0.5)
            return failure or "ready"

        await self._chat.call(attempt)
        if self._server.is_useless():
            raise SourceEndedError("invalid_reply", "nonsense", possibly_systemic=True)

    async def _probe(self) -> object:
        return await self._server.call(None, 0.5) or "ready"
