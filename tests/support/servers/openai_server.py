"""An OpenAI-compatible server for tests and benchmarks: recorded replies out, and every way real ones fail.

    python -m tests.support.servers.openai_server --port 0 --latency 0.3 --replies observations.jsonl

prints its base URL in the first line. Failures are switched by `POST /admin/failures` (a `Failure` as JSON),
taken back by `DELETE /admin/failures`; `GET /admin/counts` tells the requests so far, `PUT /admin/latency` delays.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import re
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self
from weakref import WeakValueDictionary
from zlib import crc32

import orjson
import uvicorn
from pydantic import BaseModel, ConfigDict
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tests.support.servers.canned_replies import (
    ChatRequest,
    EchoReplies,
    LocomoReplies,
    MappedReplies,
    Replies,
    reply_to,
)

Endpoint = Literal["chat", "embeddings"]
Mode = Literal[
    "status",  # `status` with an error body, and Retry-After where `retry_after` is set
    "error_in_200",  # the same error, but with status 200 as some gateways do
    "hang",  # no answer until the failures are cleared; then as "cut"
    "trickle",  # the right reply byte by byte, until the failures are cleared; then the rest at once
    "cut",  # closes the connection without a word
    "cut_body",  # closes it in the middle of the reply
    "html",  # a proxy's page
    "truncated",  # the model's words end early, finish_reason "length"
    "wrong_schema",  # the model's words are JSON of another form
    "refusal",
    "content_filter",
    "no_choices",
    "wrong_count",  # one embedding is missing
    "wrong_dimensions",
    "nan",
    "as_is",  # `body`, with `headers`: text, or JSON; of an endless one it is sent again and again
]


class Failure(BaseModel):
    """Fail the next `times` requests (None: all) on `path` (None: both) whose body has `containing` in it.

    Of them a `share`, drawn by chance, fails.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode
    times: int | None = 1
    path: Endpoint | None = None
    containing: str = ""
    share: float = 1.0
    status: int = 500
    retry_after: str | None = None
    body: Any = None
    headers: Mapping[str, str] = {}
    endless: bool = False

    def applies_to(self, path: Endpoint, body: bytes) -> bool:
        return self.path in {None, path} and self.containing.encode() in body


@dataclass
class Habits:
    """How real servers differ from OpenAI: `refused` parameters, one system message, texts of `most_characters`.

    A text that is too long is refused with `too_long_status`. A `silent` server refuses parameters without their names.
    """

    refused: frozenset[str] = frozenset()
    silent: bool = False
    one_system_message: bool = False
    most_characters: int | None = None
    too_long_status: int = 400

    def refusal(self, body: Mapping[str, Any]) -> tuple[int, str] | None:
        """The status and the message with which a request is refused."""
        roles = [message["role"] for message in body.get("messages", ())]
        if unwanted := sorted(self.refused & {*body, *roles}):
            named = f"Unsupported parameter: '{unwanted[0]}' is not supported with this model."
            return 400, "Bad Request" if self.silent else named
        if self.one_system_message and "system" in roles[1:]:
            return 400, "System message must be at the beginning."
        if self.most_characters is not None and any(len(text) > self.most_characters for text in body.get("input", ())):
            return self.too_long_status, "input (920 tokens) is too large to process. increase the physical batch size"
        return None


class Failures:
    """The failures to come, in their order; safe to change from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: deque[tuple[Failure, list[int]]] = deque()
        self._chance = random.Random(0)

    def add(self, failure: Failure) -> None:
        with self._lock:
            self._coming.append((failure, [0]))

    def clear(self) -> None:
        with self._lock:
            self._coming.clear()

    def __contains__(self, failure: Failure) -> bool:
        with self._lock:
            return any(one is failure for one, _ in self._coming)

    def next_for(self, path: Endpoint, body: bytes) -> Failure | None:
        """The failure that applies to this request."""
        if not self._coming:
            return None
        with self._lock:
            for failure, used in self._coming:
                is_left = failure.times is None or used[0] < failure.times
                if is_left and failure.applies_to(path, body) and self._chance.random() < failure.share:
                    used[0] += 1
                    return failure
        return None


Embed = Callable[[Sequence[str], int], Sequence[Sequence[float]]]
_DIMENSIONS = 1536


def error_body(status: int, message: str = "as the test asked for") -> bytes:
    return orjson.dumps({"error": {"message": message, "type": "test", "code": status}})


def completion_body(request: ChatRequest, replies: Replies, failure: Failure | None) -> bytes:
    mode = failure.mode if failure else None
    words: str | None = reply_to(request, replies)
    finish, refusal = "stop", None
    if mode == "truncated" and words:
        words, finish = words[: len(words) // 2], "length"
    elif mode == "wrong_schema":
        words = '{"unexpected": true}'
    elif mode == "refusal":
        words, refusal = None, "I cannot help with that."
    elif mode == "content_filter":
        words, finish = "", "content_filter"
    message = {"role": "assistant", "content": words, "refusal": refusal}
    choices = [] if mode == "no_choices" else [{"index": 0, "message": message, "finish_reason": finish}]
    asked = sum(len(part["content"]) for part in request.body["messages"]) // 4
    said = len(words or "") // 4
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    completion = {"id": "chatcmpl-test", "object": "chat.completion", "created": 0, "model": request.body["model"]}
    return orjson.dumps(completion | {"choices": choices, "usage": usage})


def embeddings_body(body: dict[str, Any], embed: Embed, failure: Failure | None) -> bytes:
    mode = failure.mode if failure else None
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    rows = [list(row) for row in embed(texts, body.get("dimensions", _DIMENSIONS))]
    if mode == "wrong_count":
        rows.pop()
    elif mode == "wrong_dimensions":
        rows[-1].append(0.5)
    elif mode == "nan":
        rows[-1][0] = float("nan")
    encode = _base64 if body.get("encoding_format") == "base64" else list
    data = [{"object": "embedding", "index": index, "embedding": encode(row)} for index, row in enumerate(rows)]
    tokens = sum(map(len, texts)) // 4
    # In reverse, because the order of the items is not promised: their index is.
    reply = {"object": "list", "data": data[::-1], "model": body["model"]}
    return orjson.dumps(reply | {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}})


def _base64(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def hash_embeddings(texts: Sequence[str], dimensions: int) -> list[list[float]]:
    """Texts that share words are near each other; no length 1, as not every server gives it."""
    return [_hash_embedding(text, dimensions) for text in texts]


@lru_cache(maxsize=10_000)
def _hash_embedding(text: str, dimensions: int) -> list[float]:
    row = [0.0] * dimensions
    for word in re.findall(r"\w+|\S", text.casefold()) or [""]:
        seed = crc32(word.encode())
        for turn in range(8):
            place = crc32(bytes([turn]), seed)
            row[place % dimensions] += 1.0 if place & 0x10000 else -1.0
    return row


_PROBE: Final = "Hello."
_HANG_POLL_SECONDS = 0.05
_TRICKLE_SECONDS = 0.2
_START_SECONDS = 10


class _Connections:
    """The open connections by their clients' addresses, for cutting one of them."""

    def __init__(self) -> None:
        self._open: WeakValueDictionary[object, asyncio.Transport] = WeakValueDictionary()

    def protocol(self) -> type[H11Protocol]:
        connections = self._open

        class Protocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrower
                connections[transport.get_extra_info("peername")] = transport
                super().connection_made(transport)

        return Protocol

    def cut(self, client: tuple[str, int]) -> None:
        self._open[client].abort()


class OpenAiServer:
    """Runs in a thread of its own between `with` and its end; `base_url` is what clients are given.

    `latency` and `embedding_latency` in seconds; they, and `replies`, may be changed while it runs. `chat_tokens` are
    those of all answers of the chat model but to probes, which belong to no turn.
    """

    def __init__(
        self,
        replies: Replies | None = None,
        embed: Embed | None = None,
        *,
        latency: float = 0.0,
        embedding_latency: float = 0.0,
        port: int = 0,
    ) -> None:
        self.replies = replies or EchoReplies()
        self.latency = latency
        self.embedding_latency = embedding_latency
        self.failures = Failures()
        self.habits = Habits()
        self.requests: Counter[str] = Counter()
        self.chat_tokens = 0
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self.urls: list[str] = []
        self.keys: list[str | None] = []
        self._embed = embed or hash_embeddings
        self._connections = _Connections()
        self._stopping: asyncio.Event | None = None
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app(),
                host="127.0.0.1",
                port=port,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http=self._connections.protocol(),
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._server.run, name="openai-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the test server did not start")
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join()

    @property
    def base_url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def fail(self, **failure: Any) -> None:
        """Add a `Failure`, given by its fields."""
        self.failures.add(Failure.model_validate(failure))

    def serve_until_interrupted(self) -> None:
        """Run in this thread instead, and print the base URL once it listens."""
        threading.Thread(target=self._print_base_url, daemon=True).start()
        self._server.run()

    def _print_base_url(self) -> None:
        while not self._server.started:
            time.sleep(0.005)
        print(self.base_url, flush=True)  # noqa: T201 -- who started this process reads it

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/admin/failures", self._add_failure, methods=["POST"]),
                Route("/admin/failures", self._clear_failures, methods=["DELETE"]),
                Route("/admin/counts", self._counts),
                Route("/admin/latency", self._set_latency, methods=["PUT"]),
            ]
        )

    async def _chat(self, request: Request) -> Response:
        raw = await request.body()
        if self.keep_bodies:
            self.urls.append(f"{request.url.path}?{request.url.query}")
            self.keys.append(request.headers.get("api-key"))
        failure = self.failures.next_for("chat", raw)
        self._count("chat", raw)
        await asyncio.sleep(self.latency)
        if failure and (failed := await self._fail(failure, request)):
            return failed
        asked = ChatRequest(orjson.loads(raw))
        if refusal := self.habits.refusal(asked.body):
            return _json(error_body(*refusal), status=refusal[0])
        content = completion_body(asked, self.replies, failure)
        if asked.question != _PROBE:
            self.chat_tokens += orjson.loads(content)["usage"]["total_tokens"]
        return self._reply(content, failure)

    async def _embeddings(self, request: Request) -> Response:
        raw = await request.body()
        failure = self.failures.next_for("embeddings", raw)
        self._count("embeddings", raw)
        await asyncio.sleep(self.embedding_latency)
        if failure and (failed := await self._fail(failure, request)):
            return failed
        body = orjson.loads(raw)
        if refusal := self.habits.refusal(body):
            return _json(error_body(*refusal), status=refusal[0])
        return self._reply(embeddings_body(body, self._embed, failure), failure)

    def _reply(self, content: bytes, failure: Failure | None) -> Response:
        if failure is None or failure.mode != "trickle":
            return _json(content)
        return StreamingResponse(self._trickle(content, failure), media_type="application/json")

    async def _trickle(self, content: bytes, failure: Failure) -> AsyncIterator[bytes]:
        sent = 0
        while failure in self.failures and sent < len(content):
            yield content[sent : sent + 1]
            sent += 1
            await asyncio.sleep(_TRICKLE_SECONDS)
        yield content[sent:]

    async def _models(self, _request: Request) -> Response:
        return _json(b'{"object":"list","data":[{"id":"test","object":"model","created":0,"owned_by":"tests"}]}')

    async def _add_failure(self, request: Request) -> Response:
        self.failures.add(Failure.model_validate_json(await request.body()))
        return Response(status_code=204)

    async def _clear_failures(self, _request: Request) -> Response:
        self.failures.clear()
        return Response(status_code=204)

    async def _counts(self, _request: Request) -> Response:
        return _json(orjson.dumps(dict(self.requests)))

    async def _set_latency(self, request: Request) -> Response:
        self.latency = float(await request.body())
        return Response(status_code=204)

    def _count(self, path: str, raw: bytes) -> None:
        self.requests[path] += 1
        if self.keep_bodies:
            self.bodies.append(orjson.loads(raw))

    async def _fail(self, failure: Failure, request: Request) -> Response | None:  # noqa: PLR0911 -- one a mode
        """The response of a failure that concerns the server; None where it concerns the model's words."""
        match failure.mode:
            case "status" | "error_in_200":
                headers = {} if failure.retry_after is None else {"retry-after": failure.retry_after}
                return _json(
                    error_body(failure.status), 200 if failure.mode == "error_in_200" else failure.status, headers
                )
            case "as_is":
                content = failure.body.encode() if isinstance(failure.body, str) else orjson.dumps(failure.body)
                headers = {"content-type": "application/json", **failure.headers}
                if failure.endless:
                    return StreamingResponse(_again_and_again(content), failure.status, headers)
                return Response(content, failure.status, headers)
            case "hang":
                if await self._hang(failure, request):
                    self._cut(request)
                return Response()
            case "cut":
                self._cut(request)
                return Response()
            case "cut_body":
                return _TruncatedResponse()
            case "html":
                return HTMLResponse("<html><body>We will be back soon.</body></html>")
            case _:
                return None

    async def _hang(self, failure: Failure, request: Request) -> bool:
        """Wait for the client to go or for the failure to be cleared; whether the client is still there."""
        gone = asyncio.ensure_future(request.receive())
        while failure in self.failures and not gone.done():
            await asyncio.wait({gone}, timeout=_HANG_POLL_SECONDS)
        return not gone.done() and gone.cancel()

    def _cut(self, request: Request) -> None:
        self._connections.cut((request.client.host, request.client.port))  # type: ignore[union-attr]  # TCP


async def _again_and_again(content: bytes) -> AsyncIterator[bytes]:
    while True:
        yield content
        await asyncio.sleep(0)


class _TruncatedResponse(Response):
    """Promises more than it sends; uvicorn closes the connection then."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"choices": [', "more_body": True})


def _json(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status, headers, media_type="application/json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before a completion is answered")
    parser.add_argument("--embedding-latency", type=float, default=0.0, help="the same for embeddings")
    parser.add_argument("--replies", type=Path, help="observations (.jsonl), or {text of the question: reply} (.json)")
    given = parser.parse_args()
    replies = _replies(given.replies)
    server = OpenAiServer(replies, latency=given.latency, embedding_latency=given.embedding_latency, port=given.port)
    server.serve_until_interrupted()


def _replies(path: Path | None) -> Replies:
    if path is None:
        return EchoReplies()
    return LocomoReplies(path) if path.suffix == ".jsonl" else MappedReplies(orjson.loads(path.read_bytes()))


if __name__ == "__main__":
    main()
