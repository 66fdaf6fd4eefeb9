"""Reads the entities that names may mean."""

from collections.abc import Collection
from typing import ClassVar, Final
from uuid import UUID

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.model import Alias, KnownEntity
from mnemolog.schemas.scope import Scope

MAX_FOUND: Final = 500
"""How many entities one source is compared with."""
MAX_ALIASES: Final = 50


class EntityStore(Store):
    """Reads entities of exactly one scope."""

    QUERIES: ClassVar = queries("entities")

    async def known_entities(
        self,
        scope: Scope,
        *,
        heads: Collection[str],
        keys: Collection[str],
        ends: Collection[str] = (),
        fact_ids: Collection[UUID] = (),
    ) -> list[KnownEntity]:
        """Those with one of these heads or ends: the user, those called by a key, those of a head, the newest.

        And those that these facts are about; in one round trip.
        """
        named = {"heads": sorted(heads), "keys": sorted(keys), "ends": sorted(ends)}
        asked = {**scope.columns, **named, "fact_ids": list(fact_ids)}
        rows = await self._rows("entities_of_heads", {**asked, "limit": MAX_FOUND, "aliases": MAX_ALIASES})
        return [
            KnownEntity(
                entity_id=entity_id,
                name=name,
                type=kind,
                possible_twins=tuple(twins),
                aliases=tuple(Alias(**alias) for alias in aliases),
                subject_of=tuple(subject_of),
            )
            for entity_id, name, kind, twins, aliases, subject_of in rows
        ]

    async def facts_about(self, entity_ids: Collection[UUID], *, most: int) -> dict[UUID, tuple[str, ...]]:
        """The texts of the newest active facts of each of these entities, at most so many; those about it first."""
        rows = await self._rows("facts_about_entities", {"entity_ids": list(entity_ids), "most": most})
        return {entity_id: tuple(texts) for entity_id, texts in rows}

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        """Those of these pairs of entities whose merge was proposed before, or that a person has said to be two."""
        asked = {"merged": [one for one, _ in pairs], "into": [other for _, other in pairs]}
        return {(one, other) for one, other in await self._rows("decided_pairs", asked)}
