"""Reads the entities that names may mean."""

from collections.abc import Collection, Sequence
from typing import ClassVar, Final
from uuid import UUID

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.model import Alias, KnownEntity, NameQuery, name_head
from mnemolog.schemas.entities.stored import TwinDetails
from mnemolog.schemas.scope import Scope

MAX_FOUND: Final = 500
"""How many entities one source is compared with."""
MAX_ALIASES: Final = 50
MAX_NEAR: Final = 5
"""Names that are found for one by its vector."""
MAX_LOOKED_AT: Final = 200
"""Names that are near one and are looked at, whether readers see them."""


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
        meant: Sequence[NameQuery] = (),
        near_from: float = 1.0,
    ) -> list[KnownEntity]:
        """Those with one of these heads or ends: the user, those called by a key, those of a head, the newest.

        And those that these facts are about, and those whose names are as near to one that is `meant` as `near_from`, a
        cosine; in one round trip.
        """
        named = {"heads": sorted(heads), "keys": sorted(keys), "ends": sorted(ends)}
        asked = {**scope.columns, **named, "fact_ids": list(fact_ids), "near_from": near_from, **near_columns(meant)}
        rows = await self._rows("entities_of_heads", {**asked, "limit": MAX_FOUND, "aliases": MAX_ALIASES})
        return [
            KnownEntity(
                entity_id=entity_id,
                name=name,
                type=kind,
                possible_twins=tuple(twins),
                aliases=tuple(Alias(**alias) for alias in aliases),
                hidden=tuple(Alias(**alias) for alias in hidden),
                subject_of=tuple(subject_of),
                near=tuple(near),
            )
            for entity_id, name, kind, twins, aliases, hidden, subject_of, near in rows
        ]

    async def shown(self, entity_ids: Collection[UUID], *, most: int) -> dict[UUID, TwinDetails]:
        """What may be shown of each of these entities: its names, and the texts of `most` active facts."""
        rows = await self._rows("shown_of_entities", {"entity_ids": list(entity_ids), "most": most})
        return {entity_id: TwinDetails(names=tuple(names), facts=tuple(texts)) for entity_id, names, texts in rows}

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        """Those of these pairs of entities whose merge was proposed before, or that a person has said to be two."""
        asked = {"merged": [one for one, _ in pairs], "into": [other for _, other in pairs]}
        return {(one, other) for one, other in await self._rows("decided_pairs", asked)}


def near_columns(meant: Sequence[NameQuery]) -> dict[str, object]:
    """What `entities_of_heads` is told of names that are compared by their vectors."""
    return {
        "near_keys": [one.key for one in meant],
        "near_heads": [name_head(one.key) for one in meant],
        "near_types": [one.type for one in meant],
        "near_models": [one.vector.model for one in meant],
        "near_vectors": [one.vector for one in meant],
        "near_limit": MAX_NEAR,
        "looked_at": MAX_LOOKED_AT,
    }
