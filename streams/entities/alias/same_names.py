"""Two names of one, as a fact tells them: "everyone calls her Bee", "Anna and Annie are the same person"."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities.model import EntityType
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.entity_registry import names_of
from mnemolog.streams.entities.found_entities import FoundEntity
from mnemolog.streams.entities.spoken_names import SpokenName, read_name
from mnemolog.streams.entities.stated_relations import name_forms

if TYPE_CHECKING:
    from mnemolog.streams.entities.turn_entities import TurnEntities


class _ReadName(NamedTuple):
    """What a name means before it is taken for that; `spoken` is None for the user."""

    spoken: SpokenName | None
    kind: EntityType
    tie_key: str | None
    finding: FoundEntity

    @property
    def is_known(self) -> bool:
        """Whether it means a known entity; one that has the name hidden from readers is called so no more."""
        entity, key = self.finding.entity, self.spoken.key if self.spoken else ""
        return entity is not None and key not in names_of(entity) - names_of(entity.as_shown)


def tell_same(found: "TurnEntities", fact: ExtractedFact, pair: tuple[str, str]) -> None:
    """Make the one name that of whom the other one means. Where both are known, apart, a merge is proposed.

    What is known counts first, then whom the fact is about. A name that somebody else has stays theirs.
    """
    meant = [one for name in _in_order(fact, pair) if (one := _meant(found, name, _type_of(fact, pair))) is not None]
    meant.sort(key=lambda one: not one.is_known)
    if len(meant) < len(pair) or (taken := _take(found, meant[0])) is None:
        return
    other = meant[1]
    key = other.spoken.key if other.spoken else ""
    if other.is_known:
        other_id = _take(found, other)
        if other_id is not None and other_id != taken:
            found.propose_told(taken, other_id, fact.excerpt)
    elif holders := found.registry.shown_of_name(key):
        found.tell_taken(other.spoken.text if other.spoken else "", holders)
    else:
        _take(found, other._replace(finding=FoundEntity(entity=found.registry[taken], step="alias")))


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
