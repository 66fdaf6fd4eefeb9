"""Whether the known facts that a turn is compared with are about the entities that its own facts are about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, EntityFactsQuery
from mnemolog.streams.entities.entity_registry import names_of
from mnemolog.streams.entities.turn_entities import TurnEntities
from mnemolog.streams.text.subjects import EntityRelation, compare_subjects


class EntityFactReader(Protocol):
    """Reads facts of entities in one round trip; it waits while Postgres is unavailable."""

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[EntityFactsQuery], *, at: datetime
    ) -> Sequence[tuple[Candidate, ...]]:
        """Per request the newest active facts of its key in exactly `scope` that are about its entity, bounded."""


class EntityCandidates:
    """Adds known facts of a key that are about the entity of a new fact, by another name.

    `match` knows names alone, and looks at a few facts of a key. This looks in one round trip; in none where all facts
    of the keys are candidates, or entities have one name.
    """

    def __init__(self, finder: EntityFactReader) -> None:
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
) -> Iterator[tuple[int, EntityFactsQuery]]:
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
            yield place, EntityFactsQuery(entity_id=subject_id, key=fact.key, vector=matched.vector, known=known)


def _of_key(matched: MatchedFact) -> int:
    return sum(known.key == matched.fact.key for known in matched.candidates)


def with_subject_relations(
    envelope: MatchedFacts, found: TurnEntities, others: Sequence[KnownEntity] = ()
) -> MatchedFacts:
    """The facts of a turn with what the entities of their candidates say of whom these are about.

    `others` are those of candidates that were looked up after the names of the turn.
    """
    subjects = subjects_by_fact((*others, *found.registry))
    if not subjects:
        return envelope
    facts = []
    for matched in envelope.facts:
        subject_id = found.subject_of(matched.fact)
        subject = found.registry[subject_id] if subject_id else None
        candidates = (
            known.model_copy(
                update={
                    "subject_relation": entity_relation(subject, subjects.get(known.fact_id)) or known.subject_relation
                }
            )
            for known in matched.candidates
        )
        facts.append(matched.model_copy(update={"candidates": tuple(candidates)}))
    return envelope.model_copy(update={"facts": tuple(facts)})


def subjects_by_fact(subjects: Iterable[KnownEntity]) -> dict[UUID, KnownEntity]:
    """The entities by the facts that are about them."""
    return {fact_id: entity for entity in subjects for fact_id in entity.subject_of}


def entity_relation(one: KnownEntity | None, other: KnownEntity | None) -> EntityRelation | None:
    """Whether facts with these subjects are about one entity.

    Unknown where a fact has no entity, and for a user without a name, who may be anybody who is named.
    """
    if one is None or other is None:
        return None
    if one.entity_id == other.entity_id:
        return "same"
    if any(entity.keys("user") and not entity.keys("name") for entity in (one, other)):
        return None
    are_twins = other.entity_id in one.possible_twins or one.entity_id in other.possible_twins
    return "twin" if are_twins or _may_be_one(one, other) else "other"


def candidate_ids(envelope: MatchedFacts) -> Mapping[UUID, None]:
    """The known facts that a turn is compared with, each once."""
    return dict.fromkeys(known.fact_id for matched in envelope.facts for known in matched.candidates)


def _may_be_one(one: KnownEntity, other: KnownEntity) -> bool:
    """Whether one has all words of a name of the other, and nobody told the type of one: "Mira" and "Mira Kovac"."""
    pairs = product(names_of(one), names_of(other)) if "other" in (one.type, other.type) else ()
    return any(compare_subjects(name, known) != "other" for name, known in pairs)
