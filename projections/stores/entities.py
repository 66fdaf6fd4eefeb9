"""Reads known entities for links, commands, prompts and summaries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mnemolog.projections.database import Pool, Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.command import Undo
from mnemolog.schemas.entities import Alias, KnownEntity, NameQuery, name_head
from mnemolog.schemas.entity_events import ENTITY_CHANGE
from mnemolog.schemas.entity_state import ConnectedEntities, RegisteredEntity, StoredChange
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import (
    LoggedChange,
    ShownEntity,
    ShownFact,
    StoredEntity,
    StoredProposal,
    SummaryFact,
    SummarySource,
    TwinDetails,
)

MAX_FOUND: Final = 500
"""How many entities one source is compared with."""
MAX_TIED: Final = 50
"""How many entities with ties that it names ("my cousin") one source is compared with."""
MAX_ALIASES: Final = 50
MAX_NEAR: Final = 5
"""Names that are found for one by its vector."""
MAX_SHOWN_LOOKED_AT: Final = 60
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


class EntityStore(Store):
    """Reads entities, and what persons decided about them; a call is one round trip unless it says more.

    `ties` are the heads of all ties: `shown_entities` needs them.
    """

    QUERIES: ClassVar = {
        **queries("entities"),
        **queries("entity_changes"),
        **queries("identity"),
        **queries("shown"),
        **queries("summaries"),
    }

    def __init__(self, pool: Pool, *, ties: Collection[str] = ()) -> None:
        super().__init__(pool)
        # the literal of an array: psycopg would write some hundred texts anew for each question
        self._ties = "{" + ",".join(f'"{tie}"' for tie in sorted(ties)) + "}"

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
        """The entities of exactly `scope` that have a name with one of these heads or ends.

        The user comes first, then entities that are called by a key, entities of a head, the newest. Besides, the
        subjects of these facts, and entities with a name whose cosine to a name that is `meant` is `near_from` or more.
        """
        parameters = {
            **scope.columns,
            "heads": sorted(heads),
            "keys": sorted(keys),
            "ends": sorted(ends),
            "fact_ids": list(fact_ids),
            "near_from": near_from,
            **near_columns(meant),
            "limit": MAX_FOUND,
            "tied": MAX_TIED,
            "aliases": MAX_ALIASES,
        }
        found = []
        for entity_id, name, kind, twins, aliases, subject_of, near in await self._rows(
            "entities_of_heads", parameters
        ):
            named = [(Alias(**alias), is_hidden, UUID(bearer)) for alias, is_hidden, bearer in aliases]
            shown = {(alias.kind, alias.key) for alias, is_hidden, _ in named if not is_hidden}
            hidden = (alias for alias, *_ in named if alias.head in heads and (alias.kind, alias.key) not in shown)
            bearers = tuple((bearer, alias) for alias, _, bearer in named)
            found.append(
                KnownEntity(
                    entity_id=entity_id,
                    name=name,
                    type=kind,
                    possible_twins=tuple(twins),
                    aliases=tuple(alias for alias, *_ in named),
                    hidden=tuple(hidden),
                    bearers=bearers if any(bearer != entity_id for bearer, _ in bearers) else (),
                    subject_of=tuple(subject_of),
                    near=tuple(near),
                )
            )
        return found

    async def shown(self, entity_ids: Collection[UUID], *, most: int) -> dict[UUID, TwinDetails]:
        """What may be shown of each of these entities: its names, and the texts of `most` active facts."""
        rows = await self._rows("shown_of_entities", {"entity_ids": list(entity_ids), "most": most})
        return {entity_id: TwinDetails(names=tuple(names), facts=tuple(texts)) for entity_id, names, texts in rows}

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        """The pairs among these whose merge was proposed before, or of which a person has said that they are two."""
        asked = {"merged": [one for one, _ in pairs], "into": [other for _, other in pairs]}
        return {(one, other) for one, other in await self._rows("decided_pairs", asked)}

    async def entities(self, entity_ids: Sequence[UUID]) -> dict[UUID, StoredEntity]:
        """The known entities among `entity_ids`, whatever their scope and status."""
        rows = await self._rows("entities_by_id", {"entity_ids": list(entity_ids)}, make=dict_row)
        found = {}
        for row in rows:
            scope = Scope.from_columns(row.pop(name) for name in SCOPE_FIELDS)
            aliases = tuple(Alias(**alias) for alias in row.pop("aliases"))
            found[row["entity_id"]] = StoredEntity(**row, scope=scope, aliases=aliases)
        return found

    async def facts_of_entity(self, entity_id: UUID, *, limit: int) -> tuple[int, list[UUID]]:
        """How many facts that are open or were true name an entity, and the first `limit` of them."""
        rows = await self._rows("believed_facts_of_entity", {"entity_id": entity_id, "limit": limit})
        return (rows[0][1] if rows else 0), [row[0] for row in rows]

    async def naming_facts(self, entity_id: UUID, fact_ids: Sequence[UUID]) -> list[UUID]:
        """The facts among `fact_ids` that name an entity now, and what was merged or corrected into them."""
        rows = await self._rows("naming_facts", {"entity_id": entity_id, "fact_ids": list(fact_ids)})
        return [row[0] for row in rows]

    async def connected_entities(self, entity_ids: Collection[UUID]) -> ConnectedEntities:
        """All that changes connect with these entities; of the facts only those with a key, an end, or an ended fact.

        Four round trips.
        """
        connected = [row[0] for row in await self._rows("connected", {"entity_ids": list(entity_ids)})]
        asked = {"entity_ids": connected}
        return ConnectedEntities(
            entities=[RegisteredEntity(*row) for row in await self._rows("registered_entities", asked)],
            changes=[
                StoredChange(ENTITY_CHANGE.validate_python(payload, strict=False), log_offset, in_effect)
                for payload, log_offset, in_effect in await self._rows("changes_of_entities", asked)
            ],
            links=[(fact_id, entity_id) for fact_id, entity_id in await self._rows("subject_links", asked)],
        )

    async def earlier_states(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[tuple[str, FactState]]]:
        """The states in which these facts had another ender, or none, in the log's order; each with the event after."""
        found: dict[UUID, list[tuple[str, FactState]]] = {}
        rows = await self._rows("earlier_states", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        for row in rows:
            states = found.setdefault(row.pop("fact_id"), [])
            states.append((row.pop("event"), FactState(**row)))
        return found

    async def proposals(self, event_ids: Sequence[UUID]) -> list[StoredProposal]:
        """The proposals of merges among `event_ids`, whatever their scope."""
        rows = await self._rows("proposals", {"event_ids": list(event_ids)}, make=dict_row)
        scopes = [Scope.from_columns(row.pop(name) for name in SCOPE_FIELDS) for row in rows]
        return [StoredProposal(**row, scope=scope) for row, scope in zip(rows, scopes, strict=True)]

    async def undo_targets(self, scope: Scope, undo: Undo) -> list[LoggedChange]:
        """The changes of exactly `scope` that an undo selects, in the log's order; models decide summaries alone."""
        asked = {**scope.columns, "owner": scope.owner, **undo.model_dump(exclude={"kind", "cascade"})}
        rows = await self._rows("selected_changes", asked, make=dict_row)
        return [LoggedChange(**row | {"entity_ids": tuple(row["entity_ids"])}) for row in rows]

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
            "ties": self._ties,
            "looked_at": MAX_SHOWN_LOOKED_AT,
            "aliases": MAX_NAMES,
        }
        found: list[list[ShownEntity]] = [[] for _ in requests]
        facts: list[dict[str, ShownFact]] = [{} for _ in requests]
        rows = await self._rows("entities_for", columns, is_shared=len(requests) > 1)
        for place, entity_id, own, kind, names, ties, twins, about in rows:
            name, *others = names or [own]  # an entity that was named "my wife" first may have a name since
            found[place - 1].append(
                ShownEntity(
                    entity_id=entity_id,
                    name=name,
                    type=kind,
                    names=tuple(others),
                    ties=tuple(filter(None, ties)),
                    twins=tuple(twins),
                )
            )
            facts[place - 1] |= {one["fact_id"]: ShownFact(**one) for one in about}
        return [
            ShownEntities(entities=tuple(some), facts=tuple(about.values()))
            for some, about in zip(found, facts, strict=True)
        ]

    async def summary_source(self, entity_id: UUID, *, at: datetime, limit: int) -> SummarySource:
        """What a summary of an entity may be written from at `at`: at most `limit` facts. Three round trips."""
        rows = await self._rows("facts_to_summarise", {"entity_id": entity_id, "at": at, "limit": limit})
        versions = await self._rows("versions", {"entity_id": entity_id})
        changed = await self.changed_facts([entity_id])
        return SummarySource(
            facts=tuple(SummaryFact(fact_id=row[0], text=row[1], true_from=row[2]) for row in rows),
            total=rows[0][3] if rows else 0,
            versions=versions[0][0],
            changed=changed[entity_id][1],
        )

    async def changed_facts(self, entity_ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, int]]:
        """What each entity is after merges, and how many facts have changed since its summary; without one all."""
        rows = await self._rows("changed_facts", {"entity_ids": list(entity_ids)})
        return {asked: (entity_id, changed) for asked, entity_id, changed in rows}

    async def named_by(self, fact_ids: Sequence[UUID]) -> dict[UUID, int]:
        """How many of these facts name each entity; entities that no fact names are left out."""
        return dict(await self._rows("entities_named_by", {"fact_ids": list(fact_ids)}))


def near_columns(meant: Sequence[NameQuery]) -> dict[str, object]:
    """The parameters of `entities_of_heads` for names that are compared by their vectors."""
    return {
        "near_keys": [one.key for one in meant],
        "near_heads": [name_head(one.key) for one in meant],
        "near_types": [one.type for one in meant],
        "near_models": [one.vector.model for one in meant],
        "near_vectors": [one.vector for one in meant],
        "near_limit": MAX_NEAR,
    }
