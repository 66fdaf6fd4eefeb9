"""Plays histories of people through the real stages, and compares what readers show of each with the oracle."""

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

from mnemolog.projections.queries.entities import called, details, entities, relations, summary_of
from mnemolog.projections.queries.facts import facts
from mnemolog.schemas.base import normalise
from mnemolog.schemas.command import (
    AliasEntity,
    CommandPayload,
    Confirm,
    Delete,
    ForgetEntity,
    MergeEntities,
    Reject,
    RenameEntity,
    SplitEntity,
    SummariseEntity,
    Undo,
)
from mnemolog.schemas.entity_events import EntityRegistered, EntitySplit, MergeProposed
from tests.properties.harness import Harness
from tests.properties.people import USER, Seen, people_after
from tests.properties.play import Player, check, holding
from tests.properties.steps import Order, Turn
from tests.properties.told_people import drawn_people

NAMED = """
SELECT l.current_id, l.role, f.text, f.status, f.unresolved
FROM fact_entities l JOIN facts f USING (fact_id) WHERE f.user_id = %s AND l.current_id IS NOT NULL
"""


async def check_people(harness: Harness, random: Random) -> None:
    await check(harness, drawn_people(random), PeoplePlayer)


class PeoplePlayer(Player):
    """Whom a step brought is known by the commit of the step."""

    async def _payload(self, step: Order) -> CommandPayload:  # noqa: PLR0911 -- a command a line
        fact_ids = tuple(self._fact_of(turn) for turn in step.facts)
        match step.kind:
            case "undo":
                return Undo(source_id=step.of)
            case "delete":
                return Delete(fact_ids=fact_ids)
            case "confirm" | "reject":
                proposal = (self._proposal(step.of),)
                return Confirm(fact_ids=proposal) if step.kind == "confirm" else Reject(fact_ids=proposal)
            case "rename":
                return RenameEntity(entity_id=self._entity(step.who), name=step.called)
            case "call":
                loser = self._entity(step.other) if step.other else None
                return AliasEntity(entity_id=self._entity(step.who), name=step.called, moved_from=loser)
            case "merge":
                return MergeEntities(entity_ids=(self._entity(step.who),), into=self._entity(step.other))
            case "split":
                who = self._entity(step.who)
                return SplitEntity(entity_id=who, name=step.called, fact_ids=fact_ids, names=step.names)
            case "forget":
                return ForgetEntity(entity_id=self._entity(step.who), facts=bool(step.facts))
            case _:
                return SummariseEntity(entity_id=self._entity(step.who))

    def _events(self, source: str) -> Iterator[Any]:
        for commit in self._owner.commits:
            if commit.source_id == source:
                yield from (*commit.events, *commit.entity_events)

    def _fact_of(self, turn: str) -> UUID:
        return next(event.new_fact.fact_id for event in self._events(turn) if getattr(event, "new_fact", None))

    def _entity(self, who: str) -> UUID:
        for event in self._events(who):
            if isinstance(event, EntityRegistered) and event.aliases[0].kind != "user":
                return event.entity_id
            if isinstance(event, EntitySplit):
                return event.new_id
        raise AssertionError(self._told(f"{who} has brought nobody"))

    def _proposal(self, turn: str | None) -> UUID:
        found = [event.event_id for event in self._events(turn or "") if isinstance(event, MergeProposed)]
        assert found, self._told(f"{turn} proposes nothing")
        return found[0]

    async def faults(self) -> Any:
        for refused in self._refused:
            yield refused
        people = people_after(self._history.steps)
        expected = people.seen()
        unclear = {self._entity(one) for one in people.unclear()}
        seen, open_texts = await self._read(set(expected))
        symbols = {self._entity(one): one for one in people.heads if one != USER}
        found = {symbols.get(entity, str(entity)): one for entity, one in seen.items() if entity not in unclear}
        for one in found.values():
            one.pending = {symbols[UUID(other)] for other in one.pending}
        if isinstance(self._history.steps[-1], Turn):  # it may have brought a decision on what was a question
            for who in found.keys() & expected.keys():
                expected[who].unresolved &= found[who].unresolved
        for who in sorted({*found, *expected}):
            if found.get(who) != expected.get(who):
                yield f"{who} is {found.get(who)} instead of {expected.get(who)}"
        told = sorted(
            one.said.text for episode in people.episodes() if episode.ends is None for one in episode.told
        )
        if open_texts != told:
            yield f"facts {open_texts} instead of {told}"

    async def _read(self, expected: set[str]) -> tuple[dict[UUID, Seen], list[str]]:
        seen: dict[UUID, Seen] = {}
        has_summaries = any(isinstance(one, Order) and one.kind == "summarise" for one in self._history.steps)
        user = self._owner.scope.user_id
        async with self._harness.pool.connection() as conn:
            for one in await entities(conn, self._scope):
                if not one.is_user:
                    summary = await summary_of(conn, one.entity_id) if has_summaries else None
                    shown = (summary.version, summary.changed) if summary else None
                    seen[one.entity_id] = Seen(one.name, {one.name, *one.aliases}, summary=shown)
            for tie in await relations(conn, self._scope):
                turns = {turn.name for turn in self._history.steps if isinstance(turn, Turn)}
                facts_of = {self._fact_of(turn): turn for turn in turns}
                if tie.object_id in seen and tie.is_active:
                    seen[tie.object_id].ties |= {(tie.predicate, facts_of[fact]) for fact in tie.evidence}
            listed = await facts(conn, self._scope, at=self._harness.now)
        open_texts = sorted(one.text for one in listed if holding(one))
        ids = {one.text for one in listed if holding(one)}
        for entity, role, text, status, unresolved in await self._harness.rows(NAMED, user):
            if entity in seen and role == "subject" and status == "active" and text in ids:
                seen[entity].texts.append(text)
                if unresolved:
                    seen[entity].unresolved.add(text)
        for one in seen.values():
            one.texts.sort()
        pending = "SELECT merged, into_id FROM merge_proposals WHERE is_pending AND user_id = %s"
        for merged, into in await self._harness.rows(pending, user):
            for mine, theirs in ((merged, into), (into, merged)):
                if mine in seen:
                    seen[mine].pending.add(str(theirs))
        return seen, open_texts
