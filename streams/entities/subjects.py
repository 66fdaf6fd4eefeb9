"""Whether a new fact and a known fact are about the same entity, whatever names they use for it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, EntityFactsQuery, PendingCase
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.names import is_indefinite, is_nobody
from mnemolog.streams.entities.resolver import names_of
from mnemolog.streams.text.differences import USER, EntityRelation, compare_subjects

if TYPE_CHECKING:
    from mnemolog.projections.stores.facts import CandidateFinder


def entity_relation(one: KnownEntity | None, other: KnownEntity | None) -> EntityRelation | None:
    """Whether facts with these subjects are about one entity.

    None where a fact has no entity, and for a user without a name, who may have any name that is a person's.
    """
    if one is None or other is None:
        return None
    if one.entity_id == other.entity_id:
        return "same"
    owners = (key.rpartition(" ")[2] for entity in (one, other) for key in entity.keys("tie"))
    of_user = any(alias.text.casefold().startswith(f"{USER}'s ") for entity in (one, other) for alias in entity.aliases)
    if of_user or not {str(one.entity_id), str(other.entity_id)}.isdisjoint(owners):  # nobody is a friend of theirs
        return "other"
    may_be_of_one_type = one.type == other.type or "other" in (one.type, other.type)
    if may_be_of_one_type and any(entity.keys("user") and not entity.keys("name") for entity in (one, other)):
        return None
    if other.entity_id in one.possible_twins or one.entity_id in other.possible_twins:
        return "twin"
    # Where a type is unknown, "Mira" and "Mira Kovac" may be one: one has all words of a name of the other.
    pairs = product(names_of(one), names_of(other)) if "other" in (one.type, other.type) else ()
    return "twin" if any(compare_subjects(name, known) != "other" for name, known in pairs) else "other"


def relation_to_known(
    said: str | None, subject: KnownEntity | None, known: Candidate, about: KnownEntity | None, names: Sequence[str]
) -> EntityRelation | None:
    """Whether a known fact, `about` an entity, is of the `subject` of a statement, which that calls `said`.

    A word for nobody known ("a friend", "the doctor") is of nobody else: of a fact in the same word at most, if that is
    definite. Of a fact without an entity, as after that was forgotten, the words of its subject tell. `names` are the
    user's.
    """
    if subject is not None and about is not None:
        return entity_relation(subject, about)
    by_words = compare_subjects(said, known.subject, names)
    nobodies = [is_nobody(words) for words, entity in ((said, subject), (known.subject, about)) if entity is None]
    if any(nobodies):
        return None if by_words == "same" and not is_indefinite(said) else "other"
    return "other" if about is None and by_words == "other" else None


def subjects_by_fact(subjects: Iterable[KnownEntity]) -> dict[UUID, KnownEntity]:
    return {fact_id: entity for entity in subjects for fact_id in entity.subject_of}


async def cases_of_one_entity(
    cases: Mapping[UUID, PendingCase], subjects_of: Callable[[Sequence[UUID]], Awaitable[Sequence[KnownEntity]]]
) -> Mapping[UUID, PendingCase]:
    """The held overwrites without the facts that by now are about another entity, or a possible twin: after a split."""
    if not cases:
        return cases
    needed = (one for case in cases.values() for one in (case.fact_id, *case.targets, *case.successors))
    about = subjects_by_fact(await subjects_of(tuple(dict.fromkeys(needed))))

    def own(case: PendingCase, fact_ids: Sequence[UUID]) -> tuple[UUID, ...]:
        of_pending = about.get(case.fact_id)
        relations = ((fact_id, entity_relation(of_pending, about.get(fact_id))) for fact_id in fact_ids)
        return tuple(fact_id for fact_id, relation in relations if relation not in ("other", "twin"))

    return {
        fact_id: replace(case, targets=own(case, case.targets), successors=own(case, case.successors))
        for fact_id, case in cases.items()
    }


def with_subject_relations(
    envelope: MatchedFacts, found: TurnEntities, others: Sequence[KnownEntity] = ()
) -> MatchedFacts:
    """The facts of a turn, each candidate with whether it is about the entity of the fact.

    `others` are the subjects of candidates that were looked up after the names of the turn.
    """
    subjects = subjects_by_fact((*others, *found.registry))
    facts = []
    for place, matched in enumerate(envelope.facts):
        subject_id = found.subject_of(matched.fact)
        subject = found.registry[subject_id] if subject_id else None
        if subject is not None:  # later facts of the turn are compared with this one
            subjects[provisional_fact_id(envelope.owner, envelope.id_source, place)] = subject
        candidates = []
        for known in matched.candidates:
            about = subjects.get(known.fact_id)
            relation = known.subject_relation  # of one that was looked up by its entity
            if about is not None or relation is None:
                said = matched.fact.subject
                relation = relation_to_known(said, subject, known, about, envelope.user_names) or relation
            candidates.append(known.model_copy(update={"subject_relation": relation}))
        facts.append(matched.model_copy(update={"candidates": tuple(candidates)}))
    return envelope.model_copy(update={"facts": tuple(facts)})


@dataclass(frozen=True, slots=True)
class EntityCandidates:
    """Adds known facts with the key of a new fact that are about the same entity under another name.

    The stage `match` knows names alone, and reads few facts of a key. This makes one round trip, and none where all
    facts of the keys are candidates already, or the entities have one name.
    """

    facts: "CandidateFinder"

    async def add(self, envelope: MatchedFacts, found: TurnEntities | None, rules: EffectivePolicy) -> MatchedFacts:
        if found is None or envelope.scope is None:
            return envelope
        requests: dict[int, EntityFactsQuery] = {}
        for place, matched in enumerate(envelope.facts):
            key, subject_id = matched.fact.key, found.subject_of(matched.fact)
            if key is None or not (matched.fact.single_valued or rules.is_single_valued(key)):
                continue
            if subject_id is None or subject_id in found.new:
                continue
            subject = found.registry[subject_id]
            of_key = sum(known.key == key for known in matched.candidates)
            if of_key >= MAX_CANDIDATES_OF_KEY and len(subject.aliases) > 1 and not subject.keys("user"):
                known_ids = tuple(one.fact_id for one in matched.candidates)
                query = EntityFactsQuery(entity_id=subject_id, key=key, vector=matched.vector, known=known_ids)
                requests[place] = query
        if not requests:
            return envelope
        added = await self.facts.facts_of_entities(envelope.scope, list(requests.values()), at=envelope.occurred_at)
        facts = list(envelope.facts)
        for place, more in zip(requests, added, strict=True):
            known = facts[place].candidates
            facts[place] = facts[place].model_copy(update={"candidates": (*known, *more)})
        return envelope.model_copy(update={"facts": tuple(facts)})
