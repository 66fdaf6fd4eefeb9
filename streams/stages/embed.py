"""`embed`: a vector for each fact, and one fact where a turn says the same thing twice.

Names in the facts of a turn that have a meaning get vectors in the same call. The texts of a command are embedded as
they are: each belongs to one of its items.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from mnemolog.schemas.entities import NameVector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact
from mnemolog.schemas.provenance import DroppedStatement, Step
from mnemolog.schemas.vector import cosine_similarity
from mnemolog.streams import metrics
from mnemolog.streams.entities.resolver import names_to_embed
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ask import fallback_notes
from mnemolog.streams.llm.ports import EmbeddingResult, PromptRefusedError, RequestSource, SourceEmbedder
from mnemolog.streams.stages.processor import ReceivedEnvelope, ThresholdsFor, next_envelope
from mnemolog.streams.text.differences import subjects_differ, texts_equivalent


class EmbedStage:
    """Works on one source's extracted facts."""

    def __init__(self, embedder: SourceEmbedder, thresholds_for: ThresholdsFor) -> None:
        self._embedder = embedder
        self._thresholds_for = thresholds_for

    async def __call__(self, received: ReceivedEnvelope[ExtractedFacts], record: KafkaRecord) -> EmbeddedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.require_valid()
        if envelope.end is not None and not envelope.facts:
            return next_envelope(EmbeddedFacts, envelope)
        names = self._names(envelope)
        embedded = await self._embed(envelope, names.values())
        vectors = iter(embedded.vectors)
        facts = tuple(EmbeddedFact(fact=fact, vector=next(vectors)) for fact in envelope.facts)
        name_vectors = tuple(NameVector(key=key, vector=vector) for key, vector in zip(names, vectors, strict=True))
        dropped: tuple[DroppedStatement, ...] = ()
        if envelope.source_kind == "turn":
            threshold = self._thresholds_for(embedded.model, envelope.overrides).near_duplicate
            speakers = () if envelope.speaker is None else (envelope.speaker,)
            facts, dropped = drop_near_duplicates(facts, threshold, speakers)
            metrics.FACTS_DROPPED.labels(reason="near_duplicate").inc(len(dropped))
        step = Step(
            stage="embed",
            milliseconds=embedded.milliseconds,
            model=embedded.model,
            embedding_calls=embedded.calls,
            input_tokens=embedded.tokens,
            dropped=dropped,
            stored_replies=int(embedded.is_paid),
            notes=tuple(fallback_notes((embedded,))),
        )
        steps = (*envelope.steps, step)
        return next_envelope(EmbeddedFacts, envelope, facts=facts, name_vectors=name_vectors, steps=steps)

    def _names(self, envelope: ExtractedFacts) -> dict[str, str]:
        """The names that get vectors, by their keys."""
        if envelope.source_kind == "command":
            return {}
        thresholds = self._thresholds_for(self._embedder.model, envelope.overrides)
        return names_to_embed(envelope.facts) if thresholds.name_twin else {}

    async def _embed(self, envelope: ExtractedFacts, names: Iterable[str]) -> EmbeddingResult:
        source = RequestSource.of(envelope, "embed")
        try:
            return await self._embedder.embed(source, (*(fact.search_text for fact in envelope.facts), *names))
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail) from error


def drop_near_duplicates(
    facts: Sequence[EmbeddedFact], threshold: float, speakers: Sequence[str] = ()
) -> tuple[tuple[EmbeddedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts without later ones that say the same as an earlier one, and those, with their similarity.

    A similarity above `threshold` counts where the words are equal or `texts_equivalent`. `speakers` name whom the
    facts call "the user".
    """
    if len(facts) == 1:
        return tuple(facts), ()
    numbers = cache(lambda place: facts[place].vector.values)
    kept: list[int] = []
    dropped: list[DroppedStatement] = []
    for place, fact in enumerate(facts):
        alike = (
            cosine_similarity(numbers(place), numbers(before))
            for before in kept
            if _may_be_duplicates(fact.fact, facts[before].fact, speakers)
        )
        nearest = max(alike, default=-1.0)
        if nearest > threshold:
            said = {"text": fact.fact.text, "excerpt": fact.fact.excerpt}
            dropped.append(DroppedStatement(**said, reason="near_duplicate", similarity=round(nearest, 4)))
        else:
            kept.append(place)
    return tuple(facts[place] for place in kept), tuple(dropped)


def _may_be_duplicates(one: ExtractedFact, other: ExtractedFact, speakers: Sequence[str]) -> bool:
    if subjects_differ(one, other, speakers):
        return False
    return one.content_hash == other.content_hash or texts_equivalent(one.text, other.text)
