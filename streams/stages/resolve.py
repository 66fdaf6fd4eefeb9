"""`resolve`: the only writer of the log. It decides what a turn's facts mean for the known ones and commits the turn.

It waits until all earlier commits of the owner are projected, commits no source twice, and looks again where the scope
has moved since `match` looked.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Any

from projections.matching import Matcher
from schemas.commit import Commit
from schemas.envelopes import End, MatchedFacts
from schemas.events import MemoryEvent
from schemas.provenance import Provenance, Step, Thresholds
from schemas.vector import Vector
from streams import metrics
from streams.prompts.asking import ask
from streams.prompts.errors import ReplyInvalidError
from streams.prompts.resolve import PROMPT_VERSION, Verdict, number, parse_resolution, resolution_prompt
from streams.providers.base import Conflict, Conflicts, RecordedReply
from streams.providers.errors import PromptRefusedError
from streams.recording import ChatRecorder, EmbeddingRecorder, RecordedVectors, Source
from streams.records import Record
from streams.stages.carrying import MAX_DETAIL
from streams.stages.deciding import Circumstances, Contested, Judgement, Weight, events, weigh
from streams.stages.embed import ThresholdsFor
from streams.stages.freshness import Freshness
from streams.stages.match import Matching
from streams.stages.reading import Received

Clock = Callable[[], datetime]


class Resolver:
    """Works on one turn's matched facts; gives its commit, or None where the turn has one already."""

    def __init__(
        self,
        *,
        matcher: Matcher,
        matching: Matching,
        model: ChatRecorder,
        embedder: EmbeddingRecorder,
        freshness: Freshness,
        thresholds_for: ThresholdsFor,
        clock: Clock,
    ) -> None:
        self._matcher = matcher
        self._matching = matching
        self._model = model
        self._embedder = embedder
        self._freshness = freshness
        self._thresholds_for = thresholds_for
        self._clock = clock

    async def __call__(self, received: Received[MatchedFacts], record: Record) -> Commit | None:
        envelope = received.envelope
        await self._freshness.reached(envelope.owner, record.partition)
        standing = await self._matcher.standing(envelope.owner, envelope.source_id, envelope.scope)
        if standing.committed:
            metrics.ALREADY_COMMITTED.inc()
            return None
        envelope = received.checked()
        if envelope.end is not None or envelope.scope is None:
            return self.ended(envelope, envelope.end or End(outcome="failed", reason="no_scope"))
        if standing.scope_version != envelope.scope_version:
            facts, version = await self._matching.matched(envelope, envelope.scope, envelope.facts)
            envelope = envelope.model_copy(update={"facts": facts, "scope_version": version})
        return await self._resolve(envelope)

    def ended(self, envelope: MatchedFacts, end: End, step: Step | None = None) -> Commit:
        steps = envelope.steps if step is None else (*envelope.steps, step)
        return Commit(
            **_identity(envelope),
            decided_at=self._clock(),
            outcome=end.outcome,
            reason=end.reason,
            detail=end.detail[:MAX_DETAIL],
            provenance=Provenance(steps=steps),
            based_on=envelope.scope_version,
        )

    def finish(self, received: Received[MatchedFacts], end: End, step: Step | None) -> Commit:
        return self.ended(received.envelope, end, step)

    async def _resolve(self, envelope: MatchedFacts) -> Commit:
        started = perf_counter()
        thresholds = self._thresholds_for(self._embedder.model, envelope.overrides)
        weights = [weigh(fact, thresholds, infer=envelope.infer) for fact in envelope.facts]
        judgements, step = await self._judge(envelope, weights, started)
        circumstances = Circumstances(
            owner=envelope.owner,
            source_id=envelope.source_id,
            occurred_at=envelope.occurred_at,
            speaker=envelope.speaker,
            thresholds=thresholds,
        )
        return self._commit(envelope, events(weights, judgements, circumstances), step, thresholds)

    def _commit(
        self, envelope: MatchedFacts, made: tuple[MemoryEvent, ...], step: Step, thresholds: Thresholds
    ) -> Commit:
        return Commit(
            **_identity(envelope),
            decided_at=self._clock(),
            outcome="facts" if made else "no_facts",
            events=made,
            provenance=Provenance(steps=(*envelope.steps, step), thresholds=thresholds),
            based_on=envelope.scope_version,
        )

    async def _judge(
        self, envelope: MatchedFacts, weights: Sequence[Weight], started: float
    ) -> tuple[dict[int, Judgement], Step]:
        """Ask about all contested facts in one call; where nothing valid comes back, say so for each."""
        contested = {ordinal: weight for ordinal, weight in enumerate(weights) if isinstance(weight, Contested)}
        if not contested:
            return {}, Step(stage="resolve", milliseconds=_milliseconds_since(started))
        conflicts = number([(weight.matched.fact, weight.candidates) for weight in contested.values()])
        try:
            judgements, step = await self._asked(envelope, conflicts)
        except (ReplyInvalidError, PromptRefusedError) as error:
            metrics.UNRESOLVED.inc(len(contested))
            step = _step(error.replies if isinstance(error, ReplyInvalidError) else ())
            judgements = [self._unresolved(error)] * len(contested)
        step = step.model_copy(update={"milliseconds": _milliseconds_since(started)})
        return dict(zip(contested, judgements, strict=True)), step

    async def _asked(self, envelope: MatchedFacts, conflicts: Conflicts) -> tuple[list[Judgement], Step]:
        question = resolution_prompt(conflicts)
        source = Source(owner=envelope.owner, source_id=envelope.source_id, stage="resolve")
        model = self._model.for_source(source, question)
        answer = await ask(model, question, partial(parse_resolution, subject=conflicts))
        metrics.REPROMPTS.labels(purpose="resolve").inc(answer.reprompts)
        texts = [verdict.search_text or verdict.text or "" for verdict in answer.value if verdict.action == "MERGE"]
        merged = await self._embedder.embed(source, tuple(texts))
        vectors = iter(merged.vectors)
        judgements = [
            self._judgement(verdict, conflict, next(vectors) if verdict.action == "MERGE" else None)
            for verdict, conflict in zip(answer.value, conflicts.conflicts, strict=True)
        ]
        return judgements, _step(answer.replies, merged)

    def _judgement(self, verdict: Verdict, conflict: Conflict, merged_vector: Vector | None) -> Judgement:
        return Judgement(
            verdict=verdict,
            targets=tuple(known for label, known in conflict.candidates if label in verdict.targets),
            merged_vector=merged_vector,
            model=self._model.model,
            prompt_version=PROMPT_VERSION,
        )

    def _unresolved(self, error: Exception) -> Judgement:
        complaint = str(error)[:MAX_DETAIL]
        return Judgement(verdict=None, complaint=complaint, model=self._model.model, prompt_version=PROMPT_VERSION)


def _identity(envelope: MatchedFacts) -> dict[str, Any]:
    """What a commit takes over from the envelope as it is."""
    names = ("source_id", "source_kind", "scope", "origin", "occurred_at", "published_at", "metadata")
    return {name: getattr(envelope, name) for name in names}


def _step(replies: Sequence[RecordedReply], merged: RecordedVectors | None = None) -> Step:
    return Step(
        stage="resolve",
        milliseconds=0,
        model=replies[-1].model if replies else None,
        prompt_version=PROMPT_VERSION,
        llm_calls=len(replies),
        embedding_calls=merged.calls if merged else 0,
        input_tokens=sum(reply.usage.input_tokens for reply in replies) + (merged.tokens if merged else 0),
        output_tokens=sum(reply.usage.output_tokens for reply in replies),
        reprompts=max(0, len(replies) - 1),
    )


def _milliseconds_since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)
