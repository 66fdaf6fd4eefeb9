"""Reads the known entities whose names an extraction is told, and the current facts about those that a turn names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from psycopg.types.json import Jsonb

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import ShownEntity, ShownFact

MAX_LOOKED_AT: Final = 60
"""How many names that begin as a word of the turn, ties to the user and relations of the user are looked at, each."""
MAX_NAMES: Final = 5
"""How many other names, ties and possible twins of an entity are shown, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEntitiesRequest:
    """What is `said` in a turn and before it, at `at`: the heads of its words, of its ties and their predicates.

    At most `entities` are wanted, and of each that is named at most `facts`.
    """

    scope: Scope
    said: str
    heads: Collection[str]
    ties: Collection[str]
    predicates: Collection[str]
    at: datetime
    entities: int
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEntities:
    """The entities to be shown, the best first, and the current facts about those that are named."""

    entities: tuple[ShownEntity, ...] = ()
    facts: tuple[ShownFact, ...] = ()


class ShownEntityStore(Store):
    """Reads entities as readers see them. `ties` are the heads of all ties."""

    QUERIES: ClassVar = queries("shown_entities")

    def __init__(self, pool: Pool, *, ties: Collection[str]) -> None:
        super().__init__(pool)
        self._options = {"ties": sorted(ties), "looked_at": MAX_LOOKED_AT, "aliases": MAX_NAMES}

    async def shown_entities(self, requests: Sequence[ShownEntitiesRequest]) -> list[ShownEntities]:
        """What each turn is shown; one round trip for all."""
        columns = {
            **{name: [one.scope.columns[name] for one in requests] for name in SCOPE_FIELDS},
            "said": [one.said for one in requests],
            "heads": [Jsonb(sorted(one.heads)) for one in requests],
            "said_ties": [Jsonb(sorted(one.ties)) for one in requests],
            "predicates": [Jsonb(sorted(one.predicates)) for one in requests],
            "at": [one.at for one in requests],
            "entities": [one.entities for one in requests],
            "facts": [one.facts for one in requests],
        }
        found: list[list[ShownEntity]] = [[] for _ in requests]
        facts: list[dict[str, ShownFact]] = [{} for _ in requests]
        rows = await self._rows("entities_for", {**columns, **self._options}, is_shared=len(requests) > 1)
        for place, entity_id, own, kind, names, ties, twins, about in rows:
            name, *more = names or [own]  # one that was named "my wife" first may have a name since
            told = {"names": tuple(more), "ties": tuple(filter(None, ties)), "twins": tuple(twins)}
            found[place - 1].append(ShownEntity(entity_id=entity_id, name=name, type=kind, **told))
            facts[place - 1] |= {one["fact_id"]: ShownFact(**one) for one in about}
        return [
            ShownEntities(entities=tuple(some), facts=tuple(about.values()))
            for some, about in zip(found, facts, strict=True)
        ]
