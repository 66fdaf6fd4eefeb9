"""The names of a turn of which the rules do not know whether they mean somebody known; a model is asked about them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import TwinDetails
from mnemolog.streams.entities.links import TurnEntities

MAX_NAMES: Final = 10
"""Names of one turn that are asked about."""
MAX_TWINS: Final = 5
"""Possible twins of a name that are asked about."""
MAX_COMPARED: Final = 10
"""Entities that a name may mean among which these are chosen: of a name of hundreds the first."""
SHOWN_FACTS: Final = 3
"""Facts of a possible twin that are shown."""
_UNNAMED: Final = "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulName:
    """A name as it was said, of a new entity that may be one of `twins`.

    `facts` of the turn name it, and `about` are those of them whose subject it is. `tied` are others to whom it is
    the same tie: where "my wife" is known, "my wife Ana" should be her.
    """

    name: str
    type: str
    twins: tuple[KnownEntity, ...]
    facts: tuple[ExtractedFact, ...]
    about: tuple[ExtractedFact, ...] = ()
    tied: tuple[UUID, ...] = ()

    @property
    def pairs(self) -> set[tuple[UUID, UUID]]:
        """Those whom it may mean, two and two."""
        return set(combinations((*(one.entity_id for one in self.twins), *self.tied), 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulNames:
    """The names of a turn that are asked about, its entities, and a few known facts of each possible twin."""

    found: TurnEntities
    names: tuple[DoubtfulName, ...]
    known_facts: Mapping[UUID, tuple[str, ...]]

    def named_in(self, facts: Sequence[ExtractedFact]) -> "DoubtfulNames | None":
        """Those that one of these facts of the turn names; None without any."""
        names = tuple(name for name in self.names if any(fact in facts for fact in name.facts))
        return replace(self, names=names) if names else None


def doubtful_names(found: TurnEntities) -> tuple[DoubtfulName, ...]:
    """Those of the source that may mean somebody known, the first said first; no more than are asked about."""
    return tuple(islice(_each_name(found), MAX_NAMES))


def _each_name(found: TurnEntities) -> Iterator[DoubtfulName]:
    for entity_id, name in found.names.doubtful.items():
        entity, finding = found.new[entity_id]
        twins = tuple(one for one in finding.compared if one.entity_id not in found.new)[:MAX_COMPARED]
        facts = tuple(fact for fact in found.facts if entity_id in found.named_in(fact))
        if twins and facts:
            yield DoubtfulName(
                name=name.text,
                type=entity.type,
                twins=twins,
                facts=facts,
                about=tuple(fact for fact in facts if found.subject_of(fact) == entity_id),
                tied=_tied(entity, twins, found),
            )


def _tied(entity: KnownEntity, twins: Sequence[KnownEntity], found: TurnEntities) -> tuple[UUID, ...]:
    """The known ones, besides the possible twins, that are to somebody what the entity is to them."""
    tied = (one.entity_id for key in entity.keys("tie") for one in found.registry.of_tie(key) if one not in twins)
    return tuple(one for one in dict.fromkeys(tied) if one not in found.new)[:MAX_COMPARED]


def without_decided(names: Sequence[DoubtfulName], decided: Collection[tuple[UUID, UUID]]) -> tuple[DoubtfulName, ...]:
    """The names with those possible twins that are asked about.

    Two that a person has told apart, or may yet merge, are no model's matter: who is one of such a pair that a name may
    mean stays a possible twin.
    """
    told_apart = [frozenset(pair) for pair in decided]
    asked = (replace(name, twins=_asked_twins(name, told_apart)) for name in names)
    return tuple(name for name in asked if name.twins)


def _asked_twins(name: DoubtfulName, told_apart: Sequence[frozenset[UUID]]) -> tuple[KnownEntity, ...]:
    meant = {one.entity_id for one in name.twins} | set(name.tied)
    decided = {entity_id for pair in told_apart if pair <= meant for entity_id in pair}
    return tuple(one for one in name.twins if one.entity_id not in decided)[:MAX_TWINS]


def as_shown(names: Sequence[DoubtfulName], shown: Mapping[UUID, TwinDetails]) -> tuple[DoubtfulName, ...]:
    """The names with those of the names of their twins that readers see."""
    return tuple(replace(name, twins=tuple(_as_shown(twin, shown) for twin in name.twins)) for name in names)


def _as_shown(twin: KnownEntity, shown: Mapping[UUID, TwinDetails]) -> KnownEntity:
    seen = shown[twin.entity_id].names if twin.entity_id in shown else ()
    own = twin.name if twin.name in seen else next(iter(seen), _UNNAMED)
    return twin.model_copy(
        update={"name": own, "aliases": tuple(alias for alias in twin.aliases if alias.text in seen)}
    )
