"""The models of a run: live, recorded, or replayed from a recording, so that a run can be repeated without a server.

A tape is a folder with `chat.jsonl` and `embeddings.jsonl`. A completion is found by the hash of its messages and
model, a vector by that of its text and model. Vectors of the offline model are made again and not kept.
"""

import hashlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

import orjson

from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.factory import build_embedder
from mnemolog.streams.llm.ports import ChatModel, Embedder, Embeddings, Prompt, PromptRefusedError, Reply, Usage
from mnemolog.streams.runtime.models import build_chat_model
from mnemolog.streams.settings import StreamsSettings

CHAT: Final = "chat.jsonl"
EMBEDDINGS: Final = "embeddings.jsonl"
MODELS: Final = "models.json"
MINI_LM: Final = "all-MiniLM-L6-v2-int8"


class ReplyNotRecordedError(Exception):
    """The tape has no such reply: prompts or cases have changed since it was recorded. Record it anew."""


def chosen_models(
    settings: StreamsSettings, *, record: Path | None = None, replay: Path | None = None
) -> tuple[ChatModel, Embedder]:
    """Raises `ReplyNotRecordedError` for a folder that cannot be played back, or holds replies of other models."""
    if replay is not None:
        try:
            models = orjson.loads((replay / MODELS).read_bytes())
        except FileNotFoundError as error:
            raise ReplyNotRecordedError(f"{replay} is no tape: it has no {MODELS}") from error
        if models["embedding"] == MINI_LM:
            return RecordedChatModel(replay, models["chat"]), build_embedder(StreamsSettings(provider="offline"))
        return RecordedChatModel(replay, models["chat"]), RecordedEmbedder(replay, models["embedding"])
    chat, embedder = build_chat_model(settings), build_embedder(settings)
    if record is None:
        return chat, embedder
    write_models(record, chat.model, embedder.model)
    if embedder.model != MINI_LM:
        embedder = RecordedEmbedder(record, embedder.model, embedder)
    return RecordedChatModel(record, chat.model, chat), embedder


def write_models(folder: Path, chat: str, embedding: str) -> None:
    """Write down whose replies a tape holds. Raises `ReplyNotRecordedError` for a tape of other models."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MODELS
    models = {"chat": chat, "embedding": embedding}
    if path.exists() and orjson.loads(path.read_bytes()) != models:
        raise ReplyNotRecordedError(
            f"{folder} holds replies of other models ({path.read_text().strip()}): name another folder"
        )
    path.write_bytes(orjson.dumps(models) + b"\n")


class ReplyLog:
    """One kind of reply by its key; each new one is written at once, so that a run that breaks off loses none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_bytes().splitlines() if path.exists() else []
        self._replies: dict[str, dict[str, Any]] = {one["key"]: one for one in map(orjson.loads, lines)}

    def get(self, key: str) -> dict[str, Any] | None:
        return self._replies.get(key)

    def keep(self, keys: AbstractSet[str]) -> None:
        """Leave out every other reply, and write the rest in the order of their keys: a new run changes few lines."""
        self._replies = {key: self._replies[key] for key in sorted(keys)}
        self._path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in self._replies.values()))

    @property
    def keys(self) -> AbstractSet[str]:
        return self._replies.keys()

    def versions(self) -> set[str]:
        """The versions of the prompts that the replies are to."""
        return {one["prompt"] for one in self._replies.values()}

    def put(self, key: str, **reply: Any) -> dict[str, Any]:
        self._replies[key] = {"key": key, **reply}
        with self._path.open("ab") as file:
            file.write(orjson.dumps(self._replies[key]) + b"\n")
        return self._replies[key]


def key_of(model: str, *texts: str) -> str:
    return hashlib.sha256("\0".join((model, *texts)).encode()).hexdigest()


class RecordedChatModel:
    """Answers from the tape; what is not on it is asked of `live` and recorded.

    Without `live` that raises `ReplyNotRecordedError`. `asked` are all questions by their keys.
    """

    def __init__(self, folder: Path, model: str, live: ChatModel | None = None) -> None:
        self.tape = ReplyLog(folder / CHAT)
        self.asked: dict[str, Prompt] = {}
        self._live = live
        self.model = model

    async def complete(self, prompt: Prompt) -> Reply:
        words = [text for message in prompt.messages for text in (message.role, message.content)]
        key = key_of(prompt.model or self.model, *words)
        self.asked[key] = prompt
        known = self.tape.get(key)
        if known is None and self._live is None:
            raise ReplyNotRecordedError(f"no {prompt.purpose} reply to these messages is on the tape; record it anew")
        if known is None and self._live is not None:
            try:
                reply = await self._live.complete(prompt)
            except PromptRefusedError as error:
                known = self.tape.put(key, prompt=prompt.version, refused=[error.reason, error.detail])
            else:
                usage = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
                known = self.tape.put(
                    key, prompt=prompt.version, refused=None, text=reply.text, model=reply.model, usage=usage
                )
        assert known is not None
        if known["refused"]:
            raise PromptRefusedError(*known["refused"])
        return Reply(text=known["text"], model=known["model"], usage=Usage(**known["usage"]))

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()


class RecordedEmbedder:
    """As `RecordedChatModel`, a vector a text; a call's tokens are shared out to its texts."""

    def __init__(self, folder: Path, model: str, live: Embedder | None = None) -> None:
        self._tape = ReplyLog(folder / EMBEDDINGS)
        self._live = live
        self.model = model

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        missing = list(dict.fromkeys(text for text in texts if self._tape.get(key_of(self.model, text)) is None))
        if missing and self._live is None:
            raise ReplyNotRecordedError(f"no vector of {missing[0]!r} is on the tape; record it anew")
        if missing and self._live is not None:
            embedded = await self._live.embed(missing)
            share = embedded.usage.input_tokens / len(missing)
            for text, vector in zip(missing, embedded.vectors, strict=True):
                self._tape.put(key_of(self.model, text), vector=vector.model_dump(mode="json"), tokens=share)
        known = [self._tape.get(key_of(self.model, text)) or {} for text in texts]
        return Embeddings(
            vectors=tuple(Vector.model_validate(one["vector"]) for one in known),
            usage=Usage(input_tokens=round(sum(one["tokens"] for one in known))),
        )

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()
