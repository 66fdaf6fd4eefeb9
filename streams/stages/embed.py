"""`embed`: a vector for each fact, and one fact where a turn says the same thing twice.

The texts of a command are embedded as they are: each belongs to one of its items.
"""

import math
from collections.abc import Callable, Sequence
from operator import mul

from mnemolog.schemas.envelopes import EmbeddedFacts, End, ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact
from mnemolog.schemas.provenance import Dropped, Step, Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams import metrics
from mnemolog.streams.providers.errors import PromptRefusedError
from mnemolog.streams.recording import EmbeddingRecorder, RecordedVectors, Source
from mnemolog.streams.records import Record
from mnemolog.streams.stages.carrying import carry, ended
from mnemolog.streams.stages.errors import TurnEndedError
from mnemolog.streams.stages.likeness import told_of_another, vouched
from mnemolog.streams.stages.reading import Received

ThresholdsFor = Callable[[str, Overrides], Thresholds]


class Embedding:
    """Works on one turn's extracted facts."""

    def __init__(self, embedder: EmbeddingRecorder, thresholds_for: ThresholdsFor) -> None:
        self._embedder = embedder
        self._thresholds_for = thresholds_for

    async def __call__(self, received: Received[ExtractedFacts], record: Record) -> EmbeddedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.checked()
        if envelope.end is not None:
            return carry(EmbeddedFacts, envelope)
        embedded = await self._embed(envelope)
        facts = [
            EmbeddedFact(fact=fact, vector=vector)
            for fact, vector in zip(envelope.facts, embedded.vectors, strict=True)
        ]
        if envelope.source_kind == "command":
            return carry(EmbeddedFacts, envelope, facts=tuple(facts), steps=(*envelope.steps, _step(embedded, ())))
        threshold = self._thresholds_for(embedded.model, envelope.overrides).near_duplicate
        kept, dropped = without_near_duplicates(facts, threshold)
        metrics.FACTS_DROPPED.labels(reason="near_duplicate").inc(len(dropped))
        return carry(EmbeddedFacts, envelope, facts=kept, steps=(*envelope.steps, _step(embedded, dropped)))

    async def _embed(self, envelope: ExtractedFacts) -> RecordedVectors:
        source = Source(owner=envelope.owner, source_id=envelope.source_id, stage="embed")
        try:
            return await self._embedder.embed(source, tuple(fact.search_text for fact in envelope.facts))
        except PromptRefusedError as error:
            raise TurnEndedError(error.reason, error.detail, suspicious=True) from error


def finish_embed(received: Received[ExtractedFacts], end: End, step: Step | None) -> EmbeddedFacts:
    return ended(EmbeddedFacts, received.envelope, end, step)


def without_near_duplicates(
    facts: Sequence[EmbeddedFact], threshold: float
) -> tuple[tuple[EmbeddedFact, ...], tuple[Dropped, ...]]:
    """Keep the first of facts that say the same; tell what fell to which similarity.

    Vectors with a cosine above `threshold` say so where they can vouch for their texts, or where the words are equal.
    """
    if len(facts) == 1:
        return tuple(facts), ()
    kept: list[tuple[EmbeddedFact, tuple[float, ...]]] = []
    dropped: list[Dropped] = []
    for fact in facts:
        values = fact.vector.values
        alike = (cosine(values, other) for before, other in kept if _comparable(fact.fact, before.fact))
        nearest = max(alike, default=-1.0)
        if nearest > threshold:
            dropped.append(Dropped(text=fact.fact.text, reason="near_duplicate", similarity=round(nearest, 4)))
        else:
            kept.append((fact, values))
    return tuple(fact for fact, _ in kept), tuple(dropped)


def _comparable(one: ExtractedFact, other: ExtractedFact) -> bool:
    if told_of_another(one, other):
        return False
    return one.content_hash == other.content_hash or vouched(one.text, other.text)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The similarity of two vectors of any length; 0 where one has none."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0


def _step(embedded: RecordedVectors, dropped: Sequence[Dropped]) -> Step:
    return Step(
        stage="embed",
        milliseconds=embedded.milliseconds,
        model=embedded.model,
        embedding_calls=embedded.calls,
        input_tokens=embedded.tokens,
        dropped=tuple(dropped),
    )
