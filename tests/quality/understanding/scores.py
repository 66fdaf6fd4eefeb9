"""Run a labelled dialogue, and what its memory is worth: what is right, missed, and harmful in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Final, LiteralString
from uuid import UUID

from mnemolog.projections.queries.entities import EntityRelation, entities, relations
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.base import Count, Record
from mnemolog.schemas.entities import PREDICATES, WORDS, EntityLink
from mnemolog.schemas.entity_events import FactLinked
from mnemolog.schemas.events import FactPending
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from tests.quality.runs import Cost
from tests.quality.understanding.cases import (
    USER,
    DialogueCase,
    EndedFact,
    ExpectedEntity,
    ExpectedFact,
    ExpectedRelation,
    ends_with,
)
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)
_FACTS: Final[LiteralString] = """
SELECT fact_id, text, subject, status, true_to FROM facts WHERE user_id = %s ORDER BY recorded_at, ordinal
"""
_MERGED: Final[LiteralString] = """
SELECT entity_id, merged_into FROM entities WHERE user_id = %s AND merged_into IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFact:
    """A fact after the dialogue; `is_held` while it is active, or waits for a confirmation, and has not ended."""

    fact_id: UUID
    text: str
    subject: str
    is_held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntity:
    """An entity after the dialogue, with all its names."""

    names: tuple[str, ...]
    is_user: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a dialogue left: by turn the facts that it stated or repeated, by fact the entities that it names.

    One that was merged is what it was merged into. `challenged` are facts that a pending one would end. `relations` are
    those that hold, and those that did, each as it was stated.
    """

    facts: Mapping[UUID, SeenFact]
    turns: Sequence[frozenset[UUID]]
    links: Mapping[UUID, tuple[EntityLink, ...]]
    entities: Mapping[UUID, SeenEntity]
    challenged: frozenset[UUID]
    relations: Sequence[EntityRelation]
    cost: Cost = field(default_factory=Cost)


async def run_case(pipeline: InProcessPipeline, partition: int, case: DialogueCase) -> CaseResult:
    """Say the turns, as a user of the case's own, and read what they left in memory."""
    commits, now = [], START
    for place, said in enumerate(case.turns):
        now += STEP + timedelta(days=said.days)
        turn = Turn(
            turn_id=f"{case.id}/{place}",
            scope=Scope(user_id=case.id, run_id=said.run),
            messages=said.messages,
            occurred_at=now,
            speaker=case.speaker,
        )
        commits.append(await pipeline.process_turn(turn, partition=partition, offset=place, now=now))
    async with pipeline.pool.connection() as connection:
        rows = await (await connection.execute(_FACTS, [case.id])).fetchall()
        merged: dict[UUID, UUID] = dict(await (await connection.execute(_MERGED, [case.id])).fetchall())
        whole = ScopeFilter(user_id=case.id, run_id="**")
        found, related = await entities(connection, whole), await relations(connection, whole, all_versions=True)
    facts = {}
    for fact_id, text, subject, status, true_to in rows:
        is_held = status in ("active", "pending_confirmation") and (true_to is None or true_to > now)
        facts[fact_id] = SeenFact(fact_id=fact_id, text=text, subject=subject or "", is_held=is_held)
    turns, links, challenged = [], {}, set[UUID]()
    for commit in commits:
        brought = {event.new_fact.fact_id for event in commit.events if event.new_fact is not None}
        repeated = {event.repeated_id for event in commit.events if event.repeated_id is not None}
        turns.append(frozenset(brought | repeated))
        for event in commit.entity_events:
            if isinstance(event, FactLinked):
                links[event.fact_id] = tuple(
                    link.model_copy(update={"entity_id": merged.get(link.entity_id, link.entity_id)})
                    for link in event.links
                )
        challenged.update(*(event.targets for event in commit.events if isinstance(event, FactPending)))
    return CaseResult(
        facts=facts,
        turns=turns,
        links=links,
        entities={one.entity_id: SeenEntity(names=(one.name, *one.aliases), is_user=one.is_user) for one in found},
        challenged=frozenset(challenged),
        relations=related,
        cost=Cost.of(commits),
    )


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


FIGURES: Final = tuple(name for name in CaseScore.model_fields if name != "id")
Mentioned = list[frozenset[UUID]]
"""The entities that each mention of a label is linked to."""


def score(case: DialogueCase, seen: CaseResult) -> CaseScore:
    """The figures of one case, as docs/understanding.md defines them."""
    held = [fact for fact in seen.facts.values() if fact.is_held]
    ids = {expected.label: _mentioned(expected, seen) for expected in case.entities}
    users = frozenset(
        entity_id for entity_id, entity in seen.entities.items() if entity.is_user or case.speaker in entity.names
    )
    stated = [(one, _stated(one, seen)) for one in case.ended]
    related = relation_faults(case, {label: _all_of(ids[label]) for label in ids} | {USER: users}, seen)
    return CaseScore(
        id=case.id,
        unresolved=sum(_unresolved(expected, ids, users) for expected in case.entities),
        # Pairs of labels that share an entity, the user being one of them.
        wrong_merges=sum(
            not one.isdisjoint(other) for one, other in combinations([users, *map(_all_of, ids.values())], 2)
        ),
        false_facts=sum(_says(fact, [word]) for word in case.never for fact in held),
        missed_links=sum(_missed_links(expected, ids[expected.label], seen) for expected in case.entities),
        missed_facts=sum(not any(_is_meant(fact, one, seen) for fact in held) for one in case.facts)
        + sum(not facts for _, facts in stated),
        still_held=sum(
            any(fact.is_held and fact.fact_id not in seen.challenged for fact in facts) for _, facts in stated
        ),
        missed_relations=related.missed,
        wrong_relations=related.wrong,
        not_ended=related.not_ended,
    )


def _mentioned(expected: ExpectedEntity, seen: CaseResult) -> Mentioned:
    """The links of the facts of each mention's turn that have one of its names."""
    return [
        frozenset(
            link.entity_id
            for fact_id in seen.turns[mention.turn]
            for link in seen.links.get(fact_id, ())
            if link.name is not None and any(ends_with(link.name, words) for words in mention.names)
        )
        for mention in expected.mentions
    ]


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


@dataclass(frozen=True, slots=True)
class RelationFaults:
    """How many relations hold by the case and not in memory, the other way, and how many that ended did not."""

    missed: int
    wrong: int
    not_ended: int


Labelled = Mapping[str, frozenset[UUID]]
"""The entities of each label of a case, the user among them."""
Key = tuple[str, UUID, UUID]
"""A registered predicate with its subject and its object."""


def relation_faults(case: DialogueCase, labelled: Labelled, seen: CaseResult) -> RelationFaults:
    """The relations in memory beside those of the case; one whose evidence is all challenged does not hold."""
    held = [one for one in seen.relations if one.is_active and not seen.challenged.issuperset(one.evidence)]
    known_keys = {key for one in seen.relations for key in _keys(one)}
    held_keys = {key for one in held for key in _keys(one)}
    meant = [(one, _meant(one, labelled)) for one in case.relations]
    named = {key for _, keys in meant for key in keys}
    unclear = {expected.label for expected in case.entities if expected.unclear}
    clear = frozenset[UUID]().union(*(ids for label, ids in labelled.items() if label not in unclear))
    return RelationFaults(
        missed=sum(one.sure and one.holds and held_keys.isdisjoint(keys) for one, keys in meant),
        wrong=sum(
            {one.subject_id, one.object_id} <= clear and one.predicate in PREDICATES and named.isdisjoint(_keys(one))
            for one in held
        ),
        not_ended=sum(
            one.sure and not one.holds and (known_keys.isdisjoint(keys) or not held_keys.isdisjoint(keys))
            for one, keys in meant
        ),
    )


def _meant(expected: ExpectedRelation, labelled: Labelled) -> set[Key]:
    """What the relation may be in memory: each mention of a label can be an entity of its own."""
    word = WORDS[expected.predicate]
    ends = (expected.object, expected.subject) if word.is_reversed else (expected.subject, expected.object)
    subjects, objects = (labelled[label] for label in ends)
    return {
        key
        for subject_id in subjects
        for object_id in objects
        for key in _both_ways(word.predicate.name, subject_id, object_id)
    }


def _keys(relation: EntityRelation) -> Iterator[Key]:
    return _both_ways(relation.predicate, relation.subject_id, relation.object_id)


def _both_ways(predicate: str, subject_id: UUID, object_id: UUID) -> Iterator[Key]:
    """The key, and of a symmetric predicate also that of the other direction."""
    yield predicate, subject_id, object_id
    if predicate in PREDICATES and PREDICATES[predicate].inverse == predicate:
        yield predicate, object_id, subject_id
