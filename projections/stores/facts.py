"""Reads known facts for decisions, commands and prompts: by id, scope, similarity or key, with their events."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, ClassVar, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import DictRow, TupleRow, dict_row
from psycopg.sql import SQL, Composed
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from mnemolog.projections.database import Pool, Store
from mnemolog.projections.filter_condition import filter_condition
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.entities import MAX_ALIASES
from mnemolog.projections.stores.turns import with_policies
from mnemolog.schemas import stored
from mnemolog.schemas.command import Promote, Undo
from mnemolog.schemas.entities import Alias, KnownEntity
from mnemolog.schemas.facts import Candidate, ExtractedFact, FactState
from mnemolog.schemas.filters import EVERYTHING, Filter
from mnemolog.schemas.policy import NO_POLICIES, SINGLE_VALUED, StoredPolicies
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, scope_columns
from mnemolog.schemas.vector import Vector

_RELATIONS: Final = TypeAdapter(list[stored.StoredRelation])
CANDIDATE_COLUMNS: Final = tuple(name for name in Candidate.model_fields if name != "subject_relation")
"""The columns of the query `candidate`, and `challenged_by`, the last, which ended facts have not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """What is asked for a turn: the candidates of exactly `scope` for each of `queries`, at least one.

    Facts that had ended by `at` are left out; `speaker` is who is said to be the user now.
    """

    scope: Scope
    queries: Sequence[stored.CandidateQuery]
    at: datetime
    speaker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLists:
    """Per wanted fact its candidates, the nearest first, and the version of the scope they were found in.

    `user_names` are the names of the user that the scope knows, the speaker's among them where they are the first.
    """

    scope_version: int
    candidates: tuple[tuple[Candidate, ...], ...]
    user_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The status of a source and of its scope.

    `attempt` counts the commits of the source; the last one was made of the record at `origin`, and may be followed by
    another where it is `retryable`. `scope_version` counts the commits of the scope with events or a speaker,
    `latest_end` is the latest time at which one of its facts ceased to be true, `policies` are those that hold for it.
    `fact_ids` are the facts that earlier attempts have stored.
    """

    scope_version: int
    attempt: int = 0
    retryable: bool = False
    origin: Origin | None = None
    latest_end: datetime | None = None
    policies: StoredPolicies = NO_POLICIES
    fact_ids: tuple[UUID, ...] = ()

    @property
    def committed(self) -> bool:
        return self.attempt > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFactsRequest:
    """A turn: what is `said` in it and just before it, by `speaker`, at `at`. At most `facts` near it are wanted.

    `others` are those who speak besides in it. Keys of `single_valued` hold one value, as those of the registry do.
    """

    scope: Scope
    speaker: str | None
    others: tuple[str, ...] = ()
    single_valued: tuple[str, ...] = ()
    said: str
    at: datetime
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFacts:
    """The names of the user, and the facts to be shown, the best first."""

    names: tuple[str, ...]
    facts: tuple[stored.ShownFact, ...]


MAX_ENDED_NEAR: Final = 10
"""How many ended facts that are near a late statement are looked up for it."""
MAX_ENDED_OF_KEY: Final = 100
"""How many ended values of its key are looked up for a late statement."""
RECENT_FACTS: Final = 500
"""How many of the newest facts of a scope are looked at for a common word: a large scope is not read whole."""
MAX_SLOTS: Final = 20
MAX_LEXEMES: Final = 64
MAX_SAID: Final = 4000  # characters


def comparing_query(
    file: str,
    name: str,
    *,
    status: LiteralString = "f.status",
    unresolved: LiteralString = "f.unresolved",
    said_at: LiteralString = "greatest(f.said_at, f.last_confirmed_at)",
) -> SQL:
    """A query that compares statements with facts; the arguments are columns of a candidate that differ by query."""
    parts = queries("candidates")
    candidate = parts["candidate"].format(status=SQL(status), unresolved=SQL(unresolved), said_at=SQL(said_at))
    query = queries(file)[name].format(
        candidate=candidate,
        **{name: parts[name] for name in ("asked", "distances", "is_near", "is_of_key", "similarity")},
    )
    return SQL(query.as_string())


SourceQuery = tuple[str, str, Scope | None]
"""Owner, source id and scope of a source."""


class CandidateFinder(Store):
    """Looks up to `limit` nearest candidates for each new fact, and some of its key.

    `user_words` are subjects that say "the user", in small letters.
    """

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = {
        **queries("candidates"),
        "source_statuses": with_policies(queries("candidates")["source_statuses"]),
        "find_candidates": comparing_query("candidates", "find_candidates"),
        "facts_of_entities": comparing_query("candidates", "facts_of_entities"),
    }

    def __init__(self, pool: Pool, *, limit: int = 10, user_words: Collection[str] = ()) -> None:
        super().__init__(pool)
        self._options = {"user_words": list(user_words), "limit": limit, "limit_of_key": stored.MAX_CANDIDATES_OF_KEY}

    async def find(self, request: CandidateRequest) -> CandidateLists:
        """The candidates of each query of a turn, in one round trip.

        A candidate is an active or pending fact with a cosine similarity of `min_similarity` or more to a vector of
        the same model, or with equal words, which count as 1, or with the wanted key. One of the latter whose vector
        cannot be compared has similarity 0.
        """
        return (await self.find_many([request]))[0]

    async def find_many(self, requests: Sequence[CandidateRequest]) -> list[CandidateLists]:
        """The candidates of each turn, in one round trip for all."""
        last_places = list(accumulate(len(request.queries) for request in requests))
        parameters = {
            **_query_parameters([query for request in requests for query in request.queries]),
            **_scope_parameters([request.scope for request in requests]),
            "at": [request.at for request in requests],
            "speaker": [request.speaker for request in requests],
            "first_place": [1, *(place + 1 for place in last_places[:-1])],
            "last_place": last_places,
            **self._options,
        }
        rows = await self._rows("find_candidates", parameters, is_shared=len(requests) > 1)
        found = []
        for _, group in groupby(rows, itemgetter(0)):
            rows_of_turn = list(group)
            _, version, user_names, *_ = rows_of_turn[0]
            lists: dict[int, list[Candidate]] = {}  # a query without candidates has one row
            for _, _, _, place, *columns in rows_of_turn:
                candidates = lists.setdefault(place, [])
                if columns[0] is not None:
                    candidates.append(_candidate(columns))
            found.append(
                CandidateLists(
                    scope_version=version, candidates=tuple(map(tuple, lists.values())), user_names=tuple(user_names)
                )
            )
        return found

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[stored.EntityFactsQuery], *, at: datetime
    ) -> list[tuple[Candidate, ...]]:
        """Per request the newest active facts of its key in exactly `scope` that are about its entity, bounded.

        In one round trip. Facts that had ended by `at` are left out.
        """
        known = [fact_id for request in requests for fact_id in request.known]
        parameters = {
            **scope.columns,
            "entity_ids": [request.entity_id for request in requests],
            "keys": [request.key for request in requests],
            "vectors": [request.vector for request in requests],
            "models": [request.vector.model for request in requests],
            "known": known,
            "known_places": [place for place, request in enumerate(requests, 1) for _ in request.known],
            "at": at,
            "limit_of_key": stored.MAX_CANDIDATES_OF_KEY,
        }
        found: list[list[Candidate]] = [[] for _ in requests]
        for place, *columns in await self._rows("facts_of_entities", parameters):
            found[place - 1].append(_candidate(columns, subject_relation="same"))
        return [tuple(candidates) for candidates in found]

    async def source_status(self, owner: str, source_id: str, scope: Scope | None) -> SourceStatus:
        """The status of a source and of its scope, in one round trip."""
        return (await self.source_statuses([(owner, source_id, scope)]))[0]

    async def source_statuses(self, sources: Sequence[SourceQuery]) -> list[SourceStatus]:
        """The status of each source and of its scope, in one round trip for all."""
        parameters = {
            "owner": [owner for owner, _, _ in sources],
            "source_id": [source_id for _, source_id, _ in sources],
            **_scope_parameters([scope for _, _, scope in sources]),
        }
        return [
            SourceStatus(
                scope_version=version,
                attempt=attempt,
                retryable=retryable,
                origin=Origin(topic=topic, partition=partition, offset=offset) if attempt else None,
                latest_end=latest_end,
                policies=StoredPolicies.from_json(*policies),
                fact_ids=tuple(fact_ids),
            )
            for version, attempt, retryable, topic, partition, offset, latest_end, fact_ids, *policies in (
                await self._rows("source_statuses", parameters)
            )
        ]


class FactStore(Store):
    """Reads known facts, their events and their links; a call is one round trip unless it says more.

    `user_words` are subjects that say "the user", in small letters: `shown_facts` needs them.
    """

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = {
        **queries("stored_facts"),
        **queries("event_history"),
        "by_model": queries("event_history")["by_model"].format(decided=queries("event_history")["decided"]),
        **queries("linked_facts"),
        **queries("shown"),
        "ended_candidates": comparing_query(
            "stored_facts",
            "ended_candidates",
            status="'ended'",
            unresolved="false",
            said_at="least(greatest(f.said_at, f.last_confirmed_at), f.true_to)",
        ),
    }

    def __init__(self, pool: Pool, *, user_words: Collection[str] = ()) -> None:
        super().__init__(pool)
        self._user_words = list(user_words)

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        """The known facts among `fact_ids`, whatever their scope and status."""
        rows = await self._rows("facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        return {row["fact_id"]: _stored_fact(row) for row in rows}

    async def current_facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        """Of each known fact among `fact_ids` the newest version: what merges, corrections and updates made of it."""
        rows = await self._rows("current_facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        return {row["asked"]: _stored_fact(row) for row in rows}

    async def former_values(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        """Per fact without a value the newest fact with a value that it, or what stood between, took the place of."""
        rows = await self._rows("former_values", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        return {row["asked"]: _stored_fact(row) for row in rows}

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, stored.PendingCase]:
        """The open cases among `fact_ids`; what is not pending has none."""
        rows = await self._rows("pending_cases", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("targets", "successors")
        return {row["fact_id"]: stored.PendingCase(**row | {name: tuple(row[name]) for name in lists}) for row in rows}

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """The open cases of `scope` that challenge one of these facts, each with all open facts that it challenges."""
        rows = await self._rows("challenges", {**scope.columns, "fact_ids": list(fact_ids)}) if fact_ids else []
        return {pending_id: tuple(challenged) for pending_id, challenged in rows}

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        """Per fact since when it has been true, and every version before it, all the way back; the oldest first."""
        rows = await self._rows("version_starts", {"fact_ids": list(fact_ids)}) if fact_ids else []
        return {fact_id: tuple(since) for fact_id, since in rows}

    async def ended_candidates(
        self, scope: Scope, queries: Sequence[stored.CandidateQuery], *, after: datetime, user_names: Sequence[str]
    ) -> tuple[tuple[Candidate, ...], ...]:
        """For each query the facts of exactly `scope` that have ended after `after`; `user_names` as in a turn.

        At most `MAX_ENDED_NEAR` that are near or of equal words, and the first `MAX_ENDED_OF_KEY` of its key to end,
        those about the same subject before others: the next newer one is among them.
        """
        found: list[list[Candidate]] = [[] for _ in queries]
        parameters = {
            **scope.columns,
            **_query_parameters(queries),
            "after": after,
            "user_names": [name.lower() for name in user_names],
            "limit": MAX_ENDED_NEAR,
            "limit_of_key": MAX_ENDED_OF_KEY,
        }
        for place, *columns in await self._rows("ended_candidates", parameters) if queries else []:
            found[place - 1].append(_candidate(columns))
        return tuple(map(tuple, found))

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> tuple[KnownEntity, ...]:
        """The entities that these facts are about, as they are now, each with the facts that are about it."""
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

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> tuple[stored.EndedFact, ...]:
        """The facts that were true until one of `fact_ids`, or what was merged into it, ended them; oldest first."""
        rows = await self._rows("ended_facts", {"fact_ids": list(fact_ids)}, make=dict_row) if fact_ids else []
        lists = ("rival_ids", "later_ids", "related_ids")
        return tuple(stored.EndedFact(**row | {name: tuple(row[name]) for name in lists}) for row in rows)

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

    async def unresolved_beside(self, fact_ids: Sequence[UUID]) -> tuple[UUID, ...]:
        """The open unresolved facts of the keys and scopes of these facts, without these."""
        return tuple(row[0] for row in await self._rows("unresolved_beside", {"fact_ids": list(fact_ids)}))

    async def scope_facts(
        self, scope: Scope, *, key: str | None, category: str | None, wanted: Filter, at: datetime, limit: int
    ) -> stored.ScopeFacts:
        """The active and pending facts of exactly `scope` that a filter lets through at `at`; at most `limit` of them.

        Where a key or category is given, only facts of it.
        """
        parameters = {**scope.columns, "key": key, "category": category, "at": at, "limit": limit}
        rows = await self._filtered("in_scope", parameters, wanted)
        return stored.ScopeFacts(total=rows[0][0] if rows else 0, fact_ids=tuple(fact_id for _, fact_id in rows))

    async def passing_facts(self, fact_ids: Sequence[UUID], wanted: Filter) -> tuple[UUID, ...]:
        """The facts among `fact_ids` that a filter would let through if they were active."""
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

    async def due_expiries(
        self, now: datetime, *, after: stored.DueExpiry | None, limit: int
    ) -> list[stored.DueExpiry]:
        """The next `limit` facts after `after` that are active although their end has passed by `now`."""
        parameters = {
            "now": now,
            "after_end": after.ends_at if after else None,
            "after_fact": after.fact_id if after else None,
            "limit": limit,
        }
        rows = await self._rows("due_expiries", parameters)
        return [
            stored.DueExpiry(fact_id=fact_id, ends_at=ends_at, scope=Scope.from_columns(columns))
            for fact_id, *columns, ends_at in rows
        ]

    async def undo_targets(self, scope: Scope, undo: Undo, *, limit: int) -> list[stored.LoggedEvent]:
        """The events of exactly `scope` that an undo selects, in the log's order; at most `limit` of them.

        Events that are undone already are among them, unless the undo selects a model or a prompt version.
        """
        parameters = {
            **scope.columns,
            "owner": scope.owner,
            **undo.model_dump(exclude={"kind", "cascade"}),
            "limit": limit,
        }
        query = "by_source" if undo.source_id is not None else "by_model"
        if undo.event_id is not None:
            query = "by_event"
        return await self.events([row[0] for row in await self._rows(query, parameters)])

    async def history_of(self, scope: Scope, fact_ids: Sequence[UUID]) -> stored.EventHistory:
        """These facts of `scope` with all events and states they have had."""
        asked = {**scope.columns, "fact_ids": list(fact_ids)}
        touching = [row[0] for row in await self._rows("events_touching", asked)]
        former: dict[UUID, list[stored.FormerState]] = {}
        for row in await self._rows("former_states", asked, make=dict_row):
            states = former.setdefault(row.pop("fact_id"), [])
            states.append(stored.FormerState(event_id=row.pop("event_id"), state=FactState(**row)))
        return stored.EventHistory(
            facts=await self.facts(fact_ids), former_states=former, events=await self.events(touching)
        )

    async def events(self, event_ids: Sequence[UUID]) -> list[stored.LoggedEvent]:
        """These events, in the log's order."""
        rows = await self._rows("events", {"event_ids": list(event_ids)}, make=dict_row) if event_ids else []
        found = []
        for row in rows:
            original = stored.OriginalDecision(
                event_id=row.pop("original_id"),
                event=row.pop("original_event"),
                position=tuple(row.pop("original_position")),
            )
            named = {name: frozenset(row[name]) for name in ("changed_fact_ids", "named_fact_ids")}
            found.append(stored.LoggedEvent(**row | named | {"position": tuple(row["position"])}, original=original))
        return found

    async def linked_facts(self, fact_ids: Collection[UUID]) -> dict[UUID, stored.LinkedFact]:
        """The known facts among these, by their ids, with the entities and relations that they name.

        Facts of any scope; two round trips.
        """
        rows = [
            (*columns, links, _RELATIONS.validate_python(relations))
            for *columns, links, relations in await self._rows("linked_facts", {"fact_ids": list(fact_ids)})
        ]
        named = {UUID(link["entity_id"]) for *_, links, _ in rows for link in links}
        named |= {end for *_, relations in rows for said in relations for end in (said.subject_id, said.object_id)}
        asked = {"entity_ids": sorted(named), "aliases": MAX_ALIASES}
        entities = {
            entity_id: KnownEntity(
                entity_id=entity_id, name=name, type=kind, aliases=tuple(Alias(**alias) for alias in aliases)
            )
            for entity_id, name, kind, aliases in (await self._rows("entities_with_owners", asked) if named else ())
        }
        return {
            fact_id: stored.LinkedFact(
                fact_id=fact_id,
                text=text,
                subject=subject,
                true_from=true_from,
                links=[(UUID(link["entity_id"]), link["role"]) for link in links],
                bearers={UUID(link["entity_id"]): UUID(link["bearer_id"]) for link in links},
                relations=relations,
                entities=entities,
            )
            for fact_id, text, subject, true_from, links, relations in rows
        }

    async def promotable_facts(
        self, into: Scope, payload: Promote, *, at: datetime, min_importance: float, limit: int
    ) -> stored.PromotableFacts:
        """The first `limit` of the selected facts, those that can be promoted `into` a scope first; and their counts.

        Named facts are found wherever they live, others in exactly the scope of the payload.
        """
        selected = self.QUERIES["promotable_ids" if payload.fact_ids else "promotable_scope"]
        condition, values = filter_condition(payload.filters or EVERYTHING)
        parameters = {
            **into.columns,
            **{f"from_{name}": value for name, value in payload.source.columns.items()},
            **values,
            "fact_ids": list(payload.fact_ids),
            "source_id": payload.source_id,
            "at": at,
            "min_importance": min_importance,
            "limit": limit,
        }

        async def fetch(connection: AsyncConnection[TupleRow]) -> list[DictRow]:
            query = queries("stored_facts")["promotable"].format(selected=selected, filter=condition)
            async with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                return await (await cursor.execute(query, parameters)).fetchall()

        rows = await self._run("promotable", fetch)
        counts = {name: rows[0][name] if rows else 0 for name in ("free", "known", "total")}
        facts = [
            stored.PromotableFact(
                stored=_stored_fact(row),
                vector=Vector.from_values(row["embedding_model"], row["embedding"].to_list()),
                source_id=row["source_id"],
                said_at=row["said_at"],
            )
            for row in rows
        ]
        return stored.PromotableFacts(facts=tuple(facts), **counts)

    async def shown_facts(self, requests: Sequence[ShownFactsRequest]) -> list[ShownFacts]:
        """What each turn is shown; one round trip for all."""
        columns = {
            **{name: [one.scope.columns[name] for one in requests] for name in SCOPE_FIELDS},
            "speaker": [one.speaker for one in requests],
            "speakers": [Jsonb([name for name in (one.speaker, *one.others) if name]) for one in requests],
            "slots": [Jsonb(sorted({*SINGLE_VALUED, *one.single_valued})) for one in requests],
            "said": [one.said[:MAX_SAID] for one in requests],
            "at": [one.at for one in requests],
            "facts": [one.facts for one in requests],
            "user_words": self._user_words,
            "recent": RECENT_FACTS,
            "limit_of_slots": MAX_SLOTS,
            "lexemes": MAX_LEXEMES,
        }
        found: list[list[stored.ShownFact]] = [[] for _ in requests]
        names: list[tuple[str, ...]] = [() for _ in requests]
        rows = await self._rows("known_for", columns, is_shared=len(requests) > 1)
        for place, known_names, fact_id, text, key, value, subject in rows:
            names[place - 1] = tuple(known_names)
            if fact_id is not None:
                fact = stored.ShownFact(fact_id=fact_id, text=text, key=key, value=value, subject=subject)
                found[place - 1].append(fact)
        return [ShownFacts(names=own, facts=tuple(facts)) for own, facts in zip(names, found, strict=True)]


def _stored_fact(row: Mapping[str, Any]) -> stored.StoredFact:
    """A fact of a row with the columns of the query `facts`."""
    return stored.StoredFact(
        fact_id=row["fact_id"],
        scope=Scope.from_columns(row[name] for name in SCOPE_FIELDS),
        fact=ExtractedFact(**{name: row[name] for name in ExtractedFact.model_fields if name in row}),
        true_from=row["true_from"],
        speaker=row["speaker"],
        authority=row["authority"],
        metadata=row["metadata"],
        state=FactState(**{name: row[name] for name in FactState.model_fields}),
    )


def _query_parameters(queries: Sequence[stored.CandidateQuery]) -> dict[str, Any]:
    """The parameters of the table `asked`, which has a row for each query."""
    return {
        "vectors": [item.vector for item in queries],
        "models": [item.vector.model for item in queries],
        "content_hashes": [item.content_hash for item in queries],
        "keys": [item.key for item in queries],
        "subjects": [item.subject for item in queries],
        "ends_only": [item.ends_only for item in queries],
        "floors": [item.min_similarity for item in queries],
    }


def _candidate(columns: Sequence[Any], **more: Any) -> Candidate:
    """A candidate of a row with `CANDIDATE_COLUMNS`."""
    return Candidate(**dict(zip(CANDIDATE_COLUMNS, columns, strict=False)), **more)


def _scope_parameters(scopes: Iterable[Scope | None]) -> dict[str, list[str]]:
    return dict(zip(SCOPE_FIELDS, map(list, zip(*map(scope_columns, scopes), strict=True)), strict=True))
