"""Adds known facts of a key about the entity of a new fact that are missing among many others of that key.

`match` knows names alone, and looks at a few facts of a key: one of them may be about the same entity by another name.
"""

from collections.abc import Iterator

from mnemolog.projections.stores.candidates import MAX_CANDIDATES_OF_KEY, CandidateFinder, EntityFactsRequest
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.entities.turn_entities import TurnEntities


class EntityCandidates:
    """Looks for them in one round trip; in none where all facts of the keys are candidates, or entities have one name."""

    def __init__(self, finder: CandidateFinder) -> None:
        self._finder = finder

    async def add(self, envelope: MatchedFacts, named: TurnEntities | None, rules: EffectivePolicy) -> MatchedFacts:
        """The facts of a turn with these candidates too, told to be about the same entity."""
        if named is None or envelope.scope is None:
            return envelope
        asked = dict(_requests(envelope, named, rules))
        if not asked:
            return envelope
        found = await self._finder.facts_of_entities(envelope.scope, list(asked.values()), at=envelope.occurred_at)
        facts = list(envelope.facts)
        for place, more in zip(asked, found, strict=True):
            known = facts[place].candidates
            facts[place] = facts[place].model_copy(update={"candidates": (*known, *more)})
        return envelope.model_copy(update={"facts": tuple(facts)})


def _requests(
    envelope: MatchedFacts, named: TurnEntities, rules: EffectivePolicy
) -> Iterator[tuple[int, EntityFactsRequest]]:
    """What is asked, by the places of the facts."""
    for place, matched in enumerate(envelope.facts):
        fact, subject_id = matched.fact, named.subject_of(matched.fact)
        if fact.key is None or not (fact.single_valued or rules.is_single_valued(fact.key)):
            continue
        if subject_id is None or subject_id in named.new or _of_key(matched) < MAX_CANDIDATES_OF_KEY:
            continue
        subject = named.registry[subject_id]
        if len(subject.aliases) > 1 and not subject.keys("user"):
            known = tuple(one.fact_id for one in matched.candidates)
            yield place, EntityFactsRequest(entity_id=subject_id, key=fact.key, vector=matched.vector, known=known)


def _of_key(matched: MatchedFact) -> int:
    return sum(known.key == matched.fact.key for known in matched.candidates)
