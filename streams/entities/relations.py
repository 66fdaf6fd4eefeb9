"""Relations between entities as facts state them, two names of one entity.

And whether known facts are about the entities of a turn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemolog.schemas.entities import (
    EntityLink,
    EntityType,
    KnownEntity,
    NamedRelation,
    Predicate,
    Strength,
    is_same_as,
    read_predicate,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.names import SpokenName, name_key, read_name
from mnemolog.streams.entities.resolver import FoundEntity, NameMeaning, SourceNames, find_by_answer, names_of


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


def tell_same(names: SourceNames, fact: ExtractedFact, pair: tuple[str, str]) -> None:
    """Make the one name that of whom the other one means. Where both are known, apart, a merge is proposed.

    What is known counts first, then whom the fact is about. A name that somebody else has stays theirs. Where one name
    may mean several, the other one is given to none of them: who is called so is a possible twin of each.
    """
    kind = _type_of(fact, pair)
    meant = [one for name in _in_order(fact, pair) if (one := _meant(names, name, kind)) is not None]
    meant.sort(key=lambda one: not _is_known(one))
    if len(meant) < len(pair) or (taken := names.take_name(meant[0])) is None:
        return
    other = meant[1]
    if _is_known(other):
        other_id = names.take_name(other)
        if other_id is not None and other_id != taken:
            names.propose_told(taken, other_id, fact.excerpt)
    elif holders := names.registry.shown_of_name(other.name.key):
        names.tell_taken(other.name.text, holders)
    elif possible := _may_mean(meant[0].finding):
        doubt = find_by_answer(other.name, FoundEntity(compared=possible), names.answers, names.registry)
        names.tell_doubt(other.name.text, doubt)
        names.take_name(other._replace(finding=doubt))
    else:
        names.take_name(other._replace(finding=FoundEntity(entity=names.registry[taken], step="alias")))


def _may_mean(finding: FoundEntity) -> tuple[KnownEntity, ...]:
    """The known ones of which a name may mean each, where no model was asked; none where it means one."""
    if finding.entity is None or finding.step == "model" or not finding.compared:
        return ()
    return (finding.entity, *finding.compared)


def _in_order(fact: ExtractedFact, pair: tuple[str, str]) -> Sequence[str]:
    """Whom the fact is about first, then whom it names first."""
    named = [key for name in (fact.subject, *(one.name for one in fact.entities)) for key in name_forms(name or "")]
    places = {name: [named.index(key) for key in name_forms(name) if key in named] for name in pair}
    return sorted(pair, key=lambda name: min(places[name], default=len(named)))


def _type_of(fact: ExtractedFact, pair: tuple[str, str]) -> EntityType:
    """The first type that the fact tells of one of the names."""
    types = {key: entity.type for entity in reversed(fact.entities) for key in name_forms(entity.name)}
    told = (types.get(key, "other") for name in pair for key in name_forms(name))
    return next((kind for kind in told if kind != "other"), "other")


def _meant(names: SourceNames, name: str, kind: EntityType) -> NameMeaning | None:
    """What a name means; where that is nobody, that is told."""
    if names.context.is_user(name):
        return NameMeaning(SpokenName(text=name), kind, None, FoundEntity(entity=names.user(), step="user"))
    spoken = read_name(name)
    if spoken is None:
        names.leave_out(name, is_name=False)
        return None
    return names.find(spoken, kind)


def _is_known(meaning: NameMeaning) -> bool:
    """Whether a name means a known entity; one that has the name hidden from readers is called so no more."""
    entity = meaning.finding.entity
    return entity is not None and meaning.name.key not in names_of(entity) - names_of(entity.as_shown)
