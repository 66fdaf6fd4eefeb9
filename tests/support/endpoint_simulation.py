"""A model's server that fails in ten ways, and what becomes of the prompts and texts; in virtual time.

The clients are the real ones; only the transport below them is simulated. An answer takes a second, a call may take 25.
Prompts are extractions, five a second; texts come in bursts of forty.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final
from unittest.mock import patch

import httpx2 as httpx
import openai
import orjson

from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.streams.llm.cached_models import CachedEmbedder
from mnemolog.streams.llm.calls import RetrySettings
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiChatModel, OpenAiEmbedder
from mnemolog.streams.llm.ports import PromptRefusedError, RequestSource
from tests.support.builders.prompts import extraction, user
from tests.support.virtual_time import run_in_virtual_time

POISON: Final = "poison"
HOUR: Final = 3600.0
ANSWER_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 25.0
PROMPTS: Final = 600
_DIMENSIONS: Final = 4

Fault = Callable[["FailingServer", bytes], "httpx.Response | Exception | float | None"]
"""What is wrong with the answer to a request: another response, an error of the connection, seconds that it takes, or
nothing."""


@dataclass(slots=True)
class FailingServer:
    """Answers after a second, unless its fault says otherwise."""

    fault: Fault
    random: random.Random = field(default_factory=lambda: random.Random(5))
    requests: int = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        fault = self.fault(self, request.content)
        if isinstance(fault, float):
            return httpx.Response(200, content=_trickle(fault))
        await asyncio.sleep(ANSWER_SECONDS)
        if isinstance(fault, Exception):
            raise fault
        return fault or (_vectors(request) if b'"input"' in request.content else _completion())

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to fail. `culprits` of the prompts or texts are at fault; without any, the server is."""

    name: str
    fault: Fault
    culprits: int = 0
    own_model: str | None = None
    is_outage: bool = False
    embeds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the prompts; all times in seconds. `refused` are healthy ones, `delay` is the longest of one."""

    refused: int
    ended_culprits: int
    most_attempts: int
    delay: float
    paused: bool
    finished_at: float


def _completion(choices: int = 1) -> httpx.Response:
    message = {"index": 0, "message": {"role": "assistant", "content": '{"facts": []}'}, "finish_reason": "stop"}
    return httpx.Response(200, json={"id": "x", "object": "chat.completion", "choices": [message] * choices})


def _vectors(request: httpx.Request, *, missing: int = 0) -> httpx.Response:
    texts = orjson.loads(request.content)["input"]
    data = [{"index": index, "embedding": [1.0, 0.0, 0.0, 0.0]} for index in range(len(texts) - missing)]
    return httpx.Response(200, json={"object": "list", "data": data})


async def _trickle(seconds: float) -> AsyncIterator[bytes]:
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
        yield b" "


def error_response(status: int, message: str = "as the simulation asked for") -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message}})


def fails_for_one(failure: Callable[[], httpx.Response | Exception | float]) -> Fault:
    return lambda _server, body: failure() if POISON.encode() in body else None


def fails_for_an_hour(failure: Callable[[], httpx.Response | Exception]) -> Fault:
    return lambda server, _body: failure() if server.now < HOUR else None


def _at_random(share: float, *failures: Callable[[], httpx.Response | Exception | float]) -> Fault:
    return lambda server, _body: server.random.choice(failures)() if server.random.random() < share else None


def _too_few_vectors() -> httpx.Response:
    return httpx.Response(200, json={"object": "list", "data": []})


_EVERYTHING: Final = (
    lambda: error_response(400),
    lambda: error_response(429),
    lambda: error_response(503),
    lambda: _completion(0),
    lambda: httpx.ReadError("cut"),
    lambda: 100.0,
)
_TOO_LARGE: Final = "Request too large for this model: limit 30000, requested 36000"
WAYS: Final = (
    Way(name="30 % of the calls time out", fault=_at_random(0.3, lambda: 100.0)),
    Way(name="50 % of the calls fail, in all ways mixed", fault=_at_random(0.5, *_EVERYTHING)),
    Way(name="50 % of the connections are cut", fault=_at_random(0.5, lambda: httpx.ReadError("cut"))),
    Way(name="500 for one prompt in a hundred", fault=fails_for_one(lambda: error_response(500)), culprits=6),
    Way(
        name="429 `Request too large` for one in a hundred",
        fault=fails_for_one(lambda: error_response(429, _TOO_LARGE)),
        culprits=6,
    ),
    Way(name="200 without choices for one in a hundred", fault=fails_for_one(lambda: _completion(0)), culprits=6),
    Way(name="a slow trickle for one in a hundred", fault=fails_for_one(lambda: 100.0), culprits=6),
    Way(
        name="402 for a turn's own model",
        fault=fails_for_one(lambda: error_response(402)),
        culprits=6,
        own_model=POISON,
    ),
    Way(name="400 for all, for an hour", fault=fails_for_an_hour(lambda: error_response(400)), is_outage=True),
    Way(
        name="200 without choices for all, for an hour",
        fault=fails_for_an_hour(lambda: _completion(0)),
        is_outage=True,
    ),
    Way(
        name="no connection, for an hour",
        fault=fails_for_an_hour(lambda: httpx.ConnectError("refused")),
        is_outage=True,
    ),
    Way(name="too few vectors for one text in forty", fault=fails_for_one(_too_few_vectors), culprits=15, embeds=True),
)


@contextmanager
def clients_of(server: FailingServer) -> Iterator[None]:
    """The OpenAI clients that are made meanwhile talk to `server`."""

    def create(_endpoint: Endpoint) -> openai.AsyncOpenAI:
        transport = httpx.AsyncClient(transport=httpx.MockTransport(server))
        client = openai.AsyncOpenAI(api_key="k", base_url="http://simulated/v1", max_retries=0, http_client=transport)
        client._platform = "Linux"  # it would be found out in a thread, for which the clock does not wait
        return client

    with patch("mnemolog.streams.llm.openai_models.create_client", create):
        yield


class NoReplies:
    """A store that keeps nothing."""

    async def get_many(self, _keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        return {}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        return list(replies)

    async def paid(self, _owner: str, _source_id: str, _stage: str, _position: str) -> list[StoredReply]:
        return []


@dataclass(slots=True)
class _Measure:
    """Runs calls and counts what comes of them."""

    refused: list[str] = field(default_factory=list)
    ended_culprits: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)

    async def run(self, name: str, call: Callable[[], Any]) -> None:
        started = asyncio.get_running_loop().time()
        try:
            await call()
        except PromptRefusedError:
            (self.ended_culprits if POISON in name else self.refused).append(name)
        if POISON not in name:
            self.delays.append(asyncio.get_running_loop().time() - started - ANSWER_SECONDS)


async def _run(way: Way) -> Outcome:
    random.seed(1)
    attempts: dict[str, int] = {}

    def counted(server: FailingServer, body: bytes) -> Any:
        for name in culprits:
            attempts[name] = attempts.get(name, 0) + (f"{name}." in body.decode())
        return way.fault(server, body)

    names = [f"text {number}" for number in range(PROMPTS)]
    step = PROMPTS // way.culprits if way.culprits else PROMPTS + 1
    culprits = [f"{POISON} {number}" for number in range(way.culprits)]
    for number, name in enumerate(culprits):
        names[number * step + step // 2] = name
    server, measure = FailingServer(counted), _Measure()
    endpoint = Endpoint(api_key="k", timeout=TIMEOUT_SECONDS, retry=RetrySettings(max_concurrent=128))
    with clients_of(server):
        chat, embedder = OpenAiChatModel(endpoint, "chat"), OpenAiEmbedder(endpoint, "embedding")
    batches = CachedEmbedder(embedder, NoReplies(), max_texts=256, max_wait=0.01, max_concurrent=4)
    paused = False
    async with asyncio.TaskGroup() as group:
        for number in count():
            if number >= PROMPTS and len(measure.ended_culprits) == way.culprits:
                break  # until then there are others to compare the culprits with
            name = names[number] if number < PROMPTS else f"text {number}"
            call = _embedding(batches, name) if way.embeds else _completing(chat, way, name)
            group.create_task(measure.run(name, call))
            if not way.embeds or number % 40 == 39:
                await asyncio.sleep(2.0 if way.embeds else 0.2)
        while way.is_outage and asyncio.get_running_loop().time() < HOUR - 1:
            paused = paused or chat.paused
            assert not measure.refused
            await asyncio.sleep(60)
    await batches.close()
    await chat.close()
    return Outcome(
        refused=len(measure.refused),
        ended_culprits=len(measure.ended_culprits),
        most_attempts=max(attempts.values(), default=0),
        delay=max(measure.delays),
        paused=paused,
        finished_at=asyncio.get_running_loop().time(),
    )


def _completing(chat: OpenAiChatModel, way: Way, name: str) -> Callable[[], Any]:
    own = way.own_model if POISON in name else None
    prompt = extraction_prompt(extraction(user(f"{name}.")))
    return lambda: chat.complete(replace(prompt, model=own))


def _embedding(batches: CachedEmbedder, name: str) -> Callable[[], Any]:
    source = RequestSource(owner="default/ana", source_id=name, stage="embed")
    return lambda: batches.embed(source, (f"{name}.",))


def simulate(way: Way) -> Outcome:
    """What becomes of 600 prompts or texts, the same at each call."""
    return run_in_virtual_time(_run(way))
