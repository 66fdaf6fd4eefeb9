"""`embed`: a vector for each fact, and one fact where a turn says the same thing twice.

Names in the facts of a turn that have a meaning get vectors in the same call. The texts of a command are embedded as
they are: each belongs to one of its items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mnemolog.schemas.entities import NameVector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact
from mnemolog.schemas.provenance import DroppedStatement, Step
from mnemolog.schemas.vector import cosine_similarity
from mnemolog.streams import metrics
from mnemolog.streams.entities.resolver import names_to_embed
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ask import fallback_notes
from mnemolog.streams.llm.ports import PromptRefusedError, RequestSource, SourceEmbedder
from mnemolog.streams.stages.processor import ReceivedEnvelope, ThresholdsFor, next_envelope
from mnemolog.streams.text.differences import subjects_differ, texts_equivalent


@dataclass(frozen=True, slots=True)
class EmbedStage:
    """Works on one source's extracted facts."""

    embedder: SourceEmbedder
    thresholds_for: ThresholdsFor

    async def __call__(self, received: ReceivedEnvelope[ExtractedFacts], record: KafkaRecord) -> EmbeddedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.require_valid()
        if envelope.end is not None and not envelope.facts:
            return next_envelope(EmbeddedFacts, envelope)
        names: dict[str, str] = {}  # those that get vectors, by their keys
        if envelope.source_kind == "turn" and self.thresholds_for(self.embedder.model, envelope.overrides).name_twin:
            names = names_to_embed(envelope.facts)
        texts = (*(fact.search_text for fact in envelope.facts), *names.values())
        try:
            embedded = await self.embedder.embed(RequestSource.of(envelope, "embed"), texts)
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail) from error
        vectors = iter(embedded.vectors)
        facts = tuple(EmbeddedFact(fact=fact, vector=next(vectors)) for fact in envelope.facts)
        name_vectors = tuple(NameVector(key=key, vector=vector) for key, vector in zip(names, vectors, strict=True))
        dropped: tuple[DroppedStatement, ...] = ()
        if envelope.source_kind == "turn":
            threshold = self.thresholds_for(embedded.model, envelope.overrides).near_duplicate
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
            if not subjects_differ(fact.fact, (other := facts[before].fact), speakers)
            and (fact.fact.content_hash == other.content_hash or texts_equivalent(fact.fact.text, other.text))
        )
        nearest = max(alike, default=-1.0)
        if nearest > threshold:
            said = {"text": fact.fact.text, "excerpt": fact.fact.excerpt}
            dropped.append(DroppedStatement(**said, reason="near_duplicate", similarity=round(nearest, 4)))
        else:
            kept.append(place)
    return tuple(facts[place] for place in kept), tuple(dropped)
