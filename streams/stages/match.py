"""`find`: the known facts near each new one, or of its key, in one round trip to the database."""

from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Final

from mnemolog.projections.stores.candidates import CandidateFinder, CandidateQuery
from mnemolog.schemas.envelopes import EmbeddedFacts, End, MatchedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy, is_single_valued
from mnemolog.schemas.provenance import Step, Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.embed import ThresholdsFor
from mnemolog.streams.stages.envelope import ended_envelope, next_envelope
from mnemolog.streams.stages.received import ReceivedEnvelope

RulesFor = Callable[[Scope, Overrides], Awaitable[EffectivePolicy]]

# What candidates may take of a record beside the facts; one has about as many bytes beside its texts.
MAX_CANDIDATE_BYTES: Final = 128 * 1024
CANDIDATE_BYTES: Final = 600


class MatchStage:
    """Works on one turn's embedded facts; only facts of exactly its scope are looked at.

    A command's are carried on without a lookup: it names the facts that it is about.
    """

    def __init__(self, matcher: CandidateFinder, thresholds_for: ThresholdsFor, rules_for: RulesFor) -> None:
        self._matcher = matcher
        self._thresholds_for = thresholds_for
        self._rules_for = rules_for

    async def __call__(self, received: ReceivedEnvelope[EmbeddedFacts], record: KafkaRecord) -> MatchedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.require_valid()
        if envelope.end is not None or envelope.scope is None:
            return next_envelope(MatchedFacts, envelope)
        if envelope.source_kind == "command":
            return next_envelope(MatchedFacts, envelope, facts=_without_candidates(envelope.facts))
        started = perf_counter()
        facts, version = await self.find_candidates(envelope, envelope.scope, envelope.facts)
        if _candidate_bytes(facts) > MAX_CANDIDATE_BYTES:
            # No scope with candidates is at version 0: the resolver will look for them itself.
            facts, version = _without_candidates(facts), 0
        step = Step(stage="match", milliseconds=round((perf_counter() - started) * 1000, 3))
        return next_envelope(MatchedFacts, envelope, facts=facts, scope_version=version, steps=(*envelope.steps, step))

    async def find_candidates(
        self,
        envelope: EmbeddedFacts | MatchedFacts,
        scope: Scope,
        facts: Sequence[EmbeddedFact],
        rules: EffectivePolicy | None = None,
    ) -> tuple[tuple[MatchedFact, ...], int]:
        """The facts with their candidates, and the version of the scope that these were found in.

        `rules` are asked for where they are not given and a key needs them.
        """
        if not facts:
            return (), 0
        thresholds = self._thresholds_for(facts[0].vector.model, envelope.overrides)
        if rules is None:
            rules = await self._rules(envelope, scope, facts)
        found = await self._matcher.find(
            scope, [_candidate_query(fact, thresholds, rules) for fact in facts], at=envelope.occurred_at
        )
        matched = tuple(
            MatchedFact(fact=fact.fact, vector=fact.vector, candidates=candidates)
            for fact, candidates in zip(facts, found.candidates, strict=True)
        )
        return matched, found.scope_version

    async def _rules(
        self, envelope: EmbeddedFacts | MatchedFacts, scope: Scope, facts: Sequence[EmbeddedFact]
    ) -> EffectivePolicy:
        """The rules, without a round trip where the registry of keys says all there is to say."""
        if all(_is_single_valued_by_registry(fact.fact) or fact.fact.key is None for fact in facts):
            return EffectivePolicy()
        return await self._rules_for(scope, envelope.overrides)


def finish_match(received: ReceivedEnvelope[EmbeddedFacts], end: End, step: Step | None) -> MatchedFacts:
    return ended_envelope(MatchedFacts, received.envelope, end, step)


def _candidate_query(embedded: EmbeddedFact, thresholds: Thresholds, rules: EffectivePolicy) -> CandidateQuery:
    fact = embedded.fact
    floor = min(thresholds.conflict, thresholds.raw_duplicate, thresholds.duplicate)
    return CandidateQuery(
        vector=embedded.vector,
        content_hash=fact.content_hash,
        min_similarity=floor if fact.action_hint == "new" else min(floor, thresholds.ending),
        key=fact.key if fact.single_valued or rules.is_single_valued(fact.key) else None,
        subject=fact.subject,
    )


def _is_single_valued_by_registry(fact: ExtractedFact) -> bool:
    return fact.single_valued or is_single_valued(fact.key)


def _without_candidates(facts: Sequence[EmbeddedFact]) -> tuple[MatchedFact, ...]:
    return tuple(MatchedFact(fact=fact.fact, vector=fact.vector) for fact in facts)


def _candidate_bytes(facts: Sequence[MatchedFact]) -> int:
    candidates = (known for fact in facts for known in fact.candidates)
    return sum(CANDIDATE_BYTES + len(known.text.encode()) + len(known.excerpt.encode()) for known in candidates)
