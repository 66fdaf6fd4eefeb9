"""`match`: adds the known facts near each new fact, or of its key, as candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from mnemolog.projections.stores.facts import CandidateFinder, CandidateRequest
from mnemolog.schemas.envelopes import EmbeddedFacts, MatchedFacts
from mnemolog.schemas.facts import EmbeddedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy, is_single_valued
from mnemolog.schemas.provenance import Step
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.resolution.classify import candidate_query
from mnemolog.streams.resolution.guards import TurnRules
from mnemolog.streams.stages.processor import ReceivedEnvelope, RulesFor, ThresholdsFor, next_envelope
from mnemolog.streams.text.differences import subject_in_turn

# Bytes that the candidates of one record may take, and about what one takes besides its texts.
MAX_CANDIDATE_BYTES: Final = 128 * 1024
CANDIDATE_BYTES: Final = 600


@dataclass(frozen=True, slots=True)
class MatchStage:
    """Works on one source's embedded facts; candidates are facts of exactly its scope.

    Nothing is looked up for a command: it names the facts that it is about.
    """

    finder: CandidateFinder
    thresholds_for: ThresholdsFor
    rules_for: RulesFor

    async def __call__(self, received: ReceivedEnvelope[EmbeddedFacts], record: KafkaRecord) -> MatchedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.require_valid()
        if envelope.scope is None or (envelope.end is not None and not envelope.facts):
            return next_envelope(MatchedFacts, envelope)
        if envelope.source_kind == "command":
            return next_envelope(MatchedFacts, envelope, facts=_without_candidates(envelope.facts))
        started = perf_counter()
        matched = await self.with_candidates(envelope)
        found = (known for fact in matched.facts for known in fact.candidates)
        texts = (len(known.text.encode()) + len(known.excerpt.encode()) for known in found)
        if sum(CANDIDATE_BYTES + size for size in texts) > MAX_CANDIDATE_BYTES:
            # No scope with candidates is at version 0, so the resolver looks for them itself.
            matched = matched.model_copy(update={"facts": _without_candidates(envelope.facts), "scope_version": 0})
        step = Step(stage="match", milliseconds=round((perf_counter() - started) * 1000, 3))
        return matched.model_copy(update={"steps": (*envelope.steps, step)})

    async def with_candidates(
        self, envelope: EmbeddedFacts | MatchedFacts, rules: EffectivePolicy | None = None
    ) -> MatchedFacts:
        """The facts with their candidates, and the version of the scope that these were found in."""
        facts, scope, overrides = envelope.facts, envelope.scope, envelope.overrides
        if not facts or scope is None:
            return next_envelope(MatchedFacts, envelope)
        if rules is None:
            # Mostly the registry of keys is enough: that spares a round trip.
            keys = {fact.fact.key for fact in facts if not (fact.fact.single_valued or is_single_valued(fact.fact.key))}
            rules = await self.rules_for(scope, overrides) if keys - {None} else EffectivePolicy()
        turn_rules = TurnRules(policy=rules, thresholds=self.thresholds_for(facts[0].vector.model, overrides))
        wanted = [candidate_query(fact, turn_rules) for fact in facts]
        speaker = envelope.speaker
        found = await self.finder.find(
            CandidateRequest(scope=scope, queries=wanted, at=envelope.occurred_at, speaker=speaker)
        )
        names, matched = found.user_names, []
        for one, candidates in zip(facts, found.candidates, strict=True):
            fact, subject = one.fact, subject_in_turn(one.fact.subject, speaker, names)
            if subject != fact.subject:  # "the user" in the words of somebody else is that speaker
                fact = fact.model_copy(update={"subject": subject})
            matched.append(MatchedFact(fact=fact, vector=one.vector, candidates=candidates))
        return next_envelope(
            MatchedFacts,
            envelope,
            facts=tuple(matched),
            name_vectors=envelope.name_vectors,
            scope_version=found.scope_version,
            user_names=names,
        )


def _without_candidates(facts: Sequence[EmbeddedFact]) -> tuple[MatchedFact, ...]:
    return tuple(MatchedFact(fact=fact.fact, vector=fact.vector) for fact in facts)
