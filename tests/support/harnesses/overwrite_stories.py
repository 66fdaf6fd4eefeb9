"""Everything that can end a fact, lived through by real decisions and commands: one person for each story."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.command import (
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    Expire,
    Reject,
    Resolve,
    Undo,
    Update,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact

OLD, NEW = "Mira works at Acme.", "Mira works at Globex."
NO_DECISION = "Let me think about it."


class Storyteller:
    """Turns and commands of one person, an hour apart; `model` decides on the turns."""

    def __init__(self, resolver: ResolverHarness, name: str, start: datetime, model: str = "reader-1") -> None:
        self.scope = Scope(user_id=name)
        self.start = start
        self._resolver = resolver
        self._commands = CommandHarness(resolver.stored)
        self._steps = self._sources = 0
        self._model = model

    async def say(self, statement: str, action: str | None = None, *known: int, **fields: Any) -> Commit:
        """State a fact; `action` and `known` are the model's decision, with `ended_at` and the merged `text`."""
        at, decisions = fields.pop("at", None), fields.pop("decisions", None)
        chat = self._resolver.chat_model
        chat.model = self._model
        more = {name: fields.pop(name) for name in ("ended_at", "text") if name in fields}
        if decisions is None and action is not None:
            decisions = [decision_json(1, action, *(known or (1,)), **more)]
        chat.set_replies(decisions or NO_DECISION)
        return await self._resolver.resolve_turn(
            extracted_fact(statement, **fields), at=at or self._next(), source_id=self._source(), scope=self.scope
        )

    async def command(self, order: CommandPayload, **fields: Any) -> Commit:
        commit = await self._commands.execute(self._source(), order, at=self._next(), scope=self.scope, **fields)
        assert commit.outcome == "done", commit.detail
        return commit

    async def overwrite(self, action: str = "REPLACE", **fields: Any) -> Commit:
        """A known fact, and a statement that ends it."""
        await self.say(OLD)
        return await self.say(NEW, action, **fields)

    async def hold(self) -> Commit:
        """A contradiction that is held back, because the known fact is surer."""
        commit = await self.overwrite("CONTRADICT", certainty="strong")
        assert commit.events[0].event == "fact_pending"
        return commit

    async def leave_unresolved(self) -> Commit:
        await self.say(OLD)
        return await self.say(NEW)

    def _next(self) -> datetime:
        self._steps += 1
        return self.start + timedelta(hours=self._steps)

    def _source(self) -> str:
        self._sources += 1
        return f"{self.scope.user_id}-{self._sources}"


def fact_of(commit: Commit) -> UUID:
    fact = commit.events[0].new_fact
    assert fact is not None
    return fact.fact_id


def target_of(commit: Commit) -> UUID:
    return commit.events[0].affected_ids[0]


Story = Callable[[Storyteller], Awaitable[object]]


async def model_overwrites(one: Storyteller) -> None:
    found = [
        await one.overwrite(),
        await one.say("Mira works in sales.", "MERGE", text="Mira works at Globex, in sales."),
        await one.say("Mira has left.", "RETRACT", action_hint="retract"),
    ]
    assert [commit.events[0].event for commit in found] == ["fact_replaced", "facts_merged", "fact_retracted"]


async def contradicted(one: Storyteller) -> None:
    assert (await one.overwrite("CONTRADICT")).events[0].event == "fact_contradicted"


async def announced_and_timed(one: Storyteller) -> None:
    await one.say(OLD)
    announced = await one.say(NEW, "EXPIRE", ended_at=one.start + timedelta(days=3), action_hint="retract")
    one.start += timedelta(days=5)
    await one.command(Expire(fact_ids=(target_of(announced),)))


async def timer_alone(one: Storyteller) -> None:
    stated = await one.say(OLD, valid_until=one.start + timedelta(days=3))
    one.start += timedelta(days=5)
    await one.command(Expire(fact_ids=(fact_of(stated),)))


async def held_confirmed_by_repetition(one: Storyteller) -> None:
    await one.hold()
    assert (await one.say(NEW)).events[0].event == "pending_confirmed"


async def held_confirmed_by_human(one: Storyteller) -> None:
    await one.command(Confirm(fact_ids=(fact_of(await one.hold()),)))


async def confirmation_undone(one: Storyteller) -> None:
    confirmed = await one.command(Confirm(fact_ids=(fact_of(await one.hold()),)))
    undone = await one.command(Undo(event_id=confirmed.events[0].event_id))
    again = await one.command(Undo(event_id=undone.events[0].event_id))
    await one.command(Undo(event_id=again.events[0].event_id))


async def confirmation_undone_and_repeated(one: Storyteller) -> None:
    held = await one.hold()
    confirmed = await one.command(Confirm(fact_ids=(fact_of(held),)))
    await one.command(Undo(event_id=confirmed.events[0].event_id))
    await one.command(Confirm(fact_ids=(fact_of(held),)))


async def held_rejected_by_repetition(one: Storyteller) -> None:
    await one.hold()
    assert (await one.say(OLD)).events[0].event == "pending_rejected"


async def held_rejected_by_human(one: Storyteller) -> None:
    await one.command(Reject(fact_ids=(fact_of(await one.hold()),)))


async def rejection_undone(one: Storyteller) -> None:
    rejected = await one.command(Reject(fact_ids=(fact_of(await one.hold()),)))
    await one.command(Undo(event_id=rejected.events[0].event_id))


async def held_deleted(one: Storyteller) -> None:
    await one.command(Delete(fact_ids=(fact_of(await one.hold()),)))


async def held_and_undone(one: Storyteller) -> None:
    held = await one.hold()
    await one.command(Undo(event_id=held.events[0].event_id))


async def held(one: Storyteller) -> None:
    await one.hold()


async def application(one: Storyteller) -> None:
    stated = await one.say(OLD)
    updated = await one.command(Update(edits=(Edit(fact_id=fact_of(stated), text=NEW),)))
    await one.command(Delete(fact_ids=(fact_of(updated),)))
    await one.say("Mira likes tea.")
    await one.command(DeleteAll())


async def corrected(one: Storyteller) -> None:
    replaced = await one.overwrite()
    await one.command(Correct(edit=Edit(fact_id=fact_of(replaced), text="Mira works at Initech.")))


async def corrected_to_an_end(one: Storyteller) -> None:
    replaced = await one.overwrite()
    edit = Edit(fact_id=fact_of(replaced), text="Mira works at Initech.")
    await one.command(Correct(edit=edit, ended_at=one.start + timedelta(hours=2, minutes=30)))


async def correction_undone(one: Storyteller) -> None:
    replaced = await one.overwrite()
    edit = Edit(fact_id=fact_of(replaced), text="Mira works at Initech.")
    correction = await one.command(Correct(edit=edit))
    await one.command(Undo(event_id=correction.events[0].event_id))


async def contradiction_confirmed_by_human(one: Storyteller) -> None:
    await one.overwrite()
    held = await one.say("Mira never worked at Globex.", "CONTRADICT")
    await one.command(Confirm(fact_ids=(fact_of(held),)))


async def turn_undone(one: Storyteller) -> None:
    merged = await one.overwrite("MERGE", text="Mira works at Acme and works at Globex.")
    undone = await one.command(Undo(source_id=merged.source_id))
    await one.command(Undo(event_id=undone.events[0].event_id))
    await one.command(Undo(source_id=merged.source_id))


async def cascade_undone(one: Storyteller) -> None:
    replaced = await one.overwrite()
    await one.say("Mira works at Initech.", "REPLACE")
    await one.command(Undo(source_id=replaced.source_id, cascade=True))


async def window_undone(one: Storyteller) -> None:
    await one.overwrite()
    await one.command(Undo(model="reader-2", since=one.start, until=one.start + timedelta(hours=4)))


async def resolved_by_human(one: Storyteller) -> None:
    await one.command(Resolve(fact_id=fact_of(await one.leave_unresolved()), action="replace"))


async def kept_old_by_human(one: Storyteller) -> None:
    await one.command(Resolve(fact_id=fact_of(await one.leave_unresolved()), action="keep_old"))


async def kept_both_by_human(one: Storyteller) -> None:
    await one.command(Resolve(fact_id=fact_of(await one.leave_unresolved()), action="keep_both"))


async def merged_by_human(one: Storyteller) -> None:
    unresolved = fact_of(await one.leave_unresolved())
    await one.command(Resolve(fact_id=unresolved, action="merge", text="Mira works at Acme and Globex."))


async def resolved_by_model(one: Storyteller) -> None:
    await one.leave_unresolved()
    decided = await one.say("Mira likes her work.", decisions=[decision_json(1, "ADD"), decision_json(2, "REPLACE", 1)])
    assert [event.event for event in decided.events] == ["fact_added", "conflict_resolved"]


async def late_history(one: Storyteller) -> None:
    slot: dict[str, Any] = {"key": "employer", "single_valued": True}
    await one.say("Mira works at Acme.", **slot)
    await one.say("Mira works at Globex.", "REPLACE", **slot)
    late = await one.say("Mira works at Initech.", at=one.start - timedelta(days=1), **slot)
    assert [event.event for event in late.events] == ["fact_added"]


STORIES: Final[tuple[Story, ...]] = (
    model_overwrites,
    contradicted,
    announced_and_timed,
    timer_alone,
    held_confirmed_by_repetition,
    held_confirmed_by_human,
    confirmation_undone,
    confirmation_undone_and_repeated,
    held_rejected_by_repetition,
    held_rejected_by_human,
    rejection_undone,
    held_deleted,
    held_and_undone,
    held,
    application,
    corrected,
    corrected_to_an_end,
    correction_undone,
    contradiction_confirmed_by_human,
    turn_undone,
    cascade_undone,
    window_undone,
    resolved_by_human,
    kept_old_by_human,
    kept_both_by_human,
    merged_by_human,
    resolved_by_model,
    late_history,
)
SECOND_MODEL: Final = frozenset({window_undone, held_rejected_by_repetition, corrected})
"""The stories whose turns another model decides."""


async def live_all(stored: ProjectedDatabase) -> None:
    """Every story, a month after the one before."""
    resolver = ResolverHarness(stored)
    try:
        for number, story in enumerate(STORIES):
            model = "reader-2" if story in SECOND_MODEL else "reader-1"
            await story(Storyteller(resolver, story.__name__.replace("_", "-"), day(30 * number), model))
    finally:
        await resolver.close()
