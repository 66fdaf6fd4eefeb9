"""The names of a turn that the rules leave in doubt: a model is asked which known entity each of them means."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import TwinDetails
from mnemolog.streams.entities.links import TurnEntities

MAX_NAMES: Final = 10
"""Names of one turn that a model is asked about."""
MAX_TWINS: Final = 5
"""Possible twins of a name that a model may choose from."""
MAX_COMPARED: Final = 10
"""Possible entities of a name from which the twins are taken: a name may have hundreds."""
SHOWN_FACTS: Final = 3
"""Facts of a possible twin that the model sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulName:
    """A name as it was said, of a new entity that may be one of `twins`.

    `facts` are the facts of the turn that name the entity, `about` those of them with the entity as subject. `tied` are
    other known entities with the tie in the name: where "my wife" is known, "my wife Ana" should be that entity.
    """

    name: str
    type: str
    twins: tuple[KnownEntity, ...]
    facts: tuple[ExtractedFact, ...]
    about: tuple[ExtractedFact, ...] = ()
    tied: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulNames:
    """The doubtful names of a turn, its entities, and a few known facts of each possible twin."""

    found: TurnEntities
    names: tuple[DoubtfulName, ...]
    known_facts: Mapping[UUID, tuple[str, ...]]

    def in_facts(self, facts: Sequence[ExtractedFact]) -> "DoubtfulNames | None":
        """The doubtful names in these facts of the turn; None without any."""
        names = tuple(name for name in self.names if any(fact in facts for fact in name.facts))
        return replace(self, names=names) if names else None


def doubtful_names(found: TurnEntities) -> tuple[DoubtfulName, ...]:
    """The first `MAX_NAMES` names of the source that may mean a known entity, in the order in which they were said."""
    names: list[DoubtfulName] = []
    for entity_id, name in found.resolver.doubtful.items():
        entity, finding = found.new[entity_id]
        twins = tuple(one for one in finding.compared if one.entity_id not in found.new)[:MAX_COMPARED]
        facts = tuple(fact for fact in found.facts if entity_id in found.entities_in(fact))
        if not twins or not facts:
            continue
        tied = dict.fromkeys(
            one.entity_id
            for key in entity.keys("tie")
            for one in found.registry.of_tie(key)
            if one not in twins and one.entity_id not in found.new
        )
        names.append(
            DoubtfulName(
                name=name.text,
                type=entity.type,
                twins=twins,
                facts=facts,
                about=tuple(fact for fact in facts if found.subject_of(fact) == entity_id),
                tied=tuple(tied)[:MAX_COMPARED],
            )
        )
    return tuple(names[:MAX_NAMES])


def without_decided(names: Sequence[DoubtfulName], decided: Collection[tuple[UUID, UUID]]) -> tuple[DoubtfulName, ...]:
    """The names with the possible twins that a model may choose from; names without any are left out.

    A `decided` pair, which a person has said to be two entities or may yet merge, is no matter for a model: where a
    name may mean both entities of such a pair, neither can be chosen.
    """
    asked = []
    for name in names:
        possible = {one.entity_id for one in name.twins} | set(name.tied)
        not_asked = {entity_id for pair in decided if possible.issuperset(pair) for entity_id in pair}
        twins = tuple(one for one in name.twins if one.entity_id not in not_asked)[:MAX_TWINS]
        if twins:
            asked.append(replace(name, twins=twins))
    return tuple(asked)


def as_shown(names: Sequence[DoubtfulName], shown: Mapping[UUID, TwinDetails]) -> tuple[DoubtfulName, ...]:
    """The doubtful names, their twins without the names that readers do not see."""
    found = []
    for name in names:
        twins = []
        for twin in name.twins:
            seen = shown[twin.entity_id].names if twin.entity_id in shown else ()
            own = twin.name if twin.name in seen else next(iter(seen), "unnamed")
            aliases = tuple(alias for alias in twin.aliases if alias.text in seen)
            twins.append(twin.model_copy(update={"name": own, "aliases": aliases}))
        found.append(replace(name, twins=tuple(twins)))
    return tuple(found)
