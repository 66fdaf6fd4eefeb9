"""The methods of the client that read: facts, profile, counts, decisions and entities."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from typing import IO, Any, Unpack
from uuid import UUID

from mnemolog.client.base import ClientBase, FactIdReader, checked, checked_time, wide_filter
from mnemolog.client.inputs import (
    WHOLE_TENANT,
    AskedName,
    FactId,
    ScopeArgs,
    When,
    check_file,
    path_of,
    read_question,
    whole_id,
)
from mnemolog.client.metrics import measured
from mnemolog.client.search_arguments import scope_and_filter, scope_filter
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries import diff, entity_graph, explain, facts, pending
from mnemolog.projections.queries import entities as lists
from mnemolog.projections.queries import entities as relations
from mnemolog.projections.queries import explain as histories
from mnemolog.projections.queries import write_result as why_nots
from mnemolog.projections.queries.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.entities import NOW, AskedTimes, Entity, EntityDetails, EntityRelation, of_one_name
from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.facts import IdCount, count_facts, exported_lines, named_ids, published_profile
from mnemolog.projections.queries.ids import short_ids
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.schemas.filters import Filter
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.names import name_key
from mnemolog.texts import explanation_sentences, missing_sentence


@measured
@checked(QueryError)
class FactQueryMixin(FactIdReader):
    """Facts as they are, and as they were. No method needs Kafka."""

    async def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Fact:
        """One fact, whatever its status. `fact_id` may be the beginning of the id, if only one fact has it.

        Raises `UnknownFactError`, also for a fact that is not of the ids that are named, and `AmbiguousIdError`.
        """
        return await self._query(facts.fact, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def facts(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after: FactId | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions.

        `filters` narrows them further, for example `{"OR": [{"categories": "health"}, {"importance": {"gte": 0.8}}]}`;
        one that asks about `state` looks among all versions. Where no id is named beside it, it says whose facts:
        `{"user_id": "alice"}` are those without any other id, `{"OR": [{"user_id": "alice"}]}` those with any.

        All of them are returned, however many there are, or `limit` of them, from the first or from the one that
        follows the fact `after`: the id of a page's last fact gives the next page, and every fact is in one page,
        whatever is stored meanwhile.
        """
        within, wanted = scope_and_filter(scope, filters)
        last = None if after is None else await self._fact_id(after, scope)
        return await self._query(
            facts.facts, within, wanted, all_versions=all_versions, at=self._now(), limit=limit, after=last
        )

    async def get_all(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after: FactId | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The same as `facts`, under its name in other memory layers."""
        return await self.facts(all_versions=all_versions, filters=filters, limit=limit, after=after, **scope)

    async def facts_as_of(
        self, believed_at: When, true_at: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[Fact]:
        """What was known at `believed_at` to be true at `true_at` (the same unless given), each fact as it was then."""
        return await self._query(
            facts.facts_as_of,
            scope_filter(scope),
            believed_at=checked_time(believed_at),
            true_at=checked_time(true_at or believed_at),
        )

    async def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is.

        It is the present one, or, where a policy says so, the one that was published last (`published_at`).
        """
        return await self._query(published_profile, scope_filter(scope), self._now())


@measured
@checked(QueryError)
class CountQueryMixin(FactIdReader):
    """How many facts there are, and of whom. No method needs Kafka."""

    async def count(
        self, *, all_versions: bool = False, filters: Mapping[str, Any] | None = None, **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""
        within, wanted = scope_and_filter(scope, filters)
        return await self._query(count_facts, within, wanted, all_versions=all_versions, at=self._now())

    async def export(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> int:
        """Write what `facts` of the same arguments lists into a file: a line of JSON for each, as `to_dict` has it.

        Returns how many there are. They are read in batches, all as of one moment. A file that is named is there once
        it is whole; until then its name ends in `.part`. Raises `QueryError` where it cannot be written.
        """
        within, wanted = scope_and_filter(scope, filters)
        if not isinstance(file, str | PathLike):
            check_file(file, "write", QueryError)
            return await self._export(file, within, wanted, all_versions=all_versions)
        whole = path_of(file, QueryError)
        part = whole.with_name(f"{whole.name}.part")
        try:
            with part.open("wb") as stream:
                written = await self._export(stream, within, wanted, all_versions=all_versions)
            part.replace(whole)
        except OSError as error:
            raise QueryError(f"{whole} cannot be written ({error.strerror}): name a file that can be") from error
        return written

    async def _export(self, stream: IO[bytes], within: ScopeFilter, wanted: Filter, *, all_versions: bool) -> int:
        written = 0
        async with self._connections.read_pool().connection() as connection:
            found = exported_lines(connection, within, wanted, all_versions=all_versions, at=self._now())
            async with aclosing(found):
                async for lines in found:
                    await asyncio.to_thread(stream.write, b"".join(lines))
                    written += len(lines)
        return written

    async def users(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The users of the tenant of whom something is known, each with the number of active and pending facts.

        In order of their ids: all, or `limit` of them, from the first or from the one that follows the id `after`. An
        id that is not given is "**" here: with `agent_id="bot"` they are the users of this agent.
        """
        return await self._query(named_ids, "user_id", wide_filter(scope), limit=limit, after=after)

    async def agents(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The agents, as `users` lists users."""
        return await self._query(named_ids, "agent_id", wide_filter(scope), limit=limit, after=after)

    async def runs(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The runs, as `users` lists users: with `user_id="alice"` those of Alice."""
        return await self._query(named_ids, "run_id", wide_filter(scope), limit=limit, after=after)


@measured
@checked(QueryError)
class DecisionQueryMixin(FactIdReader):
    """Decisions and their figures. No method needs Kafka."""

    async def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> History:
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""
        return await self._query(histories.history, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """
        known = await self._fact_id(fact_id, scope)
        explanation, texts = await self._query(explain.explain, scope.get("tenant") or "", known)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        found = await self._query(why_nots.why_not, tenant or "", turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    async def pending(self, **scope: Unpack[ScopeArgs]) -> list[PendingFact | PendingMerge]:
        """Changes of facts that wait for a confirmation, with the guard that holds them, then merges; the oldest first.

        A merge is of two entities that a rule takes for one.
        """
        return await self._query(pending.pending_changes, scope_filter(scope), self._now())

    async def unresolved(self, **scope: Unpack[ScopeArgs]) -> list[UnresolvedFact]:
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""
        return await self._query(pending.unresolved, scope_filter(scope), self._now())

    async def diff(
        self, since: When, until: When | None = None, *, axis: Axis = "believed", **scope: Unpack[ScopeArgs]
    ) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """
        return await self._query(
            diff.diff, scope_filter(scope), checked_time(since), checked_time(until or self._now()), axis=axis
        )

    async def quality(
        self, since: When | None = None, until: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, what is pending, and what models cost.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """
        end = checked_time(until or self._now())
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(
            decision_quality,
            scope_filter(wide),
            checked_time(since or end - timedelta(days=30)),
            end,
            prices=self._prices,
        )

    async def failed_turns(self, *, limit: int = 100, **scope: Unpack[ScopeArgs]) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here."""
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(failed_turns, scope_filter(wide), limit=limit)

    async def received_turn(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""
        return await self._query(received_turn, tenant or "", turn_id, user_id)

    async def short_ids(self, whole_ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""
        given: object = whole_ids
        if not (isinstance(given, Collection) and all(isinstance(one, UUID) for one in given)):
            raise QueryError("whole_ids must be a list of UUIDs: those of the facts or events to be shown")
        return await self._query(short_ids, whole_ids)


class EntityLookup(ClientBase):
    """Finds entities within a scope, which may be a wide one: then each scope has its own "my wife"."""

    async def _one_entity(self, given: str, within: ScopeFilter, as_of: AskedTimes = NOW) -> Entity:
        """The entity that is meant. Raises `UnknownEntityError`, and `AmbiguousIdError` where several are."""
        called = await self._called(given, within)
        asked = read_question(given)
        tied = [] if asked is None or asked.tie is None else await self._meant(asked, within, as_of)
        return of_one_name(given, _of_each_scope(tied, called))

    async def _meant(self, asked: AskedName, within: ScopeFilter, as_of: AskedTimes = NOW) -> list[Entity]:
        """Those who have a name, or who are now what is asked for to those who are meant by the owner."""
        if asked.tie is None:
            return await self._called(asked.name, within)
        if asked.owner is None:
            owners = await self._query(entity_graph.user_entities, within)
        else:
            owners = await self._meant(asked.owner, within, as_of)
        ids = [one.entity_id for one in owners]
        return await self._query(entity_graph.related, within, ids, asked.tie, as_of=as_of)

    async def _called(self, name: str, within: ScopeFilter) -> list[Entity]:
        return await self._query(lists.called, within, name, name_key(name))


def _of_each_scope(tied: list[Entity], called: list[Entity]) -> list[Entity]:
    """In each scope those who are what is asked for, of several those who are called so; else all who are called so.

    Somebody else's "my boss" is called so, too, and so may be a former one.
    """
    called_so = {one.entity_id for one in called}
    both = [one for one in tied if one.entity_id in called_so]
    named = {one.scope_ids for one in both}
    answered = {one.scope_ids for one in tied}
    others = [one for one in tied if one.scope_ids not in named]
    return [*both, *others, *(one for one in called if one.scope_ids not in answered)]


@measured
@checked(QueryError)
class EntityQueryMixin(EntityLookup):
    """People, places and things that facts name. No method needs Kafka."""

    async def entities(
        self,
        *,
        type: str | None = None,  # noqa: A002 -- as an entity has it
        limit: int | None = None,
        after: UUID | str | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Entity]:
        """The entities that facts of a scope name, in the order in which they were named first. The user is one.

        All of them, those of one `type` ("person", "place"), or `limit` of them, from the first or from the one that
        follows the entity `after`, a whole id.
        """
        following = None if after is None else whole_id(after)
        if following is None and after is not None:
            raise QueryError(f"after {after!r:.80} is a part of an id: give the whole `entity_id` of the last one")
        return await self._query(lists.entities, scope_filter(scope), kind=type, limit=limit, after=following)

    async def entity(
        self,
        name: str,
        *,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> EntityDetails:
        """One entity: its names, the current facts that name it with its role in each, and its possible twins.

        With its relations, its profile (what holds of it now) and its timeline.

        `name` is one of its names, as it was said ("Ana"), the beginning of its id, or what it is to somebody, as `who`
        takes it ("my wife"): who is that now, else who was called so. Raises `UnknownEntityError`, and
        `AmbiguousIdError` where several are meant.

        With `believed_at` and `true_at` as `relations` takes them, what was known then: the facts of `facts_as_of` that
        name it, its relations and profile of then, what happened to it up to then; and no summary.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = await self._one_entity(str(name), within, as_of)
        return await self._query(lists.details, one, all_versions=all_versions, as_of=as_of)

    async def relations(
        self,
        entity: str | None = None,
        *,
        predicate: str | None = None,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[EntityRelation]:
        """What the entities of a scope are to each other now, or ever were, as it was stated; the oldest first.

        With `entity`, a name or id as `entity` takes it, all relations read from that one, also those that were stated
        of others. `predicate` is a word for one: "spouse", "wife", "works at". Raises as `entity` does.

        `believed_at` asks for what was known then, `true_at` for what held then: now, and the same as `believed_at`,
        unless given. Entities are those of now, after all merges and splits; what was taken back since is left out.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = None if entity is None else await self._one_entity(entity, within, as_of)
        return await self._query(
            relations.relations,
            within if one is None else ScopeFilter.of_scope(one.scope),
            subject_ids=None if one is None else [one.entity_id],
            predicate=predicate,
            all_versions=all_versions,
            mirrors=entity is not None,
            as_of=as_of,
        )

    async def neighbours(
        self,
        entity: str,
        *,
        hops: int = 1,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Neighbour]:
        """The entities that hold to be related to one, or at 2 `hops` also to those, each once with the path to it.

        The times are those of `relations`. Raises as `entity` does, and `QueryError` for other hops.
        """
        within, as_of = scope_filter(scope), _as_of(believed_at, true_at)
        one = await self._one_entity(entity, within, as_of)
        return await self._query(entity_graph.neighbours, one, hops=hops, as_of=as_of)

    async def who(
        self,
        name: str,
        *,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Entity]:
        """Who or what somebody means: "my wife", "Tom's boss", "my wife's dog", "my employer", or a name.

        "My" is the user's; "wife" alone is, too, where nobody has that name. What somebody is to another one follows
        from relations that hold now, or at the times that `relations` takes; an empty list where nobody is that.
        """
        asked, within, as_of = read_question(str(name)), scope_filter(scope), _as_of(believed_at, true_at)
        if asked is None:
            return []
        found = await self._meant(asked, within, as_of)
        of_user = read_question(f"my {name}") if not found and asked.tie is None else None
        return found if of_user is None else await self._meant(of_user, within, as_of)

    async def graph(
        self,
        *,
        all_versions: bool = False,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> EntityGraph:
        """The related entities of a scope with their relations, at the times that `relations` takes.

        Its `mermaid` is a diagram.
        """
        as_of = _as_of(believed_at, true_at)
        return await self._query(entity_graph.graph, scope_filter(scope), all_versions=all_versions, as_of=as_of)


def _as_of(believed_at: When | None, true_at: When | None) -> AskedTimes:
    times = [None if one is None else checked_time(one) for one in (believed_at, true_at)]
    return AskedTimes(believed_at=times[0], true_at=times[1])
