"""Reads whom known facts name, for facts that are made of them."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import UUID

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.entities import MAX_ALIASES
from mnemolog.schemas.entities.model import Alias, KnownEntity
from mnemolog.schemas.entities.stored import LinkedFact, StoredRelation

_ENDS: Final = ("subject_id", "object_id")


class LinkedFactStore(Store):
    """Reads links and relations of facts, of any scope."""

    QUERIES: ClassVar = queries("linked_facts")

    async def linked_facts(self, fact_ids: Collection[UUID]) -> dict[UUID, LinkedFact]:
        """These facts, as far as they are known, by their ids; in two round trips."""
        rows = await self._rows("linked_facts", {"fact_ids": list(fact_ids)})
        named = {UUID(entity_id) for *_, links, relations in rows for entity_id in _named(links, relations)}
        asked = {"entity_ids": sorted(named), "aliases": MAX_ALIASES}
        entities = {
            entity_id: KnownEntity(
                entity_id=entity_id, name=name, type=kind, aliases=tuple(Alias(**alias) for alias in aliases)
            )
            for entity_id, name, kind, aliases in (await self._rows("entities_with_owners", asked) if named else ())
        }
        return {
            fact_id: LinkedFact(
                fact_id=fact_id,
                subject=subject,
                true_from=true_from,
                links=[(UUID(link["entity_id"]), link["role"]) for link in links],
                relations=[_relation(relation) for relation in relations],
                entities=entities,
            )
            for fact_id, subject, true_from, links, relations in rows
        }


def _named(links: Iterable[dict[str, Any]], relations: Iterable[dict[str, Any]]) -> Iterable[str]:
    yield from (link["entity_id"] for link in links)
    yield from (relation[end] for relation in relations for end in _ENDS)


def _relation(row: dict[str, Any]) -> StoredRelation:
    ended_at = row["ended_at"] and datetime.fromisoformat(row["ended_at"])
    return StoredRelation(**row | {end: UUID(row[end]) for end in _ENDS} | {"ended_at": ended_at})
