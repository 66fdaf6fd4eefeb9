"""What facts say that entities are to each other: of the names that a fact gives them, the entities."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemolog.schemas.entities.model import EntityLink
from mnemolog.schemas.entities.relations import NamedRelation, Predicate, Strength, is_same_as, read_predicate
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import read_name


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRelation:
    """A relation that a fact states, or says to be over: since `ended_at`, else since what the fact says."""

    subject_id: UUID
    predicate: Predicate
    object_id: UUID
    strength: Strength
    is_over: bool = False
    ended_at: datetime | None = None

    @property
    def key(self) -> tuple[UUID, str, UUID]:
        return self.subject_id, self.predicate.name, self.object_id


def stated_relations(fact: ExtractedFact, id_of: Callable[[str], UUID | None]) -> Iterator[StatedRelation]:
    """The relations of a fact between two entities; `id_of` gives the entity of a name.

    What a retraction says is over, and what it names in passing is not: "my brother Tom left Acme".
    """
    for said in fact.relations:
        relation = None if is_same_as(said.predicate) else _relation(said, fact, id_of)
        if relation is not None and relation.subject_id != relation.object_id:
            yield relation


def _relation(said: NamedRelation, fact: ExtractedFact, id_of: Callable[[str], UUID | None]) -> StatedRelation | None:
    subject_id, object_id = id_of(said.subject), id_of(said.object)
    if subject_id is None or object_id is None:
        return None
    is_over = fact.action_hint == "retract" and said.strength != "medium"
    return _in_words(said.predicate, subject_id, object_id, strength_in(fact, said.strength), is_over=is_over)


def tie_relation(fact: ExtractedFact, tie: str, owner_id: UUID, entity_id: UUID) -> StatedRelation | None:
    """What a name of a fact says in passing: "my brother Tom" is a brother. A retraction says nothing in passing."""
    if fact.action_hint == "retract" or owner_id == entity_id:
        return None
    return _in_words(tie, owner_id, entity_id, strength_in(fact, "medium"))


def _in_words(
    word: str, subject_id: UUID, object_id: UUID, strength: Strength, *, is_over: bool = False
) -> StatedRelation | None:
    """The relation by the predicate of a word, from the other side where the word is of its inverse ("son")."""
    read = read_predicate(word)
    if read is None:
        return None
    if read.is_reversed:
        subject_id, object_id = object_id, subject_id
    return StatedRelation(
        subject_id=subject_id, predicate=read.predicate, object_id=object_id, strength=strength, is_over=is_over
    )


def strength_in(fact: ExtractedFact, strength: Strength) -> Strength:
    """A doubtful fact only suggests what it says."""
    return "weak" if fact.certainty in ("weak", "speculation") else strength


def entities_by_name(links: Iterable[EntityLink]) -> dict[str, UUID]:
    """The entities of links by the keys of their names, and of the proper names in these."""
    found: dict[str, UUID] = {}
    for link in links:
        for key in name_forms(link.name or ""):
            found.setdefault(key, link.entity_id)
    return found


def name_forms(name: str) -> tuple[str, ...]:
    """The key of a name, and that of the proper name in it: of "my brother Tom" also "tom"."""
    spoken = read_name(name)
    keys = (name_key(name), spoken.key if spoken else "")
    return tuple(dict.fromkeys(key for key in keys if key))
