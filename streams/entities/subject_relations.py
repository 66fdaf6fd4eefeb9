"""Whether the known facts that a turn is compared with are about the entities that its own facts are about."""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.streams.entities.turn_entities import TurnEntities


def with_subject_relations(envelope: MatchedFacts, found: TurnEntities) -> MatchedFacts:
    """The facts of a turn with what the entities of their candidates say of whom these are about."""
    subjects = {fact_id: entity for entity in found.registry for fact_id in entity.subject_of}
    if not subjects:
        return envelope
    facts = []
    for matched in envelope.facts:
        subject_id = found.subject_of(matched.fact)
        subject = found.registry[subject_id] if subject_id else None
        candidates = (
            known.model_copy(
                update={"subject_relation": _relation(subject, subjects.get(known.fact_id)) or known.subject_relation}
            )
            for known in matched.candidates
        )
        facts.append(matched.model_copy(update={"candidates": tuple(candidates)}))
    return envelope.model_copy(update={"facts": tuple(facts)})


def candidate_ids(envelope: MatchedFacts) -> Mapping[UUID, None]:
    """The known facts that a turn is compared with, each once."""
    return dict.fromkeys(known.fact_id for matched in envelope.facts for known in matched.candidates)


def _relation(one: KnownEntity | None, other: KnownEntity | None) -> Literal["same", "other", "twin"] | None:
    """Unknown where a fact has no entity, and for a user without a name, who may be anybody who is named."""
    if one is None or other is None:
        return None
    if one.entity_id == other.entity_id:
        return "same"
    if any(entity.keys("user") and not entity.keys("name") for entity in (one, other)):
        return None
    are_twins = other.entity_id in one.possible_twins or one.entity_id in other.possible_twins
    return "twin" if are_twins else "other"
