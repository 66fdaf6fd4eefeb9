"""What decisions read, over the tables in memory: the same questions as the stores over Postgres answer."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn
from uuid import UUID

from mnemolog.errors import MnemologError
from mnemolog.projections.database import Store
from mnemolog.projections.stores import facts as stores
from mnemolog.projections.stores.entities import (
    MAX_ALIASES,
    MAX_FOUND,
    EntityStore,
    ShownEntities,
    ShownEntitiesRequest,
)
from mnemolog.projections.stores.turns import ConversationRequest, Journal, LimitReservations
from mnemolog.projections.write.rows import EntityChangeRow, EventRow, EvidenceRow
from mnemolog.schemas import stored
from mnemolog.schemas.entities import Alias, KnownEntity, NameQuery, Role, name_ends
from mnemolog.schemas.entity_events import MergeProposed, RelationEnded
from mnemolog.schemas.events import DecisionUndone, FactAdded, FactPending, FactsMerged, PendingConfirmed
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, Candidate, ExtractedFact, FactState
from mnemolog.schemas.filters import Filter
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, StoredPolicies, TurnUsage
from mnemolog.schemas.scope import Scope, ScopeColumns, scope_columns
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder, SharedPolicies
from mnemolog.streams.text.differences import SubjectRelation, compare_subjects
from mnemolog.testing.filters import lets_through
from mnemolog.testing.tables import Tables, Version, made

_ROLES: Final[tuple[Role, ...]] = ("subject", "object", "mention")
_NO_POOL: Final[Any] = None
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_RANKS: Final[Mapping[SubjectRelation, int]] = {"same": 2, "unsure": 1, "other": 0}
_LACKING: Final[Mapping[bool, Mapping[str, None]]] = {True: {"strength": None}, False: {"ended_at": None}}
"""What an ended relation has no value for, and one that holds."""


class NotInMemoryError(MnemologError):
    """What was asked needs the real servers: `mnemolog.start()` runs them in this process."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not done in memory: use mnemolog.start(), or a running stack")


class _InMemory(Store):
    """A store whose questions are answered here; whatever else would ask Postgres raises `NotInMemoryError`."""

    _tables: Tables

    @classmethod
    def over(cls, tables: Tables, **options: Any) -> Any:
        store = cls(_NO_POOL, **options)
        store._tables = tables
        return store

    async def _rows(self, query: str, *_: Any, **__: Any) -> NoReturn:
        raise NotInMemoryError(query)

    async def _run(self, operation: str, *_: Any, **__: Any) -> NoReturn:
        raise NotInMemoryError(operation)


class MemoryPolicies(_InMemory, SharedPolicies):
    """The policies that commands have set."""

    async def stored_policies(self, scopes: Sequence[Scope]) -> list[StoredPolicies]:
        return [self._tables.policies_of(scope) for scope in scopes]


class MemoryLimits(LimitReservations):
    """Nothing is counted: a turn of a scope with limits is refused, instead of being let through."""

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

    def __init__(self, pool: Any, *, limit: int) -> None:
        super().__init__(pool, limit=limit)
        self._limit = limit

    async def find_many(self, requests: Sequence[stores.CandidateRequest]) -> list[stores.CandidateLists]:
        return [self._found(request) for request in requests]

    def _found(self, request: stores.CandidateRequest) -> stores.CandidateLists:
        tables, scope = self._tables, scope_columns(request.scope)
        names = tables.user_names(scope, request.speaker)
        known = [one for one in tables.in_scope(scope, *OPEN_STATUSES) if one.holds(request.at)]
        held = _held_back(tables, scope)
        lists = []
        for query in request.queries:
            near, of_key = _compared(known, query)
            ranks = {one: _RANKS[compare_subjects(tables.version(one).subject, query.subject, names)] for one in of_key}
            best = sorted(near, key=lambda one: (-near[one], one))[: self._limit]
            best += sorted(of_key, key=lambda one: (-ranks[one], -of_key[one], one))[: stored.MAX_CANDIDATES_OF_KEY]
            in_order = sorted({one: (near | of_key)[one] for one in best}.items(), key=lambda one: (-one[1], one[0]))
            lists.append(tuple(_candidate(tables, one, similarity, held.get(one, ())) for one, similarity in in_order))
        return stores.CandidateLists(scope_version=_version(tables, scope), candidates=tuple(lists), user_names=names)

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[stored.EntityFactsQuery], *, at: datetime
    ) -> list[tuple[Candidate, ...]]:
        tables, here = self._tables, scope_columns(scope)
        held, found = _held_back(tables, here), []
        for asked in requests:
            about = {
                row.fact_id
                for row in tables.links(tables.facts)
                if (row.link.entity_id, row.link.role) == (asked.entity_id, "subject")
            }
            of_key = [
                one
                for one in tables.in_scope(here, "active")
                if one.key == asked.key and one.fact_id in about - {*asked.known} and one.holds(at)
            ]
            candidates = (
                _candidate(tables, one.fact_id, _cosine(one.vector, asked.vector) or 0.0, held.get(one.fact_id, ()))
                for one in of_key[::-1][: stored.MAX_CANDIDATES_OF_KEY]
            )
            found.append(tuple(one.model_copy(update={"subject_relation": "same"}) for one in candidates))
        return found

    async def source_statuses(self, sources: Sequence[stores.SourceQuery]) -> list[stores.SourceStatus]:
        return [self._status(*source) for source in sources]

    def _status(self, owner: str, source_id: str, scope: Scope | None) -> stores.SourceStatus:
        tables, here = self._tables, scope_columns(scope)
        commits = (row.commit for row in reversed(tables.rows.commits))
        last = next((one for one in commits if (one.owner, one.source_id) == (owner, source_id)), None)
        ends = [
            one.true_to
            for one in tables.in_scope(here, *ENDED_STATUSES)
            if one.believed_to is None and one.true_to is not None
        ]
        own = (
            fact_id
            for fact_id, row in tables.facts.items()
            if (row.commit.owner, row.commit.source_id) == (owner, source_id)
        )
        return stores.SourceStatus(
            scope_version=_version(tables, here),
            attempt=last.attempt if last else 0,
            retryable=last is not None and last.retryable,
            origin=last.origin if last else None,
            latest_end=max(ends, default=None),
            policies=tables.policies_of(scope) if scope else StoredPolicies(),
            fact_ids=tuple(sorted(own)) if last and last.retryable else (),
        )


class MemoryFacts(_InMemory, stores.FactStore):
    """Answers what is asked about known facts."""

    async def facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        return {one.fact_id: _stored(one) for one in self._tables.known(fact_ids)}

    async def current_facts(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        found = {}
        for asked in fact_ids:
            versions = [one.fact_id for one in self._tables.known([asked])]
            for one in versions:
                versions += [made for made in self._made_of(one) if made not in versions]
            if versions:
                found[asked] = _stored(self._tables.version(versions[-1]))
        return found

    def _made_of(self, fact_id: UUID) -> Iterator[UUID]:
        """What a merge, a correction or an update has made of a closed fact."""
        known = self._tables.version(fact_id)
        for row in self._tables.rows.events if not known.is_open else ():
            event, is_pending_merge = row.event, isinstance(row.event, FactPending) and row.event.action == "merge"
            makes = (
                event.event in ("facts_merged", "fact_corrected")
                or (is_pending_merge and row.fact_id == known.superseded_by)
                or (event.event in ("fact_replaced", "fact_contradicted") and event.decision.by == "person")
            )
            is_undone = self._tables.is_undone(event.event_id)
            if makes and fact_id in row.targets and row.fact_id and not row.stale and not is_undone:
                yield row.fact_id

    async def former_values(self, fact_ids: Sequence[UUID]) -> dict[UUID, stored.StoredFact]:
        found = {}
        for asked in fact_ids:
            level = [self._tables.version(asked)]
            while level and all(one.value is None for one in level):
                level = [older for one in level for older in self._tables.superseded_by(one.fact_id)]
            if valued := [one for one in level if one.value is not None]:
                found[asked] = _stored(max(valued, key=lambda one: (one.true_from, -one.fact_id.int)))
        return found

    async def pending_cases(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, stored.PendingCase]:
        cases = {}
        for row in self._tables.open_cases():
            if (fact_id := row.event.fact.fact_id) not in fact_ids:
                continue
            challenged = self._tables.challenged(fact_id)
            is_human = any(one.authority == "human" for one in self._tables.known(challenged))
            cases[fact_id] = made(
                stored.PendingCase,
                *(row.event, row.event.fact),
                targets=tuple(sorted(one for one, is_later in challenged.items() if not is_later)),
                successors=tuple(sorted(one for one, is_later in challenged.items() if is_later)),
                needs_human=row.event.needs_human or is_human,
                said_at=_said_at(row),
            )
        return cases

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        cases = sorted(row.event.fact.fact_id for row in self._tables.open_cases() if row.commit.scope == scope)
        challenged = {one: tuple(sorted(self._tables.challenged(one))) for one in cases}
        return {one: found for one, found in challenged.items() if not set(found).isdisjoint(fact_ids)}

    async def version_starts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[datetime, ...]]:
        found = {}
        for asked in fact_ids:
            chain = [asked]
            for one in chain:
                older = (row.fact_id for row in self._tables.superseded_by(one) if row.was_true)
                chain += [each for each in older if each not in chain]
            found[asked] = tuple(sorted({one.true_from for one in self._tables.known(chain)}))
        return found

    async def ended_candidates(
        self,
        scope: Scope,
        queries: Sequence[stored.CandidateQuery],
        *,
        after: datetime,
        user_names: Sequence[str],
    ) -> tuple[tuple[Candidate, ...], ...]:
        tables, lists = self._tables, []
        in_scope = tables.in_scope(scope_columns(scope), *ENDED_STATUSES)
        ended = {one.fact_id: one for one in in_scope if one.has_ended and one.true_to > after}
        for query in queries:

            def of_key_first(fact_id: UUID, asked: str | None = query.subject) -> tuple[bool, datetime, UUID]:
                is_same = compare_subjects(ended[fact_id].subject, asked, user_names) == "same"
                return not is_same, ended[fact_id].true_to, fact_id

            near, of_key = _compared(ended.values(), query)
            best = sorted(near, key=lambda one: (-near[one], one))[: stores.MAX_ENDED_NEAR]
            best += sorted(of_key, key=of_key_first)[: stores.MAX_ENDED_OF_KEY]
            in_order = sorted(dict.fromkeys(best), key=lambda one: (ended[one].true_to, one))
            lists.append(tuple(_candidate(tables, one, (near | of_key)[one], ended=True) for one in in_order))
        return tuple(lists)

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> tuple[KnownEntity, ...]:
        return tuple(_with_subjects(self._tables, (), fact_ids))

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> tuple[stored.EndedFact, ...]:
        found = [one for asked in self._tables.known(fact_ids) for one in self._ended_by(asked.fact_id)]
        return tuple(sorted(found, key=lambda one: (self._tables.version(one.fact_id).true_from, one.fact_id)))

    def _ended_by(self, asked: UUID) -> Iterator[stored.EndedFact]:
        tables, standing = self._tables, [asked]
        for ender in standing:
            merged = (one for one in tables.superseded_by(ender) if one.status == "superseded" and one.believed_to)
            standing += [one.fact_id for one in merged if one.fact_id not in standing]
        for one in (one for ender in standing for one in tables.superseded_by(ender)):
            if one.has_ended:
                yield self._ended(one, asked, standing)

    def _ended(self, one: Version, asked: UUID, standing: Collection[UUID]) -> stored.EndedFact:
        tables, former = self._tables, self._tables.former(one.fact_id)
        open_before = [
            row.state for row in former if row.state.status == "active" and row.state.superseded_by != one.superseded_by
        ]
        earlier = None
        for before, row in zip((None, *former), former, strict=False):
            ender = tables.state.facts.get(row.state.superseded_by) if row.state.superseded_by else None
            is_believed = ender and ender.state.believed_from and ender.state.believed_to is None
            is_in_effect = before is None or not tables.is_undone(before.event_id)
            if row.state.true_to and is_believed and is_in_effect and row.state.superseded_by not in standing:
                earlier = row.state
        of_key = [other for other in self._of_key(one) if other.fact_id != asked]
        rivals = {other.fact_id for other in of_key if other.is_active and other.fact_id != one.fact_id}
        heir = tables.version(asked).superseded_by
        later = (
            other.fact_id
            for other in of_key
            if other.status in ENDED_STATUSES
            and other.believed_to is None
            and other.valid_until is None
            and other.true_from >= one.true_to
        )
        related = {row.related_id for row in tables.rows.relations if row.fact_id == one.fact_id}
        related |= {row.fact_id for row in tables.rows.relations if row.related_id == one.fact_id}
        return stored.EndedFact(
            fact_id=one.fact_id,
            ended_by=asked,
            was_open=bool(open_before),
            was_unresolved=bool(open_before) and open_before[-1].unresolved,
            by_command=any(
                made.fact_id == one.superseded_by and one.fact_id in made.targets
                for made in tables.rows.events
                if made.event.event in ("fact_replaced", "fact_corrected") and made.event.decision.by == "person"
            ),
            earlier_end=earlier.true_to if earlier else None,
            earlier_ender=earlier.superseded_by if earlier else None,
            rival_ids=tuple(sorted(rivals | ({heir} if heir else set()))),
            later_ids=tuple(sorted(later)),
            related_ids=tuple(sorted(related)),
        )

    def _of_key(self, asked: Version, *statuses: str) -> list[Version]:
        """The facts of the scope and key of a fact, it itself among them."""
        of_scope = self._tables.in_scope(asked.scope, *statuses)
        return [one for one in of_scope if asked.key is not None and one.key == asked.key]

    async def values_before(self, fact_id: UUID, since: datetime) -> tuple[UUID, ...]:
        asked = self._tables.version(fact_id)
        found = [
            (one.true_from, one.fact_id)
            for one in self._of_key(asked)
            if one.has_ended and one.valid_until is None
            if one.true_from < asked.true_from and since < one.true_to <= asked.true_from
        ]
        return tuple(one for _, one in sorted(found))

    async def values_since(self, fact_ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
        found = {}
        for closed in self._tables.known(fact_ids):
            closing = max((one for one in (closed.closed_at, closed.believed_to) if one), default=_NEVER)
            later = []
            for one in self._of_key(closed, "active"):
                reopened = (row.until for row in self._tables.former(one.fact_id) if row.state.status != "active")
                if one.fact_id != closed.fact_id and max((one.row.commit.decided_at, *reopened)) > closing:
                    later.append(one.fact_id)
            if later:
                found[closed.fact_id] = tuple(sorted(later))
        return found

    async def user_names(self, scope: Scope, user_words: Collection[str]) -> tuple[str, ...]:
        return self._tables.user_names(scope_columns(scope), None, tuple(user_words))

    async def conflicting_fact_ids(self, fact_id: UUID) -> tuple[UUID, ...]:
        asked = [shown for row in self._tables.events_of(fact_id) if (shown := _put_beside(row, fact_id)) is not None]
        return asked[-1] if asked else ()

    async def unresolved_beside(self, fact_ids: Sequence[UUID]) -> tuple[UUID, ...]:
        found = {
            other.fact_id
            for one in self._tables.known(fact_ids)
            for other in self._of_key(one, "active")
            if other.unresolved
        }
        return tuple(sorted(found.difference(fact_ids)))

    async def scope_facts(
        self, scope: Scope, *, key: str | None, category: str | None, wanted: Filter, at: datetime, limit: int
    ) -> stored.ScopeFacts:
        found = [
            one.fact_id
            for one in self._tables.in_scope(scope_columns(scope), *OPEN_STATUSES)
            if key in (None, one.key)
            and category in (None, *one.row.fact.categories)
            and lets_through(wanted, one.shown(at))
        ]
        return stored.ScopeFacts(total=len(found), fact_ids=tuple(found[:limit]))

    async def due_expiries(
        self, now: datetime, *, after: stored.DueExpiry | None, limit: int
    ) -> list[stored.DueExpiry]:
        tables = self._tables
        closed = {row.fact_id: row.commit.decided_at for row in tables.rows.events if row.event.decision.by == "timer"}
        due = [
            made(stored.DueExpiry, one, ends_at=one.end, scope=one.row.commit.scope)
            for one in tables.known(tables.facts)
            if one.is_open and one.end is not None and closed.get(one.fact_id, _FIRST) < one.end <= now
        ]
        due.sort(key=lambda one: (one.ends_at, one.fact_id))
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
        rows = self._tables.rows
        touching = {row.event.event_id for row in self._tables.events_of(*fact_ids)} | {
            row.event.event_id
            for row in rows.events
            if isinstance(row.event, FactAdded) and row.event.ended_by in fact_ids and row.commit.scope == scope
        }
        for _ in range(2):  # and what undid or reinstated these
            touching |= {row.event.event_id for row in rows.events if getattr(row.event, "undone", None) in touching}
        former: dict[UUID, list[stored.FormerState]] = {}
        for row in (row for row in rows.former_states if row.fact_id in fact_ids):
            state = stored.FormerState(event_id=row.event_id, state=made(FactState, row.state))
            former.setdefault(row.fact_id, []).append(state)
        return stored.EventHistory(
            facts=await self.facts(fact_ids), former_states=former, events=await self.events([*touching])
        )

    def _logged(self, row: EventRow) -> stored.LoggedEvent:
        rows, event = self._tables.rows, row.event
        root = next(one for one in rows.events if one.event.event_id == _root(row))
        turning = [one for one in rows.events if _root(one) == root.event.event_id]
        changed = frozenset(one.fact_id for one in rows.former_states if one.event_id == event.event_id)
        named = {*row.targets, *root.targets, row.fact_id, root.fact_id, getattr(root.event, "ended_by", None)}
        fact = event.new_fact
        return made(
            stored.LoggedEvent,
            *(event, row.commit),
            position=_place(row),
            occurred_at=_said_at(row),
            original=made(stored.OriginalDecision, root.event, position=_place(root)),
            enables=not isinstance(event, DecisionUndone) or event.reinstated is not None,
            latest_id=turning[-1].event.event_id,
            decided_by=event.decision.by,
            statement_text=event.words.text if event.words else None,
            new_fact_id=fact.fact_id if fact else None,
            changed_fact_ids=changed,
            named_fact_ids=changed | {one for one in named if one},
        )

    async def linked_facts(self, fact_ids: Collection[UUID]) -> dict[UUID, stored.LinkedFact]:
        return {one.fact_id: self._linked(one) for one in self._tables.known(fact_ids)}

    def _linked(self, asked: Version) -> stored.LinkedFact:
        tables = self._tables
        place = {one: number for number, one in enumerate(tables.entities)}
        said = dict.fromkeys((row.link.entity_id, row.link.role) for row in tables.links([asked.fact_id]))
        links = sorted(said, key=lambda one: (_ROLES.index(one[1]), place[one[0]]))
        parts = [asked.fact_id]
        merged = {row.fact_id for row in tables.rows.events if isinstance(row.event, FactsMerged)}
        for part in parts:
            older = tables.known(tables.facts[part].supersedes if part in merged else ())
            parts += [one.fact_id for one in older if one.believed_to is not None and one.fact_id not in parts]
        evidence = [row for row in tables.rows.entities if isinstance(row, EvidenceRow)]
        relations = [
            made(stored.StoredRelation, event, **_LACKING[isinstance(event, RelationEnded)])
            for part in parts
            for event in (row.event for row in evidence)
            if event.fact_id == part
        ]
        named = {one for one, _ in links} | {end for one in relations for end in (one.subject_id, one.object_id)}
        ties = (row.alias for row in tables.aliases if row.entity_id in named and row.alias.kind == "tie")
        named |= {UUID(alias.key[-36:]) for alias in ties}  # to whom it is
        entities = (one.model_copy(update={"possible_twins": ()}) for one in _known_entities(tables, named))
        return stored.LinkedFact(
            fact_id=asked.fact_id,
            text=asked.text,
            subject=asked.subject,
            true_from=asked.true_from,
            links=links,
            bearers={one: one for one, _ in links},
            relations=relations,
            entities={one.entity_id: one for one in entities},
        )

    async def shown_facts(self, requests: Sequence[stores.ShownFactsRequest]) -> list[stores.ShownFacts]:
        """Names alone: what is read by rules or by a script is read without known facts."""
        names = (self._tables.user_names(scope_columns(one.scope), one.speaker) for one in requests)
        return [stores.ShownFacts(names=known, facts=()) for known in names]


class MemoryEntities(_InMemory, EntityStore):
    """Finds entities by their names. Nothing changes entities here: there are no merges, splits and renames."""

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
        for row in (row for row in tables.aliases if row.commit.scope == scope):
            alias, is_headed = row.alias, row.alias.head in heads
            if is_headed or (alias.kind != "tie" and name_ends(alias.key) in ends):
                user, equal, headed = found.get(row.entity_id, (False, False, False))
                found[row.entity_id] = (user or alias.kind == "user", equal or alias.key in keys, headed or is_headed)
        newest = {one: place for place, one in enumerate(tables.entities)}
        best = sorted(found, key=lambda one: (*found[one], newest[one]), reverse=True)[:MAX_FOUND]
        entities = tables.entities
        return [one for one in _with_subjects(tables, best, fact_ids) if entities[one.entity_id].commit.scope == scope]

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


def _held_back(tables: Tables, scope: ScopeColumns) -> dict[UUID, list[UUID]]:
    """The open cases of a scope that challenge each fact."""
    found: dict[UUID, list[UUID]] = {}
    cases = (row.event.fact.fact_id for row in tables.open_cases() if scope_columns(row.commit.scope) == scope)
    for case in sorted(cases):
        for fact_id in tables.challenged(case):
            found.setdefault(fact_id, []).append(case)
    return found


def _candidate(
    tables: Tables, fact_id: UUID, similarity: float, challenged_by: Sequence[UUID] = (), *, ended: bool = False
) -> Candidate:
    """A known fact as it is compared with a new one."""
    known = tables.version(fact_id)
    fact, said, excerpt = known.row.fact, known.said_at or known.row.commit.occurred_at, known.excerpt
    if known.true_from < said and known.true_from != fact.event_time:  # it began with the words of a repetition
        repeated = (
            words.excerpt
            for one in tables.events_of(fact_id)
            if getattr(one.event, "true_from", None) == known.true_from and (words := one.event.words) is not None
        )
        excerpt = next(repeated, excerpt)
    said = max(filter(None, (said, known.last_confirmed_at)))
    return made(
        Candidate,
        known,
        similarity=similarity,
        excerpt=excerpt,
        status="ended" if ended else "active" if known.is_active else "pending_confirmation",
        unresolved=known.unresolved and not ended,
        said_at=min(said, known.true_to) if ended and known.true_to else said,
        metadata=known.own_metadata,
        challenged_by=tuple(challenged_by),
        subject_relation=None,
    )


def _stored(known: Version) -> stored.StoredFact:
    return made(
        stored.StoredFact,
        known,
        scope=known.row.commit.scope,
        fact=made(ExtractedFact, known.row.fact),
        metadata=known.own_metadata,
        state=made(FactState, known.state),
    )


def _known_entities(tables: Tables, entity_ids: Collection[UUID]) -> Iterator[KnownEntity]:
    """These entities with all their names, in the order in which they became known."""
    links = tables.links(tables.facts)
    for entity_id, row in tables.entities.items():
        if entity_id in entity_ids:
            kinds = (one.link.type for one in links if one.link.entity_id == entity_id and one.link.type)
            aliases = (one.alias for one in tables.aliases if one.entity_id == entity_id)
            yield KnownEntity(
                entity_id=entity_id,
                name=row.event.name,
                type=next(kinds, row.event.type) if row.event.type == "other" else row.event.type,
                aliases=tuple(Alias(text=one.text, kind=one.kind, key=one.key) for one in aliases)[:MAX_ALIASES],
                possible_twins=row.possible_twins,
            )


def _with_subjects(tables: Tables, entity_ids: Iterable[UUID], fact_ids: Collection[UUID]) -> Iterator[KnownEntity]:
    """These entities and the subjects of facts, each with the facts that are about it."""
    about: dict[UUID, set[UUID]] = {}
    for row in tables.links(fact_ids):
        if row.link.role == "subject":
            about.setdefault(row.link.entity_id, set()).add(row.fact_id)
    for one in _known_entities(tables, {*entity_ids, *about}):
        yield one.model_copy(update={"subject_of": tuple(sorted(about.get(one.entity_id, ())))})


def _compared(known: Iterable[Version], query: stored.CandidateQuery) -> tuple[dict[UUID, float], dict[UUID, float]]:
    """The facts that are near a statement, and those of its key, each with its similarity."""
    near, of_key = dict[UUID, float](), dict[UUID, float]()
    for one in known:
        cosine, is_equal = _cosine(one.vector, query.vector), one.content_hash == query.content_hash
        similarity = 1.0 if is_equal else max(-1.0, min(1.0, cosine or 0.0))
        if is_equal or (cosine is not None and cosine >= query.min_similarity):
            near[one.fact_id] = similarity
        is_compared = not query.ends_only or one.action_hint == "retract"
        if query.key is not None and one.key == query.key and is_compared:
            of_key[one.fact_id] = similarity
    return near, of_key


def _cosine(one: Vector, other: Vector) -> float | None:
    is_comparable = (one.model, one.dimensions) == (other.model, other.dimensions)
    return cosine_similarity(one.values, other.values) if is_comparable else None


def _version(tables: Tables, scope: ScopeColumns) -> int:
    return sum(step.commits for step in tables.rows.scope_increments if step.scope == scope)


def _put_beside(row: EventRow, fact_id: UUID) -> tuple[UUID, ...] | None:
    """What an event put an unresolved fact beside; None where it did not."""
    event = row.event
    if isinstance(event, FactAdded | PendingConfirmed) and row.fact_id == fact_id and event.unresolved:
        return event.decision.shown
    moved = (one for one in event.moved_ends if one.fact_id == fact_id and one.unresolved and one.beside)
    return next((one.beside for one in moved), None)


def _root(row: EventRow) -> UUID:
    """The decision that an event made, undid or reinstated."""
    event = row.event
    return (event.reinstated or event.undone) if isinstance(event, DecisionUndone) else event.event_id


def _said_at(row: Any) -> datetime:
    """When the statement of an event, or of a held overwrite, was made."""
    origin, commit = row.event.promoted_from, row.commit
    said: datetime = origin.said_at if origin else commit.occurred_at
    return said


def _place(row: EventRow) -> stored.EventPosition:
    return (row.position.partition, row.position.offset, row.event.ordinal)
