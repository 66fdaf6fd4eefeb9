"""What the methods of the client ask, answered over the tables in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from mnemolog.projections import context
from mnemolog.projections.errors import (
    AmbiguousIdError,
    AmbiguousTurnError,
    UnknownFactError,
    UnknownTurnError,
    check_limit,
)
from mnemolog.projections.queries import audit, explain, facts, ids, pending, trace, write_result
from mnemolog.projections.queries.results import Fact, FoundFact, Profile, Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ANY_VALUE, ScopeFilter
from mnemolog.projections.search import search
from mnemolog.projections.write.rows import EventRow, LinkRow
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import NO_PRICES, PriceTable
from mnemolog.schemas.facts import OPEN_STATUSES, PROFILE_SECTION_OF
from mnemolog.schemas.filters import EVERYTHING, Filter
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, scope_columns
from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.testing.filters import lets_through
from mnemolog.testing.models import stems
from mnemolog.testing.stores import NotInMemoryError
from mnemolog.testing.tables import Tables, Version, made

T = TypeVar("T")
_MOST_OF_SECTION: Final = 50
_RECENT_CHANGES: Final = 10
_CHANGES: Final = frozenset(
    {
        *("facts_merged", "fact_replaced", "fact_contradicted", "fact_retracted", "fact_expired", "fact_corrected"),
        *("pending_confirmed", "conflict_resolved"),
    }
)
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
            facts.first_moments: self._first_moments,
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

    def _within(self, scope: ScopeFilter) -> list[Version]:
        found = (one for one in self._tables.known(self._tables.facts) if _is_in(scope, one.row.commit.scope))
        return sorted(found, key=lambda one: one.learned)

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
        if after is not None and after not in self._tables.facts:
            raise UnknownFactError(scope.tenant, after)
        of_all = all_versions or wanted.asks_about_state
        found = [
            shown
            for one in self._within(scope)
            if (of_all or (one.is_active and one.holds(at)))
            and (after is None or one.learned > self._tables.version(after).learned)
            and lets_through(wanted, shown := one.shown(at))
        ]
        return found[:limit]

    def _known(self, tenant: str, fact_id: UUID) -> Version:
        for one in self._tables.known([fact_id]):
            if one.scope[0] == tenant:
                return one
        raise UnknownFactError(tenant, fact_id)

    def _fact(self, tenant: str, fact_id: UUID) -> FoundFact:
        current = self._known(tenant, fact_id)
        while not current.is_open and current.superseded_by is not None:
            current = self._tables.version(current.superseded_by)
        former = fact_id if current.fact_id != fact_id else None
        return made(FoundFact, current.shown(self._now()), former_id=former)

    def _first_moments(self, scope: ScopeFilter) -> tuple[datetime, datetime] | None:
        found = self._facts(scope, all_versions=True, at=self._now())
        return (min(one.recorded_at for one in found), min(one.true_from for one in found)) if found else None

    def _facts_as_of(self, scope: ScopeFilter, *, believed_at: datetime, true_at: datetime) -> list[Fact]:
        found = []
        for one in self._within(scope):
            former = [row.state for row in self._tables.former(one.fact_id) if row.until > believed_at]
            states = (Version(one.row, state) for state in (*former, one.state))
            then = next((state for state in states if state.state_since <= believed_at), None)
            if (
                then is not None
                and then.believed_from is not None
                and then.believed_from <= believed_at
                and (then.believed_to is None or then.believed_to > believed_at)
                and then.true_from <= true_at
                and then.holds(true_at)
            ):
                found.append(then.shown(true_at))
        return found

    def _profile(self, scope: ScopeFilter, at: datetime) -> Profile:
        facts.check_exact(scope)
        exact = Scope(**{name: getattr(scope, name) for name in SCOPE_FIELDS})
        if self._tables.policies_of(exact).overlay(EffectivePolicy()).publish_profile != "at_once":
            raise NotInMemoryError("a profile that is published later")
        sections: dict[str, list[dict[str, Any]]] = {}
        for one in self._surest(scope):
            entry = {
                **{name: getattr(one, name) for name in ("key", "value", "text", "category", "confidence")},
                "at": _utc_text(one.true_from),
                "valid_until": one.end and _utc_text(one.end),
                "fact_id": str(one.fact_id),
                "unresolved": one.unresolved,
                "disputed": one.disputed,
            }
            of_section = sections.setdefault(PROFILE_SECTION_OF.get(one.category, "other"), [])
            if len(of_section) < _MOST_OF_SECTION:
                of_section.append(entry | _source(one))
        changed = [row.commit.decided_at for row in self._tables.rows.events if _is_in(scope, row.commit.scope)]
        known = replace(Profile(), **cast("Any", sections), recent_changes=self._recent(scope))
        return facts.with_upcoming(replace(known, updated_at=max(changed, default=None)), at)

    def _surest(self, scope: ScopeFilter) -> list[Version]:
        """The active facts of a scope, the surest first."""
        active = (one for one in self._within(scope) if one.is_active)
        return sorted(active, key=lambda one: (-one.confidence, -one.true_from.timestamp(), one.learned))

    def _recent(self, scope: ScopeFilter) -> list[dict[str, Any]]:
        """The last changes, the newest first: events in effect that ended facts."""
        tables, found = self._tables, []
        for row in reversed(tables.rows.events):
            event = row.event
            if event.event not in _CHANGES or row.fact_id not in tables.facts or not _is_in(scope, row.commit.scope):
                continue
            about = tables.version(row.fact_id)
            ended = [
                one.fact_id
                for one in tables.rows.former_states
                if one.event_id == event.event_id
                and one.fact_id in (row.fact_id, *row.targets)
                and (one.fact_id != row.fact_id or event.event in ("fact_retracted", "fact_expired"))
            ]
            is_denied = any(part.status == "archived" for part in tables.known(tables.merged_into(about.fact_id)))
            if ended and not (is_denied or tables.is_undone(event.event_id) or tables.is_taken_back(about.fact_id)):
                change = {
                    "event": event.event,
                    "text": about.text,
                    "fact_id": str(about.fact_id),
                    "at": _utc_text(row.commit.decided_at),
                    "old": [
                        {"text": old.text, "fact_id": str(old.fact_id)}
                        for old in tables.known(ended)
                        if not tables.is_taken_back(old.fact_id)
                    ],
                }
                found.append(change | _source(about))
        return found[:_RECENT_CHANGES]

    def _lasting_facts(self, scopes: Sequence[ScopeFilter], at: datetime) -> list[Fact]:
        for scope in scopes:
            facts.check_exact(scope)
        return [
            one.shown(at)
            for scope in scopes
            for one in self._surest(scope)
            if not context.SECTION_OF_CATEGORY.keys().isdisjoint(one.categories)
            and one.action_hint != "retract"
            and one.holds(at)
            and not (one.category == "health" and one.event_time and one.importance_category in context.EVENT_KINDS)
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
        if options.travels or options.only_period or options.explain:
            raise NotInMemoryError("a search with times or explain")
        asked = {word for word in stems(search.storable_question(text)) if word not in _STOP_WORDS}
        states, threshold = options.state or tuple(OPEN_STATUSES), options.threshold or 0.0
        hits, below = [], 0
        for one in (one for each in search.checked_scopes(scope) for one in self._within(each)):
            shown = one.shown(at)
            if shown.status not in states or not lets_through(options.filters, shown):
                continue
            words = {*stems(" ".join((one.text, one.search_text, one.key or "", one.value or "")))}
            share = len(asked & words) / len(asked) if asked else 0.0
            is_comparable = vector is not None and vector.model == one.vector.model
            cosine = cosine_similarity(vector.values, one.vector.values) if vector and is_comparable else None
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
        found = [one for one in self._within(wider) if one.is_open and one.holds(at)]
        within = [one for one in found if _is_in(scope, one.row.commit.scope)]
        beside = [one.row.commit.scope for one in found if one not in within]
        return search.ScopeCount(
            within=len(within),
            beside=len(beside),
            ids=tuple(name for name in left_out if any(getattr(one, name, None) for one in beside)),
            models=tuple(sorted({one.vector.model for one in within})),
        )

    def _history(self, tenant: str, fact_id: UUID) -> explain.History:
        versions = [self._known(tenant, fact_id).fact_id]
        for one in self._tables.known(versions):
            linked = (*one.row.supersedes, *((one.superseded_by,) if one.superseded_by else ()))
            linked += tuple(older.fact_id for older in self._tables.superseded_by(one.fact_id))
            versions += [other for other in dict.fromkeys(linked) if other not in versions]
        in_order = sorted(self._tables.known(versions), key=lambda one: one.learned)
        return explain.History(
            versions=[one.shown(self._now()) for one in in_order],
            events=[self._event(row) for row in self._tables.events_of(*versions)],
            relations=self._relations(versions),
        )

    def _event(self, row: EventRow) -> explain.FactEvent:
        event, decision = row.event, row.event.decision
        origin = event.promoted_from
        return made(
            explain.FactEvent,
            *(decision, event, row, row.commit),
            fact_id=row.fact_id,
            targets=list(row.targets),
            occurred_at=origin.said_at if origin else row.commit.occurred_at,
            decided_by=decision.by,
            undone=self._tables.is_undone(event.event_id),
            candidates=[one.model_dump(mode="json") for one in decision.candidates],
            moved_ends=[one.model_dump(mode="json") for one in event.moved_ends],
            promoted_from=origin.fact_id if origin else None,
        )

    def _relations(self, fact_ids: Sequence[UUID]) -> list[explain.FactRelation]:
        found = []
        for row in self._tables.rows.relations:
            one, other = self._tables.version(row.fact_id), self._tables.version(row.related_id)
            if {one.fact_id, other.fact_id} & {*fact_ids}:
                holds = one.is_active and other.is_active
                texts = {"text": one.text, "related_text": other.text}
                found.append(made(explain.FactRelation, row, holds=holds, **texts))
        return found

    def _explain(self, tenant: str, fact_id: UUID) -> tuple[explain.Explanation, dict[UUID, str]]:
        known = self._known(tenant, fact_id)
        commit = known.row.commit
        event = next(one for one in commit.events if one.new_fact is not None and one.new_fact.fact_id == fact_id)
        events = map(self._event, self._tables.events_of(fact_id))
        later = [one for one in events if one.event_id != event.event_id]
        texts = self._texts(explain.fact_ids_of_explanation(event, later))
        source = self._tables.received.get((commit.owner, commit.source_id))
        links: dict[UUID, LinkRow] = {}
        for row in self._tables.links([fact_id]):
            links.setdefault(row.link.entity_id, row)
        explanation = explain.explanation_of(
            known.shown(self._now()),
            commit,
            event,
            messages=[one.model_dump() for one in source.messages] if isinstance(source, Turn) else None,
            texts=texts,
            later=later,
            relations=self._relations([fact_id]),
            entities=[self._linked(row) for one, row in links.items() if one in self._names()],
        )
        return explanation, texts

    def _linked(self, row: LinkRow) -> explain.LinkedEntity:
        names = self._names()
        compared = [names[other].name for other in row.link.compared if other in names]
        name = names[row.link.entity_id].name
        return made(explain.LinkedEntity, row.link, name=name, said=row.link.name, compared=compared)

    def _names(self) -> dict[UUID, trace.CalledEntity]:
        """What entities are called: those that a fact names which nobody has taken back."""
        links = self._tables.links(self._tables.facts)
        shown = {one.link.entity_id for one in links if not self._tables.is_taken_back(one.fact_id)}
        entities = self._tables.entities.items()
        return {one: trace.CalledEntity(row.event.name, row.commit.decided_at) for one, row in entities if one in shown}

    def _texts(self, fact_ids: Iterable[UUID]) -> dict[UUID, str]:
        return {one.fact_id: one.text for one in self._tables.known(fact_ids)}

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

    def _status(self, *whose: Any, prices: PriceTable = NO_PRICES, verbose: bool = False) -> Result:
        commit = self._last_commit(*whose)
        texts = self._texts(trace.fact_ids_of_commit(commit)) if verbose else None
        return write_result.write_result(commit, texts, prices, self._names())

    def _why_not(self, *whose: Any) -> write_result.WhyNot:
        commit = self._last_commit(*whose)
        said = [one["content"] for one in self._first_messages(*whose) or () if one["role"] == "user"]
        found = write_result.missing_statements(commit, self._texts(trace.fact_ids_of_commit(commit)), said)
        return replace(found, names=trace.traced_names(commit, self._names()))

    def _first_messages(self, *whose: Any) -> list[dict[str, Any]] | None:
        commit = self._last_commit(*whose)
        turn = self._tables.received.get((commit.owner, commit.source_id))
        return [one.model_dump() for one in turn.messages] if isinstance(turn, Turn) else None

    def _find_facts(
        self,
        within: ScopeFilter,
        given: Iterable[ids.GivenId],
        *,
        merges: bool = False,  # noqa: ARG002 - there are none
    ) -> list[ids.IdMatch]:
        known = [(one.fact_id, one.text, one.row.commit.scope) for one in self._tables.known(self._tables.facts)]
        found = []
        for one in given:
            matches = _matches(within, "fact_id", one, known)
            if not matches:
                elsewhere = (scope for fact_id, _, scope in known if str(fact_id).startswith(str(one)))
                raise UnknownFactError(within.tenant, str(one), within=within.named, scope=next(elsewhere, None))
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
        return ids.IdMatch(id=found.source_id, text=found.source_kind, scope=cast("Scope", found.scope))

    def _pending(self, scope: ScopeFilter, at: datetime) -> list[pending.PendingFact]:
        found = []
        for row in (row for row in self._tables.open_cases() if _is_in(scope, row.commit.scope)):
            event, fact_id = row.event, row.event.fact.fact_id
            challenged = self._tables.challenged(fact_id)
            waiting = self._undecided(
                *(pending.PendingFact, self._tables.version(fact_id), event, at),
                challenged=self._conflicting(one for one, is_later in challenged.items() if not is_later),
                beside=self._conflicting(one for one, is_later in challenged.items() if is_later),
                guard=event.guard,
                decided_by=event.decision.by,
            )
            found.append(waiting)
        return found

    def _unresolved(self, scope: ScopeFilter, at: datetime) -> list[pending.UnresolvedFact]:
        found = []
        for one in (one for one in self._within(scope) if one.unresolved and one.is_active):
            events = (row.event for row in reversed(self._tables.events_of(one.fact_id)) if row.fact_id == one.fact_id)
            asked = next(events)
            beside = (other.fact_id for other in self._tables.known(asked.decision.shown) if other.is_open)
            found.append(self._undecided(pending.UnresolvedFact, one, asked, at, beside=self._conflicting(beside)))
        return found

    def _undecided(self, kind: type[T], one: Version, asked: Any, at: datetime, **given: Any) -> T:
        """A fact that an event holds back or puts beside others, and since when it waits."""
        since = one.row.commit.decided_at
        return made(kind, asked.decision, asked, fact=one.shown(at), since=since, age=at - since, **given)

    def _conflicting(self, fact_ids: Iterable[UUID]) -> tuple[pending.ConflictingFact, ...]:
        known = self._tables.known(fact_ids)
        return tuple(made(pending.ConflictingFact, one, source_id=one.row.commit.source_id) for one in known)


def _source(one: Version) -> dict[str, Any]:
    return {"source_id": one.row.commit.source_id, "excerpt": one.excerpt}


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
