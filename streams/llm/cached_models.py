"""Ask models and store their replies before use: a turn that is delivered again gets the stored reply."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from mnemolog.schemas.base import Record
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.replies import StoredReply
from mnemolog.schemas.vector import Vector
from mnemolog.streams import metrics
from mnemolog.streams.llm.batched_reply_store import BatchedReplyStore
from mnemolog.streams.llm.errors import PromptRefusedError
from mnemolog.streams.llm.micro_batcher import MicroBatcher
from mnemolog.streams.llm.ports import ChatModel, Embedder, Prompt, ReplyStore, TimedReply, Usage

AskModel = Callable[[Prompt, int], Awaitable[TimedReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSource:
    """For whom a model is asked."""

    owner: str
    source_id: str
    stage: Stage


class CachedChatModel:
    """Asks a chat model once per source, stage, prompt version and attempt, however often a turn is delivered."""

    def __init__(self, model: ChatModel, replies: ReplyStore) -> None:
        self._model = model
        self._replies = BatchedReplyStore(replies)

    @property
    def model(self) -> str:
        return self._model.model

    def for_source(self, source: RequestSource, question: Prompt) -> AskModel:
        """A way to ask `question`, and to ask it again with complaints, on behalf of `source`."""
        # The digest keeps a stored reply from answering another question: after a rebalance a turn may meet
        # other candidates, and the integers of a reply mean nothing without them.
        said = _digest(*(message.content for message in question.messages))
        version = f"{question.version}/{question.model or self._model.model}/{said}"

        async def ask(prompt: Prompt, attempt: int) -> TimedReply:
            stored = await self._replies.get((source.owner, source.source_id, source.stage, version))
            known = next((reply for reply in stored if reply.attempt == attempt), None)
            return _to_timed_reply(known or await self._call_model(source, version, prompt, attempt))

        return ask

    async def close(self) -> None:
        await self._replies.close()
        await self._model.close()

    async def _call_model(self, source: RequestSource, version: str, prompt: Prompt, attempt: int) -> StoredReply:
        started = perf_counter()
        reply = await self._model.complete(prompt)
        _record_call_metrics(prompt.purpose, reply.model, started, reply.usage)
        return await self._replies.put(
            StoredReply(
                owner=source.owner,
                source_id=source.source_id,
                stage=source.stage,
                version=version,
                attempt=attempt,
                reply=reply.text,
                model=reply.model,
                input_tokens=reply.usage.input_tokens,
                output_tokens=reply.usage.output_tokens,
                milliseconds=_milliseconds_since(started),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingResult:
    """One vector a text; `calls` is this source's share of the call, `milliseconds` the whole call's."""

    vectors: tuple[Vector, ...]
    model: str
    calls: float
    tokens: int
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _EmbeddingRequest:
    source: RequestSource
    texts: tuple[str, ...]


class _StoredVectors(Record):
    """What is stored of an embedding call for one source: its share of the call and its vectors."""

    share: float
    vectors: tuple[Vector, ...]


_EmbeddingOutcome = EmbeddingResult | PromptRefusedError


class CachedEmbedder:
    """Embeds the texts of many sources in one call and keeps what came back for each source."""

    def __init__(
        self, embedder: Embedder, replies: ReplyStore, *, max_texts: int, max_wait: float, max_concurrent: int
    ) -> None:
        self._embedder = embedder
        self._replies = replies
        self._batcher: MicroBatcher[_EmbeddingRequest, _EmbeddingOutcome] = MicroBatcher(
            self._embed_all, max_items=max_texts, max_wait=max_wait, max_concurrent=max_concurrent
        )

    @property
    def model(self) -> str:
        return self._embedder.model

    async def embed(self, source: RequestSource, texts: tuple[str, ...]) -> EmbeddingResult:
        """Return one vector a text. Waits up to `max_wait` seconds for other texts. Raises `PromptRefusedError`."""
        if not texts:
            return EmbeddingResult(vectors=(), model=self.model, calls=0, tokens=0, milliseconds=0)
        outcome = await self._batcher.submit(_EmbeddingRequest(source=source, texts=texts))
        if isinstance(outcome, PromptRefusedError):
            raise outcome
        return outcome

    async def close(self) -> None:
        await self._batcher.close()
        await self._embedder.close()

    async def _embed_all(self, wanted: list[_EmbeddingRequest]) -> list[_EmbeddingOutcome]:
        stored = await self._replies.get_many([self._key(item) for item in wanted])
        missing = [item for item in wanted if self._key(item) not in stored]
        outcomes = {
            self._key(item): item_outcome
            for item, item_outcome in zip(missing, await self._embed_missing(missing), strict=True)
        }
        return [outcomes.get(key) or _to_embedding_result(stored[key][0]) for key in map(self._key, wanted)]

    async def _embed_missing(self, missing: list[_EmbeddingRequest]) -> list[_EmbeddingOutcome]:
        """Embed in one call; where that is refused, one by one, so that one text spoils no other turn."""
        if not missing:
            return []
        try:
            return [
                _to_embedding_result(reply)
                for reply in await self._replies.put_many(await self._call_embedder(missing))
            ]
        except PromptRefusedError as error:
            if len(missing) == 1:
                return [error]
            return [outcome for item in missing for outcome in await self._embed_missing([item])]

    async def _call_embedder(self, wanted: list[_EmbeddingRequest]) -> list[StoredReply]:
        started = perf_counter()
        texts = [text for item in wanted for text in item.texts]
        embeddings = await self._embedder.embed(texts)
        _record_call_metrics("embed", self._embedder.model, started, embeddings.usage)
        metrics.EMBEDDING_TEXTS.observe(len(texts))
        milliseconds = _milliseconds_since(started)
        vectors = iter(embeddings.vectors)
        return [
            self._to_stored_reply(
                item, tuple(islice(vectors, len(item.texts))), embeddings.usage, len(texts), milliseconds
            )
            for item in wanted
        ]

    def _to_stored_reply(
        self, item: _EmbeddingRequest, vectors: tuple[Vector, ...], usage: Usage, texts: int, milliseconds: float
    ) -> StoredReply:
        share = len(item.texts) / texts
        return StoredReply(
            owner=item.source.owner,
            source_id=item.source.source_id,
            stage=item.source.stage,
            version=self._version(item),
            attempt=0,
            reply=_StoredVectors(share=round(share, 4), vectors=vectors).model_dump_json(),
            model=self._embedder.model,
            input_tokens=round(usage.input_tokens * share),
            output_tokens=0,
            milliseconds=milliseconds,
        )

    def _version(self, item: _EmbeddingRequest) -> str:
        return f"embed/{self._embedder.model}/{_digest(*item.texts)}"

    def _key(self, item: _EmbeddingRequest) -> tuple[str, str, str, str]:
        return (item.source.owner, item.source.source_id, item.source.stage, self._version(item))


def _to_embedding_result(reply: StoredReply) -> EmbeddingResult:
    kept = _StoredVectors.model_validate_json(reply.reply)
    return EmbeddingResult(
        vectors=kept.vectors,
        model=reply.model,
        calls=kept.share,
        tokens=reply.input_tokens,
        milliseconds=reply.milliseconds,
    )


def _to_timed_reply(reply: StoredReply) -> TimedReply:
    return TimedReply(
        text=reply.reply,
        model=reply.model,
        usage=Usage(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens),
        milliseconds=reply.milliseconds,
    )


def _record_call_metrics(purpose: str, model: str, started: float, usage: Usage) -> None:
    metrics.MODEL_CALLS.labels(purpose=purpose, model=model).inc()
    metrics.MODEL_SECONDS.labels(purpose=purpose, model=model).observe(perf_counter() - started)
    for direction, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        metrics.MODEL_TOKENS.labels(purpose=purpose, model=model, direction=direction).inc(tokens)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _milliseconds_since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)
