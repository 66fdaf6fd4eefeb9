"""Ask models and store their replies before use: a turn that is delivered again gets the stored reply."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter
from uuid import UUID

from mnemolog.schemas.base import Record
from mnemolog.schemas.costs import NO_PRICES, PriceTable
from mnemolog.schemas.stored import ReplyKey, ReplyNotStorableError, SharedCall, StoredReply
from mnemolog.schemas.vector import Vector
from mnemolog.streams import metrics
from mnemolog.streams.llm import ports
from mnemolog.streams.llm.calls import record_call
from mnemolog.streams.micro_batcher import MicroBatcher


class CachedChatModel:
    """Asks a chat model once per source, stage, prompt version and attempt, however often a turn is delivered.

    What is fetched or stored while a call to the database runs goes there together in the next one.
    """

    def __init__(self, model: ports.ChatModel, replies: ports.ReplyStore, prices: PriceTable = NO_PRICES) -> None:
        self._model = model
        self._prices = prices
        self._replies = replies

        async def get_many(keys: list[ReplyKey]) -> list[tuple[StoredReply, ...]]:
            stored = await replies.get_many(keys)
            return [stored.get(key, ()) for key in keys]

        self._gets: MicroBatcher[ReplyKey, tuple[StoredReply, ...]] = MicroBatcher(get_many, max_wait=0)
        self._puts: MicroBatcher[StoredReply, StoredReply] = MicroBatcher(
            replies.put_many, max_wait=0, isolate_on=(ReplyNotStorableError,)
        )

    @property
    def model(self) -> str:
        return self._model.model

    def for_source(self, source: ports.RequestSource, question: ports.Prompt) -> ports.AskModel:
        """A way to ask `question`, and to ask it again with complaints, on behalf of `source`."""
        version = self._version(question)

        async def ask(prompt: ports.Prompt, attempt: int) -> ports.TimedReply:
            stored = await self._gets.submit(_key(source, version))
            known = next((reply for reply in stored if reply.attempt == attempt), None)
            if known is None:
                started = perf_counter()
                reply = await self._model.complete(prompt)
                milliseconds = record_call(prompt.purpose, reply.model, started, reply.usage, self._prices)
                new = _to_stored_reply(source, version, reply, milliseconds=milliseconds, attempt=attempt)
                known = await self._puts.submit(new)
            return _to_timed_reply(known, source.position)

        return ask

    async def unused_replies(
        self, source: ports.RequestSource, question: ports.Prompt | None
    ) -> Sequence[ports.TimedReply]:
        if source.position is None:
            return ()
        stored = await self._replies.paid(source.owner, source.source_id, source.stage, source.position)
        used = self._version(question) if question else None
        return [_to_timed_reply(reply, source.position) for reply in stored if reply.version != used]

    async def has_reply(self, question: ports.SourceQuestion) -> bool:
        return bool(await self._gets.submit(_key(question.source, self._version(question.prompt))))

    async def ask_together(
        self,
        questions: Sequence[ports.SourceQuestion],
        prompt: ports.Prompt,
        divide: ports.DivideReply,
        *,
        known: tuple[UUID, ...] = (),
        entities: tuple[UUID, ...] = (),
    ) -> Sequence[bool]:
        """As `SourceChatModel`. All parts are stored at once, or none: then nothing is known of this call."""
        started = perf_counter()
        reply = await self._model.complete(prompt)
        turns = len(questions)
        milliseconds = record_call(prompt.purpose, reply.model, started, reply.usage, self._prices, turns=turns)
        parts = divide(reply)
        request = _digest(*(message.content for message in prompt.messages))
        first = next((place for place, part in enumerate(parts) if part), None)
        turn_ids = tuple(question.source.source_id for question in questions)
        new = []
        for place, (question, part) in enumerate(zip(questions, parts, strict=True)):
            if part is not None:
                call = SharedCall(
                    turns=len(questions),
                    request=request,
                    is_counted=place == first,
                    known=known,
                    entities=entities,
                    others=(*turn_ids[:place], *turn_ids[place + 1 :]),
                )
                version = self._version(question.prompt)
                made = _to_stored_reply(question.source, version, part, milliseconds=milliseconds)
                new.append(replace(made, shared=call.model_dump_json()))
                new += [question.kept_with] if question.kept_with else []
        await self._replies.put_many(new)
        return [part is not None for part in parts]

    def _version(self, question: ports.Prompt) -> str:
        # The digest keeps a stored reply from answering another question: after a rebalance a turn may meet
        # other candidates, and the integers of a reply mean nothing without them.
        contents = (message.content for message in question.messages)
        return f"{question.version}/{_digest(question.model or self._model.model, *contents)}"

    async def close(self) -> None:
        await self._gets.close()
        await self._puts.close()
        await self._model.close()


class _StoredVectors(Record):
    """What is stored of an embedding call for one source: its share of the call and its vectors."""

    share: float
    vectors: tuple[Vector, ...]


_EmbeddingRequest = tuple[ports.RequestSource, tuple[str, ...]]


class CachedEmbedder:
    """Embeds the texts of many sources in one call and stores the vectors of each source."""

    def __init__(
        self,
        embedder: ports.Embedder,
        replies: ports.ReplyStore,
        *,
        max_texts: int,
        max_wait: float,
        max_concurrent: int,
        prices: PriceTable = NO_PRICES,
    ) -> None:
        self._prices = prices
        self._embedder = embedder
        self._replies = replies

        async def embed_alone(wanted: _EmbeddingRequest) -> ports.EmbeddingResult:
            return (await self._embed_all([wanted], divisible=False))[0]

        self._batcher: MicroBatcher[_EmbeddingRequest, ports.EmbeddingResult] = MicroBatcher(
            lambda wanted: self._embed_all(wanted, divisible=True),
            run_alone=embed_alone,
            max_items=max_texts,
            max_wait=max_wait,
            max_concurrent=max_concurrent,
            isolate_on=(ports.BatchSuspectError, ports.PromptRefusedError, ReplyNotStorableError),
        )

    @property
    def model(self) -> str:
        return self._embedder.model

    async def embed(self, source: ports.RequestSource, texts: tuple[str, ...]) -> ports.EmbeddingResult:
        """Return one vector a text. Waits up to `max_wait` seconds for other texts. Raises `PromptRefusedError`."""
        if not texts:
            return ports.EmbeddingResult(vectors=(), model=self.model, calls=0, tokens=0, milliseconds=0)
        return await self._batcher.submit((source, texts))

    async def close(self) -> None:
        await self._batcher.close()
        await self._embedder.close()

    async def _embed_all(self, wanted: list[_EmbeddingRequest], *, divisible: bool) -> list[ports.EmbeddingResult]:
        versions = [f"embed/{self.model}/{_digest(*texts)}" for _, texts in wanted]
        keys = [_key(source, version) for (source, _), version in zip(wanted, versions, strict=True)]
        stored = dict(await self._replies.get_many(keys))
        missing = [place for place, key in enumerate(keys) if key not in stored]
        # What is stored is what was made now, unless another worker was first: then its vectors count.
        made: dict[str, _StoredVectors] = {}
        if missing:
            started = perf_counter()
            all_texts = [text for place in missing for text in wanted[place][1]]
            embeddings = await self._embedder.embed(all_texts, divisible=divisible)
            milliseconds = record_call("embed", self.model, started, embeddings.usage, self._prices)
            metrics.EMBEDDING_TEXTS.observe(len(all_texts))
            vectors, new = iter(embeddings.vectors), []
            for place in missing:
                source, texts = wanted[place]
                share = len(texts) / len(all_texts)
                own = _StoredVectors(share=round(share, 4), vectors=tuple(islice(vectors, len(texts))))
                usage = ports.Usage(input_tokens=round(embeddings.usage.input_tokens * share))
                reply = ports.Reply(
                    text=own.model_dump_json(), model=self.model, usage=usage, endpoint=embeddings.endpoint
                )
                made[reply.text] = own
                new.append(_to_stored_reply(source, versions[place], reply, milliseconds=milliseconds))
            stored |= {reply.key: (reply,) for reply in await self._replies.put_many(new)}
        results = []
        for key, (source, _) in zip(keys, wanted, strict=True):
            kept = stored[key][0]
            own = made.get(kept.reply) or _StoredVectors.model_validate_json(kept.reply)
            is_paid = kept.is_paid_by_another(source.position)
            results.append(
                ports.EmbeddingResult(
                    vectors=own.vectors,
                    model=kept.model,
                    calls=0 if is_paid else own.share,
                    tokens=0 if is_paid else kept.input_tokens,
                    milliseconds=kept.milliseconds,
                    is_paid=is_paid,
                    endpoint=kept.endpoint,
                )
            )
        return results


def _key(source: ports.RequestSource, version: str) -> ReplyKey:
    return (source.owner, source.source_id, source.stage, version)


def _to_stored_reply(
    source: ports.RequestSource, version: str, reply: ports.Reply, *, milliseconds: float, attempt: int = 0
) -> StoredReply:
    return StoredReply(
        owner=source.owner,
        source_id=source.source_id,
        stage=source.stage,
        version=version,
        attempt=attempt,
        reply=reply.text,
        model=reply.model,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cached_tokens=reply.usage.cached_tokens,
        milliseconds=milliseconds,
        paid_by=source.position,
        endpoint=reply.endpoint,
    )


def _to_timed_reply(reply: StoredReply, position: str | None) -> ports.TimedReply:
    usage = ports.Usage(
        input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cached_tokens=reply.cached_tokens
    )
    shared = SharedCall.model_validate_json(reply.shared) if reply.shared else None
    return ports.TimedReply(
        text=reply.reply,
        model=reply.model,
        usage=usage,
        milliseconds=reply.milliseconds,
        shared=shared,
        is_paid=reply.is_paid_by_another(position),
        endpoint=reply.endpoint,
    )


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
