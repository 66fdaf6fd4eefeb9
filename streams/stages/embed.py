"""`embed`: a vector for each fact, and one fact where a turn says the same thing twice.

The texts of a command are embedded as they are: each belongs to one of its items.
"""

import math
from collections.abc import Callable, Sequence
from operator import mul

from mnemolog.schemas.envelopes import EmbeddedFacts, End, ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact
from mnemolog.schemas.provenance import DroppedStatement, Step, Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams import metrics
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedEmbedder, EmbeddingResult, RequestSource
from mnemolog.streams.llm.errors import PromptRefusedError
from mnemolog.streams.stages.envelope import ended_envelope, next_envelope
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.received import ReceivedEnvelope
from mnemolog.streams.text.differences import subjects_differ, texts_equivalent

ThresholdsFor = Callable[[str, Overrides], Thresholds]


class EmbedStage:
    """Works on one turn's extracted facts."""

    def __init__(self, embedder: CachedEmbedder, thresholds_for: ThresholdsFor) -> None:
        self._embedder = embedder
        self._thresholds_for = thresholds_for

    async def __call__(self, received: ReceivedEnvelope[ExtractedFacts], record: KafkaRecord) -> EmbeddedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.require_valid()
        if envelope.end is not None:
            return next_envelope(EmbeddedFacts, envelope)
        embedded = await self._embed(envelope)
        facts = [
            EmbeddedFact(fact=fact, vector=vector)
            for fact, vector in zip(envelope.facts, embedded.vectors, strict=True)
        ]
        if envelope.source_kind == "command":
            return next_envelope(
                EmbeddedFacts, envelope, facts=tuple(facts), steps=(*envelope.steps, _step(embedded, ()))
            )
        threshold = self._thresholds_for(embedded.model, envelope.overrides).near_duplicate
        kept, dropped = drop_near_duplicates(facts, threshold)
        metrics.FACTS_DROPPED.labels(reason="near_duplicate").inc(len(dropped))
        return next_envelope(EmbeddedFacts, envelope, facts=kept, steps=(*envelope.steps, _step(embedded, dropped)))

    async def _embed(self, envelope: ExtractedFacts) -> EmbeddingResult:
        source = RequestSource(owner=envelope.owner, source_id=envelope.source_id, stage="embed")
        try:
            return await self._embedder.embed(source, tuple(fact.search_text for fact in envelope.facts))
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail, possibly_systemic=True) from error


def finish_embed(received: ReceivedEnvelope[ExtractedFacts], end: End, step: Step | None) -> EmbeddedFacts:
    return ended_envelope(EmbeddedFacts, received.envelope, end, step)


def drop_near_duplicates(
    facts: Sequence[EmbeddedFact], threshold: float
) -> tuple[tuple[EmbeddedFact, ...], tuple[DroppedStatement, ...]]:
    """Keep the first of facts that say the same; tell what fell to which similarity.

    Vectors with a cosine above `threshold` say so where they can vouch for their texts, or where the words are equal.
    """
    if len(facts) == 1:
        return tuple(facts), ()
    kept: list[tuple[EmbeddedFact, tuple[float, ...]]] = []
    dropped: list[DroppedStatement] = []
    for fact in facts:
        values = fact.vector.values
        alike = (
            cosine_similarity(values, other) for before, other in kept if _may_be_duplicates(fact.fact, before.fact)
        )
        nearest = max(alike, default=-1.0)
        if nearest > threshold:
            dropped.append(DroppedStatement(text=fact.fact.text, reason="near_duplicate", similarity=round(nearest, 4)))
        else:
            kept.append((fact, values))
    return tuple(fact for fact, _ in kept), tuple(dropped)


def _may_be_duplicates(one: ExtractedFact, other: ExtractedFact) -> bool:
    if subjects_differ(one, other):
        return False
    return one.content_hash == other.content_hash or texts_equivalent(one.text, other.text)


def cosine_similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The similarity of two vectors of any length; 0 where one has none."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0


def _step(embedded: EmbeddingResult, dropped: Sequence[DroppedStatement]) -> Step:
    return Step(
        stage="embed",
        milliseconds=embedded.milliseconds,
        model=embedded.model,
        embedding_calls=embedded.calls,
        input_tokens=embedded.tokens,
        dropped=tuple(dropped),
    )
