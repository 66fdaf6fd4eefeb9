"""Plays histories of people through the real stages, and compares what readers show of each with the oracle."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any
from uuid import UUID

from mnemolog.projections.queries.entities import called, details, entities, relations, summary_of
from mnemolog.projections.queries.facts import facts
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
)
from mnemolog.schemas.entity_events import EntitySplit, FactLinked, MergeProposed
from mnemolog.schemas.scope import Scope
from tests.properties.harness import Harness
from tests.properties.people import USER, Seen, people_after
from tests.properties.play import Player, check, holding
from tests.properties.steps import Order, Step, Turn
from tests.properties.told_people import drawn_people

IDENTITY = ("merge", "split", "forget", "confirm", "undo")
PROPOSED = "SELECT merged, into_id FROM merge_proposals WHERE is_pending AND user_id = %s AND run_id = ''"
NAMED = """
SELECT l.current_id, l.fact_id FROM fact_entities l JOIN facts f USING (fact_id)
WHERE f.user_id = %s AND f.run_id = '' AND l.role = 'subject'
"""


async def check_people(harness: Harness, random: Random) -> None:
    await check(harness, drawn_people(random), PeoplePlayer)


class PeoplePlayer(Player):
    """Whom a step brought is known by the commit of the step."""

    _who: Mapping[UUID, str]

    async def play(self, step: Step) -> None:
        if isinstance(step, Order) and step.kind == "rename":
            await self._rename_as_another_user(step)
        await super().play(step)

    async def _rename_as_another_user(self, step: Order) -> None:
        name, scope = f"{step.name}-other", Scope(user_id=f"other-{self._owner.number}")
        commit = await self._owner.send_command(name, await self._payload(step), now=step.arrives, scope=scope)
        if commit is not None and commit.outcome == "done":
            self._refused.append(f"{name} of another user was done")

    async def _payload(self, step: Order) -> CommandPayload:  # noqa: PLR0911 -- a command a line
        fact_ids = tuple(self._fact_of(turn) for turn in step.facts)
        match step.kind:
            case "undo" | "promote":
                return await super()._payload(step)
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
        """The fact that a turn told, for the user where it was promoted."""
        events = [event for commit in self._owner.commits for event in commit.events]
        promoted = [one.new_fact for one in events if one.promoted_from and one.promoted_from.source_id == turn]
        own = [getattr(one, "new_fact", None) for one in self._events(turn)]
        told = [fact.fact_id for fact in filter(None, promoted)] or [fact.fact_id for fact in filter(None, own)]
        assert len(told) == 1, f"{turn} tells {len(told)} facts"
        return told[0]

    def _entity(self, who: str) -> UUID:
        for event in self._events(who):
            if isinstance(event, EntitySplit):
                return event.new_id
        fact_id = self._fact_of(who)
        for commit in self._owner.commits:
            for event in commit.entity_events:
                if isinstance(event, FactLinked) and event.fact_id == fact_id:
                    return next(link.entity_id for link in event.links if link.role == "subject")
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
        self._who = {self._entity(one): one for one in people.heads if one != USER}
        async with self._harness.pool.connection() as conn:
            listed = {one.fact_id: one for one in await facts(conn, self._scope, at=self._harness.now) if holding(one)}
            found = await self._seen(conn, listed)
            for who in found.keys() & expected.keys():
                flagged, pairs = found[who].unresolved, expected[who].disputed
                every = {text for pair in pairs for text in pair}
                if flagged <= every and not any(flagged.isdisjoint(pair) for pair in pairs):
                    expected[who].unresolved = flagged
            steps = self._history.steps
            changes = [at for at, one in enumerate(steps) if isinstance(one, Order) and one.kind in IDENTITY]
            if any(isinstance(one, Turn) for one in steps[min(changes, default=0) :]):  # it may have decided a question
                for who in found.keys() & expected.keys():
                    expected[who].unresolved &= found[who].unresolved
            for who in sorted({*found, *expected}):
                if found.get(who) != expected.get(who):
                    yield f"{who} is {found.get(who)} instead of {expected.get(who)}"
            told = sorted(
                one.said.text for episode in people.episodes() if episode.ends is None for one in episode.told
            )
            if (shown := sorted(one.text for one in listed.values())) != told:
                yield f"facts {shown} instead of {told}"
            for one in list(expected.values())[:1]:
                yield await self._detail_fault(conn, one, {who for who, it in expected.items() if one.name in it.names})

    async def _seen(self, conn: Any, listed: Mapping[UUID, Any]) -> dict[str, Seen]:
        """Whom readers show, and what of each."""
        seen: dict[str, Seen] = {}
        for one in await entities(conn, self._scope):
            if not one.is_user:
                summary = await summary_of(conn, one.entity_id)
                shown = (summary.version, summary.changed) if summary else None
                names = {one.name, *one.aliases}
                seen[self._whom(one.entity_id)] = Seen(one.name, names, summary=shown)
        turns = {self._fact_of(one.name): one.name for one in self._history.steps if isinstance(one, Turn)}
        for tie in await relations(conn, self._scope):
            if (who := self._whom(tie.object_id)) in seen and tie.is_active:
                seen[who].ties |= {(tie.predicate, turns[fact]) for fact in tie.evidence}
        for entity, fact_id in await self._harness.rows(NAMED, self._owner.scope.user_id):
            if (who := self._whom(entity)) in seen and fact_id in listed:
                seen[who].texts = sorted([*seen[who].texts, listed[fact_id].text])
                seen[who].unresolved |= {listed[fact_id].text} if listed[fact_id].unresolved else set()
        for pair in await self._harness.rows(PROPOSED, self._owner.scope.user_id):
            merged, into = map(self._whom, pair)
            for mine, theirs in ((merged, into), (into, merged)):
                if mine in seen:
                    seen[mine].pending.add(theirs)
        return seen

    def _whom(self, entity: UUID | None) -> str:
        return self._who.get(entity, str(entity)) if entity else ""

    async def _detail_fault(self, conn: Any, known: Seen, namesakes: set[str]) -> str | None:
        """What the readers of one name, and of one entity, show that is not so."""
        found = await called(conn, self._scope, known.name, known.name.casefold())
        people = {self._whom(one.entity_id): one for one in found if not one.is_user}
        if not namesakes <= people.keys():
            return f"{known.name} is {sorted(people)} instead of {sorted(namesakes)}"
        shown = [await details(conn, one) for who, one in people.items() if who in namesakes]
        texts = [sorted(it.fact.text for it in one.facts if it.role == "subject" and holding(it.fact)) for one in shown]
        values = {value for each in shown for value in each.profile.values.values()}
        told = {value for text in known.texts if (value := text.rstrip(".").split()[-1])}
        if known.texts not in texts or (len(shown) == 1 and not values <= told):
            return f"the details of {known.name} are {texts} with {values} instead of {known.texts}"
        return None
