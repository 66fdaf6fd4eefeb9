"""The replies of the test server as bytes, whole or with a fault of the model's in them."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import orjson

from tests.support.servers.canned_replies import ChatRequest, Replies, reply_to
from tests.support.servers.failures import Failure

Embed = Callable[[Sequence[str], int], Sequence[Sequence[float]]]
_DIMENSIONS = 1536


def error_body(status: int) -> bytes:
    return orjson.dumps({"error": {"message": "as the test asked for", "type": "test", "code": status}})


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
