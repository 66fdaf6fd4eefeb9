"""What the methods of the client ask, answered over the tables in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, Final, cast
from uuid import UUID

from mnemolog.projections import context
from mnemolog.projections.errors import (
    AmbiguousIdError,
    AmbiguousTurnError,
    UnknownFactError,
    UnknownTurnError,
    check_limit,
)
from mnemolog.projections.queries import audit, explain, facts, ids, pending, write_result
from mnemolog.projections.queries.results import Fact, FoundFact, Profile, Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ANY_VALUE, ScopeFilter
from mnemolog.projections.queries.trace import fact_ids_of_commit
from mnemolog.projections.search import search
from mnemolog.projections.write.rows import EventRow, FactRow, LinkRow, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import NO_PRICES, PriceTable
from mnemolog.schemas.facts import OPEN_STATUSES
from mnemolog.schemas.filters import EVERYTHING, Filter
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, scope_columns
from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.testing.models import stems
from mnemolog.testing.stores import NotInMemoryError, disputed_facts, policies_of
from mnemolog.testing.tables import Tables, learned

_SECTIONS: Final[Mapping[str, str]] = {
    "identity": "identity",
    "hard_preference": "hard_preferences",
    "soft_preference": "soft_preferences",
    "task_context": "current_tasks",
    "health": "sensitive_topics",
    "finance": "sensitive_topics",
    "professional": "work",
    "relationship": "relationships",
}
_MOST_OF_SECTION: Final = 50
_RECENT_CHANGES: Final = 10
_CHANGES: Final = frozenset(
    {
        *("facts_merged", "fact_replaced", "fact_contradicted", "fact_retracted", "fact_expired", "fact_corrected"),
        *("pending_confirmed", "conflict_resolved"),
    }
)
_SHOWN_FIELDS: Final = frozenset(one.name for one in fields(Fact))
_STOP_WORDS: Final = frozenset(
    stems(
        "a an and are at be been did do does for from had has have he her him his how i in is it its me my of on or "
        "our she the their them they to was we were what when where which who why will with you your"
    )
)


class Answers:
    """Answers the queries of the client that are done in memory."""

    def __init__(self, tables: Tables, now: Callable[[], datetime]) -> None:
        self._tables = tables
        self._now = now
        self._answers: Mapping[Any, Callable[..., Any]] = {
            audit.worker_problems: list,
            context.lasting_facts: self._lasting_facts,
            explain.explain: self._explain,
            explain.history: self._history,
            facts.count_facts: lambda *args, **kwargs: len(self._facts(*args, **kwargs)),
            facts.fact: self._fact,
            facts.facts: self._facts,
            facts.facts_as_of: self._facts_as_of,
            facts.published_profile: self._profile,
            ids.find_event: self._find_event,
            ids.find_facts: self._find_facts,
            ids.find_turn: self._find_turn,
            ids.resolve_fact_id: lambda within, given: UUID(self._find_facts(within, [given])[0].id),
            pending.pending_changes: self._pending,
            pending.unresolved: self._unresolved,
            search.count_facts: self._count_by_ids,
            search.search: self._search,
            write_result.first_messages: self._first_messages,
            write_result.turn_status: self._status,
            write_result.why_not: self._why_not,
        }

    def answer(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Raises `NotInMemoryError` for a query that is not done here, and what the query itself raises."""
        if query not in self._answers:
            raise NotInMemoryError(query.__name__)
        return self._answers[query](*args, **kwargs)

    def _shown(self, row: FactRow, at: datetime | None = None, state: TimedFactState | None = None) -> Fact:
        """A fact as readers see it at a time: what has ended by then is expired."""
        at, fact, state = at or self._now(), row.fact, state or self._tables.state_of(row.fact.fact_id)
        ends = [end for end in (fact.valid_until, state.true_to) if end is not None]
        is_open = state.status in OPEN_STATUSES
        scope = {name: (row.commit.scope and getattr(row.commit.scope, name)) or None for name in SCOPE_FIELDS}
        own = {name: getattr(state, name) for name in state.__slots__ if name in _SHOWN_FIELDS}
        said = {name: getattr(fact, name) for name in type(fact).model_fields if name in _SHOWN_FIELDS}
        derived: dict[str, Any] = {
            "more_categories": list(fact.more_categories),
            "status": "expired" if is_open and ends and min(ends) <= at else state.status,
            "stale": row.stale,
            "disputed": fact.fact_id in disputed_facts(self._tables),
            "recorded_at": row.commit.decided_at,
            "supersedes": list(row.supersedes),
            "source_id": row.commit.source_id,
            "embedding_model": fact.vector.model,
            "metadata": dict(fact.metadata or row.commit.metadata),
            "begins_later": is_open and state.true_from > at,
        }
        return Fact(**{**said, **own, **scope, **derived})

    def _within(self, scope: ScopeFilter) -> list[FactRow]:
        found = (row for row in self._tables.facts.values() if _is_in(scope, row.commit.scope))
        return sorted(found, key=learned)

    def _facts(
        self,
        scope: ScopeFilter,
        wanted: Filter = EVERYTHING,
        *,
        all_versions: bool = False,
        at: datetime,
        limit: int | None = None,
        after: UUID | None = None,
    ) -> list[Fact]:
        check_limit(limit)
        if wanted != EVERYTHING:
            raise NotInMemoryError("a filter")
        if after is not None and after not in self._tables.facts:
            raise UnknownFactError(scope.tenant, after)
        found = [
            row
            for row in self._within(scope)
            if (all_versions or (self._status_of(row) == "active" and self._tables.holds(row, at)))
            and (after is None or learned(row) > learned(self._tables.facts[after]))
        ]
        return [self._shown(row, at) for row in found[:limit]]

    def _status_of(self, row: FactRow) -> str:
        return self._tables.state_of(row.fact.fact_id).status

    def _row(self, tenant: str, fact_id: UUID) -> FactRow:
        row = self._tables.facts.get(fact_id)
        if row is None or row.commit.scope is None or row.commit.scope.tenant != tenant:
            raise UnknownFactError(tenant, fact_id)
        return row

    def _fact(self, tenant: str, fact_id: UUID) -> FoundFact:
        current = self._row(tenant, fact_id)
        while self._status_of(current) not in OPEN_STATUSES:
            ender = self._tables.state_of(current.fact.fact_id).superseded_by
            if ender is None:
                break
            current = self._tables.facts[ender]
        former = fact_id if current.fact.fact_id != fact_id else None
        shown = self._shown(current)
        return FoundFact(**{one.name: getattr(shown, one.name) for one in fields(Fact)}, former_id=former)

    def _facts_as_of(self, scope: ScopeFilter, *, believed_at: datetime, true_at: datetime) -> list[Fact]:
        found = []
        for row in self._within(scope):
            now = self._tables.state_of(row.fact.fact_id)
            former = (
                one.state
                for one in self._tables.former(row.fact.fact_id)
                if one.state.state_since <= believed_at < one.until
            )
            state = now if now.state_since <= believed_at else next(former, None)
            ends = [end for end in (row.fact.valid_until, state.true_to if state else None) if end is not None]
            if (
                state is not None
                and state.believed_from is not None
                and state.believed_from <= believed_at
                and (state.believed_to is None or state.believed_to > believed_at)
                and state.true_from <= true_at
                and all(end > true_at for end in ends)
            ):
                found.append(self._shown(row, true_at, state))
        return found

    def _profile(self, scope: ScopeFilter, at: datetime) -> Profile:
        facts.check_exact(scope)
        exact = Scope(**{name: getattr(scope, name) for name in SCOPE_FIELDS})
        if policies_of(self._tables, exact).overlay(EffectivePolicy()).publish_profile != "at_once":
            raise NotInMemoryError("a profile that is published later")
        sections: dict[str, list[dict[str, Any]]] = {}
        for row in self._surest(scope):
            state = self._tables.state_of(row.fact.fact_id)
            end = self._tables.ends_at(row)
            entry = {
                **{name: getattr(row.fact, name) for name in ("key", "value", "text", "category")},
                "confidence": state.confidence,
                "at": _utc_text(state.true_from),
                "valid_until": _utc_text(end) if end else None,
                "fact_id": str(row.fact.fact_id),
                "unresolved": state.unresolved,
                "disputed": row.fact.fact_id in disputed_facts(self._tables),
            }
            of_section = sections.setdefault(_SECTIONS.get(row.fact.category, "other"), [])
            if len(of_section) < _MOST_OF_SECTION:
                of_section.append(entry | self._source(row))
        changed = [row.commit.decided_at for row in self._tables.rows.events if _is_in(scope, row.commit.scope)]
        known = replace(Profile(), **cast("Any", sections), recent_changes=self._recent(scope))
        return facts.with_upcoming(replace(known, updated_at=max(changed, default=None)), at)

    def _surest(self, scope: ScopeFilter) -> list[FactRow]:
        """The active facts of a scope, the surest first."""
        active = [row for row in self._within(scope) if self._status_of(row) == "active"]

        def rank(row: FactRow) -> tuple[float, float, Any]:
            state = self._tables.state_of(row.fact.fact_id)
            return -state.confidence, -state.true_from.timestamp(), learned(row)

        return sorted(active, key=rank)

    def _source(self, row: FactRow) -> dict[str, Any]:
        return {"source_id": row.commit.source_id, "excerpt": row.fact.excerpt}

    def _recent(self, scope: ScopeFilter) -> list[dict[str, Any]]:
        """The last changes, the newest first: events in effect that ended facts."""
        found = []
        for row in reversed(self._tables.rows.events):
            event, about = row.event, row.fact_id and self._tables.facts.get(row.fact_id)
            if event.event not in _CHANGES or not about or not _is_in(scope, row.commit.scope):
                continue
            ended = [
                one.fact_id
                for one in self._tables.rows.former_states
                if one.event_id == event.event_id
                and one.fact_id in (row.fact_id, *row.targets)
                and (one.fact_id != row.fact_id or event.event in ("fact_retracted", "fact_expired"))
            ]
            parts = self._tables.merged_into(about.fact.fact_id)
            is_denied = any(self._tables.state_of(part).status == "archived" for part in parts)
            is_hidden = self._tables.is_undone(event.event_id) or self._tables.is_taken_back(about.fact.fact_id)
            if not ended or is_denied or is_hidden:
                continue
            old = [one for one in ended if not self._tables.is_taken_back(one)]
            change = {
                "event": event.event,
                "text": about.fact.text,
                "fact_id": str(row.fact_id),
                "at": _utc_text(row.commit.decided_at),
                "old": [{"text": self._tables.facts[one].fact.text, "fact_id": str(one)} for one in old],
            }
            found.append(change | self._source(about))
        return found[:_RECENT_CHANGES]

    def _lasting_facts(self, scopes: Sequence[ScopeFilter], at: datetime) -> list[Fact]:
        for scope in scopes:
            facts.check_exact(scope)
        return [
            self._shown(row, at)
            for scope in scopes
            for row in self._surest(scope)
            if row.fact.category in context.SECTION_OF_CATEGORY
            and row.fact.action_hint != "retract"
            and self._tables.holds(row, at)
            and not (
                row.fact.category == "health"
                and row.fact.event_time is not None
                and row.fact.importance_category in context.EVENT_KINDS
            )
        ]

    def _search(
        self,
        scope: ScopeFilter | Sequence[ScopeFilter],
        text: str,
        vector: Vector | None,
        options: search.SearchOptions,
        *,
        at: datetime,
    ) -> search.Findings:
        """By cosine and by the share of the question's words alone, half and half."""
        if options.travels or options.only_period or options.explain or options.filters != EVERYTHING:
            raise NotInMemoryError("a search with times, filters or explain")
        asked = {word for word in stems(search.storable_question(text)) if word not in _STOP_WORDS}
        states, threshold = options.state or tuple(OPEN_STATUSES), options.threshold or 0.0
        hits, below = [], 0
        for row in (row for one in search.checked_scopes(scope) for row in self._within(one)):
            shown = self._shown(row, at)
            if shown.status not in states:
                continue
            fact = row.fact
            words = {*stems(" ".join((fact.text, fact.search_text, fact.key or "", fact.value or "")))}
            share = len(asked & words) / len(asked) if asked else 0.0
            is_comparable = vector is not None and vector.model == fact.vector.model
            cosine = cosine_similarity(vector.values, fact.vector.values) if vector and is_comparable else None
            if not share and (cosine is None or cosine < threshold):
                below += cosine is not None
                continue
            vector_part, text_part = max(cosine or 0.0, 0.0) / 2, share / 2
            score = search.Score(
                mode="hybrid" if vector else "lexical",
                total=vector_part + text_part,
                vector_rank=None,
                similarity=cosine,
                vector_part=vector_part,
                text_rank=None,
                text_score=share or None,
                text_part=text_part,
            )
            hits.append(search.Hit(fact=shown, score=score))
        hits.sort(key=lambda hit: (-hit.score.total, hit.fact.status != "active", hit.fact.fact_id))
        return search.Findings(hits=tuple(hits[: options.limit]), below_threshold=below)

    def _count_by_ids(self, scope: ScopeFilter, *, at: datetime) -> search.ScopeCount:
        left_out = [name for name, value in scope.parameters.items() if not value]
        wider = replace(scope, **dict.fromkeys(left_out, ANY_OR_NONE))
        found = [row for row in self._within(wider) if self._tables.holds(row, at) and self._status_of(row) == "active"]
        beside = [row.commit.scope for row in found if not _is_in(scope, row.commit.scope)]
        named = tuple(name for name in left_out if any(getattr(one, name, None) for one in beside))
        return search.ScopeCount(within=len(found) - len(beside), beside=len(beside), ids=named)

    def _history(self, tenant: str, fact_id: UUID) -> explain.History:
        versions = [self._row(tenant, fact_id).fact.fact_id]
        for one in versions:
            ender = self._tables.state_of(one).superseded_by
            linked = (*self._tables.facts[one].supersedes, *((ender,) if ender else ()))
            linked += tuple(row.fact.fact_id for row in self._tables.superseded_by(one))
            versions += [other for other in dict.fromkeys(linked) if other not in versions]
        rows = sorted((self._tables.facts[one] for one in versions), key=learned)
        return explain.History(
            versions=[self._shown(row) for row in rows],
            events=self._events(*versions),
            relations=self._relations(versions),
        )

    def _events(self, *fact_ids: UUID) -> list[explain.FactEvent]:
        return [self._event(row) for row in self._tables.events_of(*fact_ids)]

    def _event(self, row: EventRow) -> explain.FactEvent:
        event, decision = row.event, row.event.decision
        origin = event.promoted_from
        return explain.FactEvent(
            event_id=event.event_id,
            event=event.event,
            fact_id=row.fact_id,
            targets=list(row.targets),
            source_id=row.commit.source_id,
            occurred_at=origin.said_at if origin else row.commit.occurred_at,
            decided_at=row.commit.decided_at,
            decided_by=decision.by,
            reason=decision.reason,
            model=decision.model,
            prompt_version=decision.prompt_version,
            guard=decision.guard,
            stale=row.stale,
            undone=self._tables.is_undone(event.event_id),
            candidates=[one.model_dump(mode="json") for one in decision.candidates],
            moved_ends=[one.model_dump(mode="json") for one in event.moved_ends],
            promoted_from=origin.fact_id if origin else None,
        )

    def _relations(self, fact_ids: Sequence[UUID]) -> list[explain.FactRelation]:
        def is_active(fact_id: UUID) -> bool:
            return self._tables.state_of(fact_id).status == "active"

        return [
            explain.FactRelation(
                fact_id=one.fact_id,
                relation=one.relation,
                related_id=one.related_id,
                text=self._tables.facts[one.fact_id].fact.text,
                related_text=self._tables.facts[one.related_id].fact.text,
                since=one.since,
                holds=is_active(one.fact_id) and is_active(one.related_id),
            )
            for one in self._tables.rows.relations
            if one.fact_id in fact_ids or one.related_id in fact_ids
        ]

    def _explain(self, tenant: str, fact_id: UUID) -> tuple[explain.Explanation, dict[UUID, str]]:
        row = self._row(tenant, fact_id)
        event = next(one for one in row.commit.events if one.new_fact is not None and one.new_fact.fact_id == fact_id)
        later = [one for one in self._events(fact_id) if one.event_id != event.event_id]
        texts = self._texts(explain.fact_ids_of_explanation(event, later))
        source = self._tables.received.get((row.commit.owner, row.commit.source_id))
        messages = [one.model_dump() for one in source.messages] if isinstance(source, Turn) else None
        links = {one.link.entity_id: one for one in reversed(self._tables.links([fact_id]))}
        entities = [self._linked(one) for one in reversed(links.values())]
        explanation = explain.explanation_of(
            self._shown(row),
            row.commit,
            event,
            messages=messages,
            texts=texts,
            later=later,
            relations=self._relations([fact_id]),
            entities=entities,
        )
        return explanation, texts

    def _linked(self, row: LinkRow) -> explain.LinkedEntity:
        names = {entity_id: one.event.name for entity_id, one in self._tables.entities.items()}
        link = row.link
        return explain.LinkedEntity(
            entity_id=link.entity_id,
            name=names[link.entity_id],
            role=link.role,
            said=link.name,
            step=link.step,
            compared=[names[other] for other in link.compared if other in names],
            reason=link.reason,
        )

    def _texts(self, fact_ids: Iterable[UUID]) -> dict[UUID, str]:
        return {one: self._tables.facts[one].fact.text for one in fact_ids if one in self._tables.facts}

    def _last_commit(
        self, tenant: str, turn_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Commit:
        found = {
            row.commit.owner: row.commit
            for row in self._tables.rows.commits
            if (scope := row.commit.scope) is not None
            and (row.commit.source_id, scope.tenant) == (turn_id, tenant)
            and user_id in (None, scope.user_id)
            and (user_id is not None or agent_id is None or (scope.user_id, scope.agent_id) == (None, agent_id))
        }
        if not found:
            raise UnknownTurnError(tenant, turn_id)
        if len(found) > 1:
            raise AmbiguousTurnError(turn_id, [*found])
        return next(iter(found.values()))

    def _status(
        self,
        tenant: str,
        turn_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        *,
        prices: PriceTable = NO_PRICES,
        verbose: bool = False,
    ) -> Result:
        commit = self._last_commit(tenant, turn_id, user_id, agent_id)
        texts = self._texts(fact_ids_of_commit(commit)) if verbose else None
        return write_result.write_result(commit, texts, prices)

    def _why_not(self, tenant: str, turn_id: str, user_id: str | None = None) -> write_result.WhyNot:
        commit = self._last_commit(tenant, turn_id, user_id)
        turn = self._tables.received.get((commit.owner, turn_id))
        said = [one.content for one in turn.messages if one.role == "user"] if isinstance(turn, Turn) else []
        return write_result.missing_statements(commit, self._texts(fact_ids_of_commit(commit)), said)

    def _first_messages(
        self, tenant: str, turn_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> list[dict[str, Any]] | None:
        commit = self._last_commit(tenant, turn_id, user_id, agent_id)
        turn = self._tables.received.get((commit.owner, turn_id))
        return [one.model_dump() for one in turn.messages] if isinstance(turn, Turn) else None

    def _find_facts(
        self,
        within: ScopeFilter,
        given: Iterable[ids.GivenId],
        *,
        merges: bool = False,  # noqa: ARG002 - there are none
    ) -> list[ids.IdMatch]:
        known = [(one, row.fact.text, row.commit.scope) for one, row in self._tables.facts.items()]
        found = []
        for one in given:
            matches = _matches(within, "fact_id", one, known)
            if not matches:
                elsewhere = [scope for fact_id, _, scope in known if str(fact_id).startswith(str(one))]
                raise UnknownFactError(
                    within.tenant, str(one), within=within.named, scope=elsewhere[0] if elsewhere else None
                )
            found.append(ids.only_match("fact", str(one), matches))
        return found

    def _find_event(self, within: ScopeFilter, given: ids.GivenId) -> ids.IdMatch:
        known = [(row.event.event_id, row.event.event, row.commit.scope) for row in self._tables.rows.events]
        return ids.only_match("event", str(given), _matches(within, "event_id", given, known))

    def _find_turn(self, within: ScopeFilter, given: str) -> ids.IdMatch:
        commits = [row.commit for row in self._tables.rows.commits if _is_in(within, row.commit.scope)]
        exact = [one for one in commits if one.source_id == given]
        matches = {one.source_id: one for one in exact or commits if one.source_id.startswith(given)}
        if not matches:
            raise UnknownTurnError(within.tenant, given)
        if len(matches) > 1:
            raise AmbiguousIdError("turn", given, [(one, "") for one in matches])
        (found,) = matches.values()
        return ids.IdMatch(id=found.source_id, text="", scope=cast("Scope", found.scope))

    def _pending(self, scope: ScopeFilter, at: datetime) -> list[pending.PendingFact]:
        found = []
        for row in self._tables.rows.pending:
            event, fact_id = row.event, row.event.fact.fact_id
            if self._tables.state_of(fact_id).status != "pending_confirmation" or not _is_in(scope, row.commit.scope):
                continue
            challenged = self._tables.challenged(fact_id)
            found.append(
                pending.PendingFact(
                    fact=self._shown(self._tables.facts[fact_id], at),
                    challenged=tuple(self._conflicting(one) for one, is_later in challenged.items() if not is_later),
                    beside=tuple(self._conflicting(one) for one, is_later in challenged.items() if is_later),
                    action=event.action,
                    ended_at=event.ended_at,
                    guard=event.guard,
                    reason=event.decision.reason,
                    verdict=event.decision.verdict,
                    decided_by=event.decision.by,
                    model=event.decision.model,
                    needs_human=event.needs_human,
                    since=row.commit.decided_at,
                    age=at - row.commit.decided_at,
                    event_id=event.event_id,
                )
            )
        return found

    def _unresolved(self, scope: ScopeFilter, at: datetime) -> list[pending.UnresolvedFact]:
        found = []
        for row in self._within(scope):
            fact_id, state = row.fact.fact_id, self._tables.state_of(row.fact.fact_id)
            if not state.unresolved or state.status != "active":
                continue
            asked = next(one for one in reversed(self._tables.events_of(fact_id)) if one.fact_id == fact_id)
            beside = [
                one
                for one in asked.event.decision.shown
                if one in self._tables.facts and self._tables.state_of(one).status in OPEN_STATUSES
            ]
            found.append(
                pending.UnresolvedFact(
                    fact=self._shown(row, at),
                    beside=tuple(map(self._conflicting, beside)),
                    reason=asked.event.decision.reason,
                    model=asked.event.decision.model,
                    since=row.commit.decided_at,
                    age=at - row.commit.decided_at,
                    event_id=asked.event.event_id,
                )
            )
        return found

    def _conflicting(self, fact_id: UUID) -> pending.ConflictingFact:
        row, state = self._tables.facts[fact_id], self._tables.state_of(fact_id)
        return pending.ConflictingFact(
            fact_id=fact_id,
            text=row.fact.text,
            status=state.status,
            confidence=state.confidence,
            authority=row.fact.authority,
            excerpt=row.fact.excerpt,
            source_id=row.commit.source_id,
            true_from=state.true_from,
        )


def _is_in(asked: ScopeFilter, scope: Scope | None) -> bool:
    """Whether a scope is one of those that a query asks about."""
    wanted = asked.parameters.values()
    return scope is not None and all(
        one == ANY_OR_NONE or (bool(has) if one == ANY_VALUE else one == has)
        for one, has in zip(wanted, scope_columns(scope), strict=True)
    )


def _matches(
    within: ScopeFilter, name: str, given: ids.GivenId, known: Iterable[tuple[UUID, str, Scope | None]]
) -> list[ids.IdMatch]:
    """What of `within` has this id, or one that begins so. Raises `QueryError` for what is no id."""
    asked = ids.parsed_id(name, given)
    return [
        ids.IdMatch(id=str(one), text=text, scope=scope)
        for one, text, scope in known
        if scope is not None and asked.low <= one <= asked.high and _is_in(within, scope)
    ]


def _utc_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
