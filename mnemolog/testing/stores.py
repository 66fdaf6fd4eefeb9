"""What decisions read, over the tables in memory: the same questions as the stores over Postgres answer."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn
from uuid import UUID

from mnemolog.errors import MnemologError
from mnemolog.projections.database import Store
from mnemolog.projections.stores.entities import (
    MAX_ALIASES,
    MAX_FOUND,
    EntityStore,
    ShownEntities,
    ShownEntitiesRequest,
)
from mnemolog.projections.stores.facts import (
    MAX_ENDED_NEAR,
    MAX_ENDED_OF_KEY,
    CandidateLists,
    CandidateRequest,
    FactStore,
    ShownFacts,
    ShownFactsRequest,
    SourceQuery,
    SourceStatus,
)
from mnemolog.projections.stores.turns import ConversationRequest, Journal, LimitReservations
from mnemolog.projections.write.rows import EntityChangeRow, EventRow, EvidenceRow, FactRow
from mnemolog.schemas import stored
from mnemolog.schemas.entities import Alias, KnownEntity, NameQuery, Role, name_ends
from mnemolog.schemas.entity_events import MergeProposed, RelationEnded
from mnemolog.schemas.events import DecisionUndone, FactAdded, FactPending, FactsMerged, PendingConfirmed
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, Candidate
from mnemolog.schemas.filters import EVERYTHING, Filter
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, StoredPolicies, TurnUsage
from mnemolog.schemas.scope import Scope, ScopeColumns, scope_columns
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder, SharedPolicies
from mnemolog.streams.text.differences import USER_WORDS
from mnemolog.testing.tables import Tables, event_state, learned, said_at

_ROLES: Final[tuple[Role, ...]] = ("subject", "object", "mention")
_NEW_VERSIONS: Final = ("facts_merged", "fact_corrected")
_EDITS: Final = ("fact_replaced", "fact_contradicted")
_NO_POOL: Final[Any] = None


class NotInMemoryError(MnemologError):
    """What was asked needs the real servers: `mnemolog.start()` runs them in this process."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not done in memory: use mnemolog.start(), or a running stack")


class _InMemory(Store):
    """A store whose questions are answered here; whatever else would ask Postgres raises `NotInMemoryError`."""

    async def _rows(self, query: str, *_: Any, **__: Any) -> NoReturn:
        raise NotInMemoryError(query)

    async def _run(self, operation: str, *_: Any, **__: Any) -> NoReturn:
        raise NotInMemoryError(operation)


class MemoryPolicies(_InMemory, SharedPolicies):
    """The policies that commands have set."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(_NO_POOL)
        self._tables = tables

    async def stored_policies(self, scopes: Sequence[Scope]) -> list[StoredPolicies]:
        return [policies_of(self._tables, scope) for scope in scopes]


def policies_of(tables: Tables, scope: Scope) -> StoredPolicies:
    """What was set last for a scope and for its tenant."""
    policies = {row.scope: row.event.policy for row in tables.rows.policies}
    return StoredPolicies(tenant=policies.get((scope.tenant, "", "", "", "")), scope=policies.get(scope_columns(scope)))


class MemoryLimits(LimitReservations):
    """Nothing is counted: a turn of a scope with limits is refused, instead of being let through."""

    def __init__(self) -> None:
        super().__init__(_NO_POOL)

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:  # noqa: ARG002 - the store's
        if rules.has_counted_limits:
            raise NotInMemoryError("a policy with limits")
        return None

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        return await self.exhausted_limit(usage.scope, rules, usage.published_at)

    check = reserve


class MemoryJournal(_InMemory, Journal):
    """The stages remember the last turns of a process by themselves."""

    async def messages_before(self, requests: Sequence[ConversationRequest]) -> list[tuple[stored.EarlierMessage, ...]]:
        return [() for _ in requests]


class MemoryFinder(_InMemory, SharedCandidateFinder):
    """Finds the candidates of new facts."""

    def __init__(self, tables: Tables, *, limit: int) -> None:
        super().__init__(_NO_POOL, limit=limit)
        self._tables = tables
        self._limit = limit

    async def find_many(self, requests: Sequence[CandidateRequest]) -> list[CandidateLists]:
        return [self._found(request) for request in requests]

    def _found(self, request: CandidateRequest) -> CandidateLists:
        tables, scope = self._tables, scope_columns(request.scope)
        names = tables.user_names(scope, request.speaker, tuple(USER_WORDS))
        known = [row for row in tables.in_scope(scope, *OPEN_STATUSES) if tables.holds(row, request.at)]
        held = held_back(tables, scope)
        lists = []
        for query in request.queries:
            near, of_key = _compared(known, query)
            ranks = {
                fact_id: subject_rank(tables.facts[fact_id].fact.subject, query.subject, names) for fact_id in of_key
            }
            best = sorted(near, key=lambda one: (-near[one], one))[: self._limit]
            best += sorted(of_key, key=lambda one: (-ranks[one], -of_key[one], one))[: stored.MAX_CANDIDATES_OF_KEY]
            in_order = sorted({one: (near | of_key)[one] for one in best}.items(), key=lambda one: (-one[1], one[0]))
            lists.append(
                tuple(candidate(tables, fact_id, similarity, held.get(fact_id, ())) for fact_id, similarity in in_order)
            )
        return CandidateLists(scope_version=_version(tables, scope), candidates=tuple(lists), user_names=names)

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[stored.EntityFactsQuery], *, at: datetime
    ) -> list[tuple[Candidate, ...]]:
        tables, here = self._tables, scope_columns(scope)
        held, found = held_back(tables, here), []
        for one in requests:
            rows = [
                row
                for row in tables.in_scope(here, "active")
                if row.fact.key == one.key
                and row.fact.fact_id not in one.known
                and tables.holds(row, at)
                and any(
                    (link.link.entity_id, link.link.role) == (one.entity_id, "subject")
                    for link in tables.links([row.fact.fact_id])
                )
            ]
            compared = [
                (row.fact.fact_id, _cosine(row.fact.vector, one.vector) or 0.0)
                for row in sorted(rows, key=learned, reverse=True)[: stored.MAX_CANDIDATES_OF_KEY]
            ]
            about = [candidate(tables, fact_id, near, held.get(fact_id, ())) for fact_id, near in compared]
            found.append(tuple(known.model_copy(update={"subject_relation": "same"}) for known in about))
        return found

    async def source_statuses(self, sources: Sequence[SourceQuery]) -> list[SourceStatus]:
        return [self._status(*source) for source in sources]

    def _status(self, owner: str, source_id: str, scope: Scope | None) -> SourceStatus:
        tables, here = self._tables, scope_columns(scope)
        commits = (row.commit for row in reversed(tables.rows.commits))
        last = next((one for one in commits if (one.owner, one.source_id) == (owner, source_id)), None)
        states = [tables.state_of(row.fact.fact_id) for row in tables.in_scope(here, *ENDED_STATUSES)]
        ends = [one.true_to for one in states if one.believed_to is None and one.true_to is not None]
        own = (row for row in tables.facts.values() if (row.commit.owner, row.commit.source_id) == (owner, source_id))
        return SourceStatus(
            scope_version=_version(tables, here),
            attempt=last.attempt if last else 0,
            retryable=last is not None and last.retryable,
            origin=last.origin if last else None,
            latest_end=max(ends, default=None),
            policies=policies_of(tables, scope) if scope else StoredPolicies(),
            fact_ids=tuple(sorted(row.fact.fact_id for row in own)) if last and last.retryable else (),
        )


class MemoryFacts(_InMemory, FactStore):
    """Answers what is asked about known facts."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(_NO_POOL, user_words=USER_WORDS)
        self._tables = tables

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        return {one: self._tables.stored(one) for one in fact_ids if one in self._tables.facts}

    async def current_facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        found = {}
        for asked in fact_ids:
            versions = [asked] if asked in self._tables.facts else []
            for one in versions:
                versions += [made for made in self._made_of(one) if made not in versions]
            if versions:
                found[asked] = self._tables.stored(versions[-1])
        return found

    def _made_of(self, fact_id: UUID) -> Iterator[UUID]:
        """What a merge, a correction or an update has made of a closed fact."""
        tables, state = self._tables, self._tables.state_of(fact_id)
        for row in tables.rows.events if state.status not in OPEN_STATUSES else ():
            event, is_pending_merge = row.event, isinstance(row.event, FactPending) and row.event.action == "merge"
            makes = (
                event.event in _NEW_VERSIONS
                or (is_pending_merge and row.fact_id == state.superseded_by)
                or (event.event in _EDITS and event.decision.by == "person")
            )
            is_of_it = fact_id in row.targets and row.fact_id is not None and not row.stale
            if makes and is_of_it and row.fact_id and not tables.is_undone(event.event_id):
                yield row.fact_id

    async def former_values(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        found = {}
        for asked in fact_ids:
            level = [self._tables.facts[asked]]
            while level and all(row.fact.value is None for row in level):
                level = [older for row in level for older in self._tables.superseded_by(row.fact.fact_id)]
            valued = [row.fact.fact_id for row in level if row.fact.value is not None]
            if valued:
                newest = max(valued, key=lambda one: (self._tables.state_of(one).true_from, -one.int))
                found[asked] = self._tables.stored(newest)
        return found

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, stored.PendingCase]:
        tables = self._tables
        cases = {}
        for row in _open_cases(tables):
            fact_id, event = row.event.fact.fact_id, row.event
            if fact_id not in fact_ids:
                continue
            challenged = tables.challenged(fact_id)
            is_human = any(tables.facts[one].fact.authority == "human" for one in challenged)
            cases[fact_id] = stored.PendingCase(
                fact_id=fact_id,
                targets=tuple(sorted(one for one, is_later in challenged.items() if not is_later)),
                successors=tuple(sorted(one for one, is_later in challenged.items() if is_later)),
                action=event.action,
                ended_at=event.ended_at,
                needs_human=event.needs_human or is_human,
                said_at=event.promoted_from.said_at if event.promoted_from else row.commit.occurred_at,
                speaker=event.fact.speaker,
                authority=event.fact.authority,
            )
        return cases

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        cases = sorted(row.event.fact.fact_id for row in _open_cases(self._tables) if row.commit.scope == scope)
        challenged = {one: tuple(sorted(self._tables.challenged(one))) for one in cases}
        return {one: found for one, found in challenged.items() if not set(found).isdisjoint(fact_ids)}

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        found = {}
        for asked in fact_ids:
            chain = [asked]
            for one in chain:
                older = (row.fact.fact_id for row in self._tables.superseded_by(one))
                chain += [each for each in older if each not in chain and self._was_true(each)]
            found[asked] = tuple(sorted({self._tables.state_of(one).true_from for one in chain}))
        return found

    def _was_true(self, fact_id: UUID) -> bool:
        state = self._tables.state_of(fact_id)
        return state.believed_from is not None and state.status in {*ENDED_STATUSES, "active"}

    async def ended_candidates(
        self,
        scope: Scope,
        queries: Sequence[stored.CandidateQuery],
        *,
        after: datetime,
        user_names: Sequence[str],
    ) -> tuple[tuple[Candidate, ...], ...]:
        tables, names = self._tables, {name.lower() for name in user_names}
        ended = {
            row.fact.fact_id: state.true_to
            for row in tables.in_scope(scope_columns(scope), *ENDED_STATUSES)
            if (state := tables.state_of(row.fact.fact_id)).believed_from is not None
            and state.believed_to is None
            and state.true_to is not None
            and state.true_to > after
        }
        lists = []
        for query in queries:

            def is_of_subject(fact_id: UUID, asked: str | None = query.subject) -> bool:
                known = tables.facts[fact_id].fact.subject
                one, other = (known or "user").lower(), (asked or "user").lower()
                return (None not in (known, asked) and one == other) or (one in names and other in names)

            near, of_key = _compared([tables.facts[one] for one in ended], query)
            best = sorted(near, key=lambda one: (-near[one], one))[:MAX_ENDED_NEAR]
            best += sorted(of_key, key=lambda one: (not is_of_subject(one), ended[one], one))[:MAX_ENDED_OF_KEY]
            in_order = sorted(dict.fromkeys(best), key=lambda one: (ended[one], one))
            lists.append(tuple(candidate(tables, one, (near | of_key)[one], ended=True) for one in in_order))
        return tuple(lists)

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> tuple[KnownEntity, ...]:
        about: dict[UUID, dict[UUID, None]] = {}
        for link in self._tables.links(fact_ids):
            if link.link.role == "subject":
                about.setdefault(link.link.entity_id, {})[link.fact_id] = None
        return tuple(
            one.model_copy(update={"subject_of": tuple(sorted(about[one.entity_id]))})
            for one in known_entities(self._tables, about)
        )

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> tuple[stored.EndedFact, ...]:
        found = [one for asked in fact_ids if asked in self._tables.facts for one in self._ended_by(asked)]
        return tuple(sorted(found, key=lambda one: (self._tables.state_of(one.fact_id).true_from, one.fact_id)))

    def _ended_by(self, asked: UUID) -> Iterator[stored.EndedFact]:
        tables, standing = self._tables, [asked]
        for one in standing:
            standing += [
                part
                for row in tables.superseded_by(one)
                if (part := row.fact.fact_id) not in standing
                and (state := tables.state_of(part)).status == "superseded"
                and state.believed_to is not None
            ]
        for row in (row for ender in standing for row in tables.superseded_by(ender)):
            state = tables.state_of(row.fact.fact_id)
            if self._was_true(row.fact.fact_id) and state.believed_to is None and state.true_to is not None:
                yield self._ended(row, asked, standing)

    def _ended(self, row: FactRow, asked: UUID, standing: Collection[UUID]) -> stored.EndedFact:
        tables, fact_id, now = self._tables, row.fact.fact_id, self._tables.state_of(row.fact.fact_id)
        former = tables.former(fact_id)
        open_before = [
            one.state for one in former if one.state.status == "active" and one.state.superseded_by != now.superseded_by
        ]
        earlier = None
        for before, one in zip((None, *former), former, strict=False):
            ender = tables.state.facts.get(one.state.superseded_by) if one.state.superseded_by else None
            is_believed = ender and ender.state.believed_from and ender.state.believed_to is None
            is_in_effect = before is None or not tables.is_undone(before.event_id)
            if one.state.true_to and is_believed and is_in_effect and one.state.superseded_by not in standing:
                earlier = one.state
        of_key = [
            other
            for other in tables.in_scope(scope_columns(row.commit.scope))
            if row.fact.key is not None and other.fact.key == row.fact.key and other.fact.fact_id != asked
        ]
        rivals = {
            other.fact.fact_id
            for other in of_key
            if other is not row and tables.state_of(other.fact.fact_id).status == "active"
        }
        heir = tables.state_of(asked).superseded_by
        later = [
            other.fact.fact_id
            for other in of_key
            if (state := tables.state_of(other.fact.fact_id)).status in ENDED_STATUSES
            and state.believed_to is None
            and other.fact.valid_until is None
            and now.true_to is not None
            and state.true_from >= now.true_to
        ]
        related = {one.related_id for one in tables.rows.relations if one.fact_id == fact_id}
        related |= {one.fact_id for one in tables.rows.relations if one.related_id == fact_id}
        return stored.EndedFact(
            fact_id=fact_id,
            ended_by=asked,
            was_open=bool(open_before),
            was_unresolved=bool(open_before) and open_before[-1].unresolved,
            by_command=any(
                made.fact_id == now.superseded_by and fact_id in made.targets
                for made in tables.rows.events
                if made.event.event in ("fact_replaced", "fact_corrected") and made.event.decision.by == "person"
            ),
            earlier_end=earlier.true_to if earlier else None,
            earlier_ender=earlier.superseded_by if earlier else None,
            rival_ids=tuple(sorted(rivals | ({heir} if heir else set()))),
            later_ids=tuple(sorted(later)),
            related_ids=tuple(sorted(related)),
        )

    async def values_before(self, fact_id: UUID, since: datetime) -> tuple[UUID, ...]:
        tables = self._tables
        asked, began = tables.facts[fact_id], tables.state_of(fact_id).true_from
        found = [
            (state.true_from, other.fact.fact_id)
            for other in tables.in_scope(scope_columns(asked.commit.scope))
            if other is not asked
            and asked.fact.key is not None
            and other.fact.key == asked.fact.key
            and other.fact.valid_until is None
            and (state := tables.state_of(other.fact.fact_id)).believed_from is not None
            and state.believed_to is None
            and state.true_from < began
            and state.true_to is not None
            and since < state.true_to <= began
        ]
        return tuple(one for _, one in sorted(found))

    async def values_since(self, fact_ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
        found = {}
        for fact_id in fact_ids:
            closed, state = self._tables.facts[fact_id], self._tables.state_of(fact_id)
            closing = max((one for one in (state.closed_at, state.believed_to) if one), default=None)
            later = [
                other.fact.fact_id
                for other in self._tables.in_scope(scope_columns(closed.commit.scope), "active")
                if other is not closed
                and closed.fact.key is not None
                and other.fact.key == closed.fact.key
                and closing is not None
                and (
                    other.commit.decided_at > closing
                    or any(
                        one.state.status != "active" and one.until > closing
                        for one in self._tables.former(other.fact.fact_id)
                    )
                )
            ]
            if later:
                found[fact_id] = tuple(sorted(later))
        return found

    async def user_names(self, scope: Scope, user_words: Collection[str]) -> tuple[str, ...]:
        return self._tables.user_names(scope_columns(scope), None, tuple(user_words))

    async def conflicting_fact_ids(self, fact_id: UUID) -> tuple[UUID, ...]:
        asked = [shown for row in self._tables.events_of(fact_id) if (shown := _put_beside(row, fact_id)) is not None]
        return asked[-1] if asked else ()

    async def unresolved_beside(self, fact_ids: Sequence[UUID]) -> tuple[UUID, ...]:
        tables = self._tables
        gone = [tables.facts[fact_id] for fact_id in fact_ids]
        found = {
            other.fact.fact_id
            for one in gone
            for other in tables.in_scope(scope_columns(one.commit.scope), "active")
            if one.fact.key is not None and other.fact.key == one.fact.key
            if tables.state_of(other.fact.fact_id).unresolved
        }
        return tuple(sorted(found.difference(fact_ids)))

    async def scope_facts(
        self,
        scope: Scope,
        *,
        key: str | None,
        category: str | None,
        wanted: Filter,
        at: datetime,  # noqa: ARG002 - filters alone ask for the time
        limit: int,
    ) -> stored.ScopeFacts:
        named = wanted.model_dump(exclude_unset=True) if wanted != EVERYTHING else {}
        if set(named) - {"key", "memory"} or any(set(one) != {"eq"} for one in named.values()):
            raise NotInMemoryError("a filter")
        texts, keys = named.get("memory"), named.get("key")
        found = [
            row.fact.fact_id
            for row in self._tables.in_scope(scope_columns(scope), *OPEN_STATUSES)
            if key in (None, row.fact.key)
            and category in (None, *row.fact.categories)
            and (texts is None or texts["eq"] == row.fact.text)
            and (keys is None or keys["eq"] == row.fact.key)
        ]
        return stored.ScopeFacts(total=len(found), fact_ids=tuple(found[:limit]))

    async def due_expiries(
        self, now: datetime, *, after: stored.DueExpiry | None, limit: int
    ) -> list[stored.DueExpiry]:
        due = [
            stored.DueExpiry(fact_id=row.fact.fact_id, ends_at=end, scope=row.commit.scope)
            for end, row in self._tables.due(now)
            if row.commit.scope is not None
        ]
        return [one for one in due if after is None or (one.ends_at, one.fact_id) > (after.ends_at, after.fact_id)][
            :limit
        ]

    async def undo_targets(self, scope: Scope, undo: Any, *, limit: int) -> list[stored.LoggedEvent]:
        if undo.event_id is None and undo.source_id is None:
            raise NotInMemoryError("an undo of what a model decided")
        rows = [
            row.event.event_id
            for row in self._tables.rows.events
            if row.commit.scope == scope
            and undo.event_id in (None, row.event.event_id)
            and undo.source_id in (None, row.commit.source_id)
        ]
        return await self.events(rows[:limit])

    async def events(self, event_ids: Sequence[UUID]) -> list[stored.LoggedEvent]:
        return [self._logged(row) for row in self._tables.rows.events if row.event.event_id in event_ids]

    async def history_of(self, scope: Scope, fact_ids: Sequence[UUID]) -> stored.EventHistory:
        tables = self._tables
        late = {
            row.event.event_id
            for row in tables.rows.events
            if isinstance(row.event, FactAdded) and row.event.ended_by in fact_ids and row.commit.scope == scope
        }
        touching = {row.event.event_id for row in tables.events_of(*fact_ids)} | late
        for _ in range(2):  # and what undid or reinstated these
            touching |= {row.event.event_id for row in tables.rows.events if _undone(row) in touching}
        former = {
            fact_id: [
                stored.FormerState(event_id=one.event_id, state=event_state(one.state))
                for one in tables.rows.former_states
                if one.fact_id == fact_id
            ]
            for fact_id in fact_ids
        }
        return stored.EventHistory(
            facts=await self.facts(fact_ids),
            former_states={fact_id: states for fact_id, states in former.items() if states},
            events=await self.events([*touching]),
        )

    def _logged(self, row: EventRow) -> stored.LoggedEvent:
        tables, event = self._tables, row.event
        root = next(one for one in tables.rows.events if one.event.event_id == _root(row))
        turning = [one for one in tables.rows.events if _root(one) == root.event.event_id]
        changed = frozenset(one.fact_id for one in tables.rows.former_states if one.event_id == event.event_id)
        named = {*row.targets, *root.targets, row.fact_id, root.fact_id, getattr(root.event, "ended_by", None)}
        fact = event.new_fact
        return stored.LoggedEvent(
            event_id=event.event_id,
            event=event.event,
            position=_place(row),
            source_id=row.commit.source_id,
            occurred_at=event.promoted_from.said_at if event.promoted_from else row.commit.occurred_at,
            original=stored.OriginalDecision(
                event_id=root.event.event_id, event=root.event.event, position=_place(root)
            ),
            enables=not isinstance(event, DecisionUndone) or event.reinstated is not None,
            latest_id=turning[-1].event.event_id,
            statement_text=event.words.text if event.words else None,
            new_fact_id=fact.fact_id if fact else None,
            changed_fact_ids=changed,
            named_fact_ids=changed | {one for one in named if one},
        )

    async def linked_facts(self, fact_ids: Collection[UUID]) -> dict[UUID, stored.LinkedFact]:
        tables = self._tables
        return {one: self._linked(one) for one in fact_ids if one in tables.facts}

    def _linked(self, fact_id: UUID) -> stored.LinkedFact:
        tables, row = self._tables, self._tables.facts[fact_id]
        place = {one: number for number, one in enumerate(tables.entities)}
        said = dict.fromkeys((link.link.entity_id, link.link.role) for link in tables.links([fact_id]))
        links = sorted(said, key=lambda one: (_ROLES.index(one[1]), place[one[0]]))
        parts = [fact_id]
        merges = [one for one in tables.rows.events if isinstance(one.event, FactsMerged)]
        for part in parts:
            parts += [
                old
                for one in merges
                if one.fact_id == part
                for old in tables.facts[part].supersedes
                if old not in parts and tables.state_of(old).believed_to is not None
            ]
        relations = [
            stored.StoredRelation(
                subject_id=event.subject_id,
                predicate=event.predicate,
                object_id=event.object_id,
                inverse=event.inverse,
                strength=None if isinstance(event, RelationEnded) else event.strength,
                ended_at=event.ended_at if isinstance(event, RelationEnded) else None,
            )
            for part in parts
            for one in tables.rows.entities
            if isinstance(one, EvidenceRow) and one.event.fact_id == part
            for event in (one.event,)
        ]
        named = {one for one, _ in links} | {end for one in relations for end in (one.subject_id, one.object_id)}
        named |= {owner for one in tables.aliases if one.entity_id in named and (owner := _owner_of(one.alias))}
        return stored.LinkedFact(
            fact_id=fact_id,
            text=row.fact.text,
            subject=row.fact.subject,
            true_from=tables.state_of(fact_id).true_from,
            links=links,
            bearers={one: one for one, _ in links},
            relations=relations,
            entities={
                one.entity_id: one.model_copy(update={"possible_twins": ()}) for one in known_entities(tables, named)
            },
        )

    async def shown_facts(self, requests: Sequence[ShownFactsRequest]) -> list[ShownFacts]:
        """Names alone: what is read by rules or by a script is read without known facts."""
        words = tuple(USER_WORDS)
        names = (self._tables.user_names(scope_columns(one.scope), one.speaker, words) for one in requests)
        return [ShownFacts(names=known, facts=()) for known in names]


class MemoryEntities(_InMemory, EntityStore):
    """Finds entities by their names. Nothing changes entities here: there are no merges, splits and renames."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(_NO_POOL)
        self._tables = tables

    async def known_entities(
        self,
        scope: Scope,
        *,
        heads: Collection[str],
        keys: Collection[str],
        ends: Collection[str] = (),
        fact_ids: Collection[UUID] = (),
        meant: Sequence[NameQuery] = (),  # noqa: ARG002 - names are not compared by vectors here
        near_from: float = 1.0,  # noqa: ARG002 - the same
    ) -> list[KnownEntity]:
        tables, found = self._tables, dict[UUID, tuple[bool, bool, bool]]()
        for row in tables.aliases:
            alias, name_key = row.alias, row.alias.key
            is_headed = alias.head in heads
            if row.commit.scope == scope and (is_headed or (alias.kind != "tie" and name_ends(name_key) in ends)):
                before = found.get(row.entity_id, (False, False, False))
                marks = (alias.kind == "user", name_key in keys, is_headed)
                found[row.entity_id] = tuple(map(any, zip(before, marks, strict=True)))  # type: ignore[assignment] # three
        newest = {one: place for place, one in enumerate(tables.entities)}
        best = sorted(found, key=lambda one: (*found[one], newest[one]), reverse=True)[:MAX_FOUND]
        about: dict[UUID, list[UUID]] = {}
        for link in tables.links(fact_ids):
            if link.link.role == "subject" and link.fact_id not in about.setdefault(link.link.entity_id, []):
                about[link.link.entity_id].append(link.fact_id)
        return [
            one.model_copy(update={"subject_of": tuple(about.get(one.entity_id, ()))})
            for one in known_entities(tables, {*best, *about})
            if tables.entities[one.entity_id].commit.scope == scope
        ]

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        proposed = {
            frozenset(row.event.entity_ids)
            for row in self._tables.rows.entities
            if isinstance(row, EntityChangeRow) and isinstance(row.event, MergeProposed)
        }
        return {pair for pair in pairs if frozenset(pair) in proposed}

    async def undo_targets(self, *_: Any) -> list[stored.LoggedChange]:
        """No change of entities is there to be undone."""
        return []

    async def proposals(self, *_: Any) -> list[stored.StoredProposal]:
        """No proposed merge is confirmed or rejected here."""
        return []

    async def shown_entities(self, requests: Sequence[ShownEntitiesRequest]) -> list[ShownEntities]:
        return [ShownEntities() for _ in requests]


def held_back(tables: Tables, scope: ScopeColumns) -> dict[UUID, list[UUID]]:
    """The open cases of a scope that challenge each fact."""
    found: dict[UUID, list[UUID]] = {}
    for case in sorted(
        row.event.fact.fact_id for row in _open_cases(tables) if scope_columns(row.commit.scope) == scope
    ):
        for fact_id in tables.challenged(case):
            found.setdefault(fact_id, []).append(case)
    return found


def candidate(
    tables: Tables, fact_id: UUID, similarity: float, challenged_by: Sequence[UUID] = (), *, ended: bool = False
) -> Candidate:
    """A known fact as it is compared with a new one."""
    row, state = tables.facts[fact_id], tables.state_of(fact_id)
    fact, said = row.fact, said_at(row)
    excerpt = fact.excerpt
    if state.true_from < said and state.true_from != fact.event_time:  # it began with the words of a repetition
        repeated = (
            words.excerpt
            for one in tables.events_of(fact_id)
            if getattr(one.event, "true_from", None) == state.true_from and (words := one.event.words) is not None
        )
        excerpt = next(repeated, excerpt)
    said = max(filter(None, (said, state.last_confirmed_at)))
    return Candidate(
        **{
            name: getattr(fact, name)
            for name in (
                *("fact_id", "text", "content_hash", "key", "value", "valid_until", "category", "more_categories"),
                *("subject", "authority", "single_valued", "action_hint", "event_time", "value_json", "importance"),
                "importance_category",
            )
        },
        similarity=similarity,
        confidence=state.confidence,
        true_from=state.true_from,
        true_to=state.true_to,
        excerpt=excerpt,
        status="ended" if ended else "active" if state.status == "active" else "pending_confirmation",
        unresolved=state.unresolved and not ended,
        said_at=min(said, state.true_to) if ended and state.true_to else said,
        metadata=fact.metadata or row.commit.metadata,
        challenged_by=tuple(challenged_by),
    )


def known_entities(tables: Tables, entity_ids: Collection[UUID]) -> Iterator[KnownEntity]:
    """These entities with all their names, in the order in which they became known."""
    for entity_id, row in tables.entities.items():
        if entity_id in entity_ids:
            kinds = (
                one.link.type for one in tables.links(tables.facts) if one.link.entity_id == entity_id and one.link.type
            )
            aliases = (one.alias for one in tables.aliases if one.entity_id == entity_id)
            yield KnownEntity(
                entity_id=entity_id,
                name=row.event.name,
                type=next(kinds, row.event.type) if row.event.type == "other" else row.event.type,
                aliases=tuple(Alias(text=one.text, kind=one.kind, key=one.key) for one in aliases)[:MAX_ALIASES],
                possible_twins=row.possible_twins,
            )


def subject_rank(known: str | None, asked: str | None, user_names: Sequence[str]) -> int:
    """How near two subjects are: 2 where they are the same, 1 where that is unsure, 0 where they are different."""
    spoken = [name.lower() for name in user_names]
    aliases = {*USER_WORDS, *spoken}
    one, other = (None if name is None else name.lower() for name in (known, asked))
    if (one is not None and one == other) or ((one or "user") in aliases and (other or "user") in aliases):
        return 2
    if one is None or other is None or (not spoken and not aliases.isdisjoint((one, other))):
        return 1
    words = [[set(name.split()) for name in (spoken if said in aliases else [said])] for said in (one, other)]
    return int(any(left <= right or right <= left for left in words[0] for right in words[1]))


def _compared(known: Sequence[FactRow], query: stored.CandidateQuery) -> tuple[dict[UUID, float], dict[UUID, float]]:
    """The facts that are near a statement, and those of its key, each with its similarity."""
    near, of_key = dict[UUID, float](), dict[UUID, float]()
    for row in known:
        cosine = _cosine(row.fact.vector, query.vector)
        is_equal = row.fact.content_hash == query.content_hash
        similarity = 1.0 if is_equal else max(-1.0, min(1.0, cosine or 0.0))
        if is_equal or (cosine is not None and cosine >= query.min_similarity):
            near[row.fact.fact_id] = similarity
        if query.key is not None and row.fact.key == query.key:
            of_key[row.fact.fact_id] = similarity
    return near, of_key


def _cosine(one: Vector, other: Vector) -> float | None:
    is_comparable = (one.model, one.dimensions) == (other.model, other.dimensions)
    return cosine_similarity(one.values, other.values) if is_comparable else None


def _version(tables: Tables, scope: ScopeColumns) -> int:
    return sum(step.commits for step in tables.rows.scope_increments if step.scope == scope)


def _open_cases(tables: Tables) -> Iterator[Any]:
    """The held overwrites that wait for a confirmation."""
    return (
        row for row in tables.rows.pending if tables.state_of(row.event.fact.fact_id).status == "pending_confirmation"
    )


def _put_beside(row: EventRow, fact_id: UUID) -> tuple[UUID, ...] | None:
    """What an event put an unresolved fact beside; None where it did not."""
    event = row.event
    if isinstance(event, FactAdded | PendingConfirmed) and row.fact_id == fact_id and event.unresolved:
        return event.decision.shown
    moved = (one for one in event.moved_ends if one.fact_id == fact_id and one.unresolved and one.beside)
    return next((one.beside for one in moved), None)


def _undone(row: EventRow) -> UUID | None:
    return row.event.undone if isinstance(row.event, DecisionUndone) else None


def _root(row: EventRow) -> UUID:
    """The decision that an event made, undid or reinstated."""
    event = row.event
    return (event.reinstated or event.undone) if isinstance(event, DecisionUndone) else event.event_id


def _place(row: EventRow) -> stored.EventPosition:
    return (row.position.partition, row.position.offset, row.event.ordinal)


def _owner_of(alias: Alias) -> UUID | None:
    """To whom an alias is a tie: the id ends its key."""
    return UUID(alias.key[-36:]) if alias.kind == "tie" else None
