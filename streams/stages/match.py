"""`match`: the known facts near each new one, in one round trip to the database."""

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from projections.matching import Matcher
from schemas.envelopes import EmbeddedFacts, End, MatchedFacts
from schemas.facts import EmbeddedFact, MatchedFact
from schemas.provenance import Step
from schemas.scope import Scope
from streams.records import Record
from streams.stages.carrying import carry, ended
from streams.stages.embed import ThresholdsFor
from streams.stages.reading import Received

# What candidates may take of a record beside the facts; one has about as many bytes beside its text.
MAX_CANDIDATE_BYTES: Final = 128 * 1024
CANDIDATE_BYTES: Final = 300


class Matching:
    """Works on one turn's embedded facts; only facts of exactly its scope are looked at."""

    def __init__(self, matcher: Matcher, thresholds_for: ThresholdsFor) -> None:
        self._matcher = matcher
        self._thresholds_for = thresholds_for

    async def __call__(self, received: Received[EmbeddedFacts], record: Record) -> MatchedFacts:  # noqa: ARG002 -- a stage's signature
        envelope = received.checked()
        if envelope.end is not None or envelope.scope is None:
            return carry(MatchedFacts, envelope)
        started = perf_counter()
        facts, version = await self.matched(envelope, envelope.scope, envelope.facts)
        if _candidate_bytes(facts) > MAX_CANDIDATE_BYTES:
            # No scope with candidates is at version 0: the resolver will look for them itself.
            facts, version = tuple(fact.model_copy(update={"candidates": ()}) for fact in facts), 0
        step = Step(stage="match", milliseconds=round((perf_counter() - started) * 1000, 3))
        return carry(MatchedFacts, envelope, facts=facts, scope_version=version, steps=(*envelope.steps, step))

    async def matched(
        self, envelope: EmbeddedFacts | MatchedFacts, scope: Scope, facts: Sequence[EmbeddedFact]
    ) -> tuple[tuple[MatchedFact, ...], int]:
        """The facts with their candidates, and the version of the scope that these were found in."""
        if not facts:
            return (), 0
        thresholds = self._thresholds_for(facts[0].vector.model, envelope.overrides)
        found = await self._matcher.match(
            scope,
            [(fact.vector, fact.fact.content_hash) for fact in facts],
            floor=min(thresholds.conflict, thresholds.raw_duplicate, thresholds.duplicate),
            at=envelope.occurred_at,
        )
        matched = tuple(
            MatchedFact(fact=fact.fact, vector=fact.vector, candidates=candidates)
            for fact, candidates in zip(facts, found.candidates, strict=True)
        )
        return matched, found.scope_version


def finish_match(received: Received[EmbeddedFacts], end: End, step: Step | None) -> MatchedFacts:
    return ended(MatchedFacts, received.envelope, end, step)


def _candidate_bytes(facts: Sequence[MatchedFact]) -> int:
    return sum(CANDIDATE_BYTES + len(known.text.encode()) for fact in facts for known in fact.candidates)
