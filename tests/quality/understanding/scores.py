"""What a dialogue's memory is worth: what is right, missed, and harmful in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from uuid import UUID

from mnemolog.schemas.base import Count, Record
from mnemolog.schemas.entities import EntityLink
from tests.quality.understanding.case_runner import CaseResult, SeenFact
from tests.quality.understanding.cases import USER, DialogueCase, EndedFact, ExpectedEntity, ExpectedFact, ends_with
from tests.quality.understanding.relation_faults import relation_faults


class CaseScore(Record):
    """What of one case is not right, as docs/understanding.md defines it; 0 of all is right.

    `wrong_merges`, `false_facts` and `wrong_relations` are harmful.
    """

    id: str
    unresolved: Count = 0
    wrong_merges: Count = 0
    false_facts: Count = 0
    missed_links: Count = 0
    missed_facts: Count = 0
    still_held: Count = 0
    missed_relations: Count = 0
    wrong_relations: Count = 0
    not_ended: Count = 0

    @property
    def harmful(self) -> bool:
        return bool(self.wrong_merges or self.false_facts or self.wrong_relations)

    @property
    def right(self) -> bool:
        return self == CaseScore(id=self.id)


FIGURES = tuple(name for name in CaseScore.model_fields if name != "id")


def score(case: DialogueCase, seen: CaseResult) -> CaseScore:
    """The figures of one case, as docs/understanding.md defines them."""
    held = [fact for fact in seen.facts.values() if fact.is_held]
    ids = {expected.label: _mentioned(expected, seen) for expected in case.entities}
    users = _users(case, seen)
    related = relation_faults(case, {label: _all_of(ids[label]) for label in ids} | {USER: users}, seen)
    return CaseScore(
        id=case.id,
        unresolved=sum(_unresolved(expected, ids, users) for expected in case.entities),
        wrong_merges=_wrong_merges(ids, users),
        false_facts=sum(_says(fact, [word]) for word in case.never for fact in held),
        missed_links=sum(_missed_links(expected, ids[expected.label], seen) for expected in case.entities),
        missed_facts=sum(not any(_is_meant(fact, one, seen) for fact in held) for one in case.facts)
        + sum(not _stated(one, seen) for one in case.ended),
        still_held=sum(_is_still_held(one, seen) for one in case.ended),
        missed_relations=related.missed,
        wrong_relations=related.wrong,
        not_ended=related.not_ended,
    )


Mentioned = list[frozenset[UUID]]
"""The entities that each mention of a label is linked to."""


def _mentioned(expected: ExpectedEntity, seen: CaseResult) -> Mentioned:
    return [
        frozenset(link.entity_id for link in _links_of(mention.turn, seen) if _is_called(link, mention.names))
        for mention in expected.mentions
    ]


def _links_of(turn: int, seen: CaseResult) -> Iterator[EntityLink]:
    return (link for fact_id in seen.turns[turn] for link in seen.links.get(fact_id, ()))


def _is_called(link: EntityLink, names: Iterable[str]) -> bool:
    return link.name is not None and any(ends_with(link.name, words) for words in names)


def _users(case: DialogueCase, seen: CaseResult) -> frozenset[UUID]:
    """The entities of who speaks."""
    return frozenset(
        entity_id for entity_id, entity in seen.entities.items() if entity.is_user or case.speaker in entity.names
    )


def _all_of(mentioned: Mentioned) -> frozenset[UUID]:
    return frozenset[UUID]().union(*mentioned)


def _unresolved(expected: ExpectedEntity, ids: Mapping[str, Mentioned], users: frozenset[UUID]) -> int:
    """Mentions that are not of the entity that most of them are, or all where another label or the user is it too."""
    mentioned = ids[expected.label]
    if expected.unclear:
        return 0
    others = users.union(*(_all_of(ids[label]) for label in ids if label != expected.label))
    own = Counter(entity_id for found in mentioned for entity_id in found if entity_id not in others)
    return len(mentioned) - max(own.values(), default=0)


def _wrong_merges(ids: Mapping[str, Mentioned], users: frozenset[UUID]) -> int:
    """How many pairs of labels share an entity, the user being one of them."""
    every = [users, *map(_all_of, ids.values())]
    return sum(not one.isdisjoint(other) for one, other in combinations(every, 2))


def _missed_links(expected: ExpectedEntity, mentioned: Mentioned, seen: CaseResult) -> int:
    """Mentions without a link, entities beside the first one of all mentions, and names that the entity lacks."""
    entities = _all_of(mentioned)
    if expected.unclear:
        return 0
    names = {name.casefold() for entity_id in entities for name in seen.entities[entity_id].names}
    lacking = sum(not any(ends_with(name, words) for name in names) for words in expected.names)
    return sum(not found for found in mentioned) + max(len(entities) - 1, 0) + lacking


def _is_meant(fact: SeenFact, expected: ExpectedFact, seen: CaseResult) -> bool:
    subjects = [link.entity_id for link in seen.links.get(fact.fact_id, ()) if link.role == "subject"]
    names = [fact.subject, *(name for entity_id in subjects for name in seen.entities[entity_id].names)]
    is_about = any(words.casefold() in name.casefold() for words in expected.about for name in names)
    return is_about and _says(fact, expected.says)


def _says(fact: SeenFact, words: Iterable[str]) -> bool:
    return all(word.casefold() in fact.text.casefold() for word in words)


def _stated(ended: EndedFact, seen: CaseResult) -> list[SeenFact]:
    return [seen.facts[fact_id] for fact_id in seen.turns[ended.turn] if _says(seen.facts[fact_id], ended.says)]


def _is_still_held(ended: EndedFact, seen: CaseResult) -> bool:
    return any(fact.is_held and fact.fact_id not in seen.challenged for fact in _stated(ended, seen))
