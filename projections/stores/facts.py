"""Reads known facts by id or scope, with all that decisions, commands and the timer need of them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.store import Store
from mnemolog.projections.filters.condition import filter_condition
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.candidates import CANDIDATE_COLUMNS, comparing_query, query_parameters
from mnemolog.schemas.entities.model import Alias, KnownEntity
from mnemolog.schemas.facts import Candidate, ExtractedFact, FactState
from mnemolog.schemas.filters.model import Filter
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import CandidateQuery, DueExpiry, EndedFact, PendingCase, ScopeFacts, StoredFact

MAX_ENDED_NEAR: Final = 10
"""How many ended facts that are near a late statement are looked up for it."""
MAX_ENDED_OF_KEY: Final = 100
"""How many ended values of its key are looked up for a late statement."""


class FactStore(Store):
    """Reads of known facts; each call is one round trip."""

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = {
        **queries("stored_facts"),
        "ended_candidates": comparing_query(
            "stored_facts",
            "ended_candidates",
            status="'ended'",
            unresolved="false",
            said_at="least(greatest(f.said_at, f.last_confirmed_at), f.true_to)",
        ),
    }

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, StoredFact]:
        """Those of `fact_ids` that there are, whatever their scope and status."""
        rows = await self._rows("facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        return {row["fact_id"]: stored_fact(row) for row in rows}

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""
        rows = await self._rows("pending_cases", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("targets", "successors")
        return {row["fact_id"]: PendingCase(**row | {name: tuple(row[name]) for name in lists}) for row in rows}

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """The open cases of `scope` that challenge one of these facts, each with all open facts that it challenges."""
        rows = await self._rows("challenges", {**scope.columns, "fact_ids": list(fact_ids)}) if fact_ids else []
        return {pending_id: tuple(challenged) for pending_id, challenged in rows}

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """Per fact since when it has been true, and every version before it, all the way back; the oldest first."""
        rows = await self._rows("version_starts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {fact_id: tuple(since) for fact_id, since in rows}

    async def ended_candidates(
        self, scope: Scope, queries: Sequence[CandidateQuery], *, after: datetime, user_names: Sequence[str]
    ) -> tuple[tuple[Candidate, ...], ...]:
        """For each query the facts of exactly `scope` that have ended after `after`; `user_names` as in a turn.

        At most `MAX_ENDED_NEAR` that are near or of equal words, and the first `MAX_ENDED_OF_KEY` of its key to end,
        those about the same subject before others: the next newer one is among them.
        """
        found: list[list[Candidate]] = [[] for _ in queries]
        parameters = {
            **scope.columns,
            **query_parameters(queries),
            "after": after,
            "user_names": [name.lower() for name in user_names],
            "limit": MAX_ENDED_NEAR,
            "limit_of_key": MAX_ENDED_OF_KEY,
        }
        for place, *fields in await self._rows("ended_candidates", parameters) if queries else []:
            found[place - 1].append(Candidate(**dict(zip(CANDIDATE_COLUMNS, fields, strict=False))))
        return tuple(map(tuple, found))

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> tuple[KnownEntity, ...]:
        """The entities that these facts are about, as they are now, each with those of them that are."""
        rows = await self._rows("subjects_of_facts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return tuple(
            KnownEntity(
                entity_id=entity_id,
                name=name,
                type=kind,
                possible_twins=tuple(twins),
                aliases=tuple(Alias(**alias) for alias in aliases),
                subject_of=tuple(subject_of),
            )
            for entity_id, name, kind, twins, aliases, subject_of in rows
        )

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> tuple[EndedFact, ...]:
        """The facts that were true until one of `fact_ids`, or what was merged into it, ended them; oldest first."""
        rows = await self._rows("ended_facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("rival_ids", "later_ids", "related_ids")
        return tuple(EndedFact(**row | {name: tuple(row[name]) for name in lists}) for row in rows)

    async def values_before(self, fact_id: UUID, since: datetime) -> tuple[UUID, ...]:
        """The other facts of its key that ended after `since` and before it began, the oldest first."""
        return tuple(row[0] for row in await self._rows("values_before", {"fact_id": fact_id, "since": since}))

    async def values_since(self, fact_ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
        """The active facts of the key of each of these that were not active when it was closed, or since then."""
        rows = await self._rows("values_since", {"fact_ids": list(fact_ids)})
        return {fact_id: tuple(later_ids) for fact_id, later_ids in rows}

    async def user_names(self, scope: Scope, user_words: Collection[str]) -> tuple[str, ...]:
        """The names of the user that exactly `scope` knows; `user_words` are subjects that say "the user"."""
        ((names,),) = await self._rows("user_names", {**scope.columns, "user_words": list(user_words)})
        return tuple(names)

    async def conflicting_fact_ids(self, fact_id: UUID) -> tuple[UUID, ...]:
        """The facts that an unresolved fact was put beside, the likeliest first."""
        return tuple(row[0] for row in await self._rows("conflict_of", {"fact_id": fact_id}))

    async def scope_facts(
        self, scope: Scope, *, key: str | None, category: str | None, wanted: Filter, at: datetime, limit: int
    ) -> ScopeFacts:
        """The active and pending facts of exactly `scope` that a filter lets through at `at`; at most `limit` of them.

        Those of a key or category where that is given.
        """
        parameters = {**scope.columns, "key": key, "category": category, "at": at, "limit": limit}
        rows = await self._filtered("in_scope", parameters, wanted)
        return ScopeFacts(total=rows[0][0] if rows else 0, fact_ids=tuple(fact_id for _, fact_id in rows))

    async def passing_facts(self, fact_ids: Sequence[UUID], wanted: Filter) -> tuple[UUID, ...]:
        """Those of `fact_ids` that a filter would let through if they were active."""
        parameters = {"fact_ids": list(fact_ids)}
        rows = await self._filtered("passing_facts", parameters, wanted, as_active=True) if fact_ids else []
        return tuple(fact_id for (fact_id,) in rows)

    async def _filtered(
        self, name: str, parameters: Mapping[str, Any], wanted: Filter, *, as_active: bool = False
    ) -> list[TupleRow]:
        condition, values = filter_condition(wanted, as_active=as_active)

        async def fetch(connection: AsyncConnection[TupleRow]) -> list[TupleRow]:
            query = queries("stored_facts")[name].format(filter=condition)
            return await (await connection.execute(query, {**parameters, **values})).fetchall()

        return await self._run(name, fetch)

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        """The next `limit` facts after `after` that are active although their end has passed by `now`."""
        parameters = {
            "now": now,
            "after_end": after.ends_at if after else None,
            "after_fact": after.fact_id if after else None,
            "limit": limit,
        }
        rows = await self._rows("due_expiries", parameters)
        return [
            DueExpiry(fact_id=fact_id, ends_at=ends_at, scope=Scope.from_columns(columns))
            for fact_id, *columns, ends_at in rows
        ]


def stored_fact(row: Mapping[str, Any]) -> StoredFact:
    """A fact of a row with the columns of the query `facts`."""
    return StoredFact(
        fact_id=row["fact_id"],
        scope=Scope.from_columns(row[name] for name in SCOPE_FIELDS),
        fact=ExtractedFact(**{name: row[name] for name in ExtractedFact.model_fields if name in row}),
        true_from=row["true_from"],
        speaker=row["speaker"],
        authority=row["authority"],
        state=FactState(**{name: row[name] for name in FactState.model_fields}),
    )
