"""What of the relations of a dialogue is not right: those that were said, and those that hold and were not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from mnemolog.projections.queries.entities import EntityRelation
from mnemolog.schemas.entities import PREDICATES, WORDS
from tests.quality.understanding.case_runner import CaseResult
from tests.quality.understanding.cases import DialogueCase, ExpectedRelation

Labelled = Mapping[str, frozenset[UUID]]
"""The entities of each label of a case, the user among them."""
Key = tuple[str, UUID, UUID]
"""A registered predicate with its subject and its object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFaults:
    """How many relations hold by the case and not in memory, the other way, and how many that ended did not."""

    missed: int
    wrong: int
    not_ended: int


def relation_faults(case: DialogueCase, labelled: Labelled, seen: CaseResult) -> RelationFaults:
    """The relations in memory beside those of the case."""
    known = {key for one in seen.relations for key in _keys(one)}
    held = {key for one in seen.relations if _is_held(one, seen) for key in _keys(one)}
    sure = [(one.holds, _meant(one, labelled)) for one in case.relations if one.sure]
    return RelationFaults(
        missed=sum(holds and held.isdisjoint(meant) for holds, meant in sure),
        wrong=_wrong(case, labelled, seen),
        not_ended=sum(not holds and (known.isdisjoint(meant) or not held.isdisjoint(meant)) for holds, meant in sure),
    )


def _wrong(case: DialogueCase, labelled: Labelled, seen: CaseResult) -> int:
    """Relations that hold between two entities of the case, and that it does not name."""
    unclear = {expected.label for expected in case.entities if expected.unclear}
    clear = frozenset[UUID]().union(*(ids for label, ids in labelled.items() if label not in unclear))
    named = {key for one in case.relations for key in _meant(one, labelled)}
    return sum(
        {one.subject_id, one.object_id} <= clear and named.isdisjoint(_keys(one))
        for one in seen.relations
        if _is_held(one, seen) and one.predicate in PREDICATES
    )


def _is_held(relation: EntityRelation, seen: CaseResult) -> bool:
    """Whether it holds, and not all evidence of it is challenged by a pending fact."""
    return relation.is_active and not seen.challenged.issuperset(relation.evidence)


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
    if predicate in PREDICATES and PREDICATES[predicate].is_symmetric:
        yield predicate, object_id, subject_id
