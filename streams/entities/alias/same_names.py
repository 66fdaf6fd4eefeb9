"""Two names of one, as a fact tells them: "everyone calls her Bee", "Anna and Annie are the same person"."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities.model import Alias, EntityType, KnownEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.doubtful.name_answers import find_by_answer
from mnemolog.streams.entities.entity_registry import same_type
from mnemolog.streams.entities.found_entities import FoundEntity
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import ALSO_CALLED, SpokenName, read_name
from mnemolog.streams.entities.stated_relations import name_forms

if TYPE_CHECKING:
    from mnemolog.streams.entities.turn_entities import TurnEntities


class _ReadName(NamedTuple):
    """What a name means before it is taken for that; `spoken` is None for the user."""

    spoken: SpokenName | None
    kind: EntityType
    tie_key: str | None
    finding: FoundEntity


def tell_same(found: "TurnEntities", fact: ExtractedFact, pair: tuple[str, str]) -> None:
    """Make the one name that of whom the other one means. Where both are known, apart, a merge is proposed.

    What is known counts first, then whom the fact is about. A name that somebody else has stays theirs. Where one name
    may mean several, the other one is given to none of them: who is called so is a possible twin of each.
    """
    meant = [one for name in _in_order(fact, pair) if (one := _meant(found, name, _type_of(fact, pair))) is not None]
    meant.sort(key=lambda one: one.finding.entity is None)
    if len(meant) < len(pair) or (taken := _take(found, meant[0])) is None:
        return
    other = meant[1]
    key = other.spoken.key if other.spoken else ""
    if other.finding.entity is not None:
        other_id = _take(found, other)
        if other_id is not None and other_id != taken:
            found.propose_told(taken, other_id, fact.excerpt)
    elif holders := found.registry.shown_of_name(key):
        found.tell_taken(other.spoken.text if other.spoken else "", holders)
    elif other.spoken is not None and (possible := _may_mean(meant[0].finding)):
        doubt = find_by_answer(other.spoken, FoundEntity(compared=possible), found.answers, found.registry)
        found.tell_doubt(other.spoken.text, doubt)
        _take(found, other._replace(finding=doubt))
    else:
        _take(found, other._replace(finding=FoundEntity(entity=found.registry[taken], step="alias")))


def tell_other_name(found: "TurnEntities", entity_id: UUID, name: SpokenName, finding: FoundEntity) -> None:
    """The other name that is given with one: "Josefine, called Fini". If it is another one's, a merge is proposed."""
    if name.alias is None or not (key := name_key(name.alias)):
        return
    others = [one for one in found.registry.shown_of_name(key) if one.entity_id != entity_id]
    if len(others) == 1 and same_type(others[0].type, found.registry[entity_id].type):
        found.propose_told(entity_id, others[0].entity_id, f"{name.text}{ALSO_CALLED}{name.alias}")
    elif possible := _may_mean(finding):
        found.tell_doubt(name.alias, FoundEntity(compared=possible))
    else:
        found.add_alias(entity_id, Alias(text=name.alias, key=key), finding)


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


def _meant(found: "TurnEntities", name: str, kind: EntityType) -> _ReadName | None:
    """What a name means; where that is nobody, that is told."""
    if found.context.is_user(name):
        return _ReadName(None, kind, None, FoundEntity(entity=found.user(), step="user"))
    spoken = read_name(name)
    if spoken is None:
        found.leave_out(name, is_name=False)
        return None
    return _ReadName(spoken, *found.find(spoken, kind))


def _take(found: "TurnEntities", meant: _ReadName) -> UUID | None:
    if meant.spoken is None:
        return found.user().entity_id
    return found.take_name(meant.spoken, meant.kind, meant.tie_key, meant.finding)
