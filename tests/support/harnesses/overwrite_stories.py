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

OLD, NEW, THIRD = "Mira works at Acme.", "Mira works at Globex.", "Mira works at Initech."
EMPLOYER: Final[dict[str, Any]] = {"key": "employer", "single_valued": True}


class Storyteller:
    """Turns and commands of one person, an hour apart, or `days` later; `model` decides on the turns."""

    def __init__(self, resolver: ResolverHarness, number: int, model: str) -> None:
        self.scope = Scope(user_id=f"person-{number}")
        self.start = self._at = day(30 * number)
        self.commits: list[Commit] = []
        self._resolver = resolver
        self._commands = CommandHarness(resolver.stored)
        self._model = model

    async def say(self, statement: str, decisions: list[dict[str, Any]], days: int = 0, **fields: Any) -> None:
        chat = self._resolver.chat_model
        chat.model = self._model
        chat.set_replies(decisions or "Let me think about it.")
        fact, at = extracted_fact(statement, **fields), self._later(days)
        self.commits.append(await self._resolver.resolve_turn(fact, at=at, source_id=self._source(), scope=self.scope))

    async def command(self, payload: CommandPayload, days: int = 0) -> None:
        commit = await self._commands.execute(self._source(), payload, at=self._later(days), scope=self.scope)
        assert commit.outcome == "done", commit.detail
        self.commits.append(commit)

    def stated(self, place: int = -1) -> UUID:
        """The fact that a commit stated."""
        fact = self.commits[place].events[0].new_fact
        assert fact is not None
        return fact.fact_id

    def _later(self, days: int) -> datetime:
        self._at += timedelta(days=days, hours=1)
        return self._at

    def _source(self) -> str:
        return f"{self.scope.user_id}-{len(self.commits)}"


Step = Callable[[Storyteller], Awaitable[None]]
Payload = Callable[[Storyteller], CommandPayload]


def _say(statement: str, action: str = "", *, days: int = 0, text: str | None = None, **fields: Any) -> Step:
    """A statement, and the model's decision on it and the first known fact, which may end `days` after the start."""

    async def say(one: Storyteller) -> None:
        ended_at = one.start + timedelta(days=days) if days else None
        decisions = [decision_json(1, action, 1, ended_at=ended_at, text=text)] if action else []
        await one.say(statement, decisions, **fields)

    return say


def _order(payload: Payload, days: int = 0) -> Step:
    return lambda one: one.command(payload(one), days)


def _undo(place: int = -1) -> Step:
    return _order(lambda one: Undo(event_id=one.commits[place].events[0].event_id))


def _undo_turn(place: int, *, cascade: bool = False) -> Step:
    return _order(lambda one: Undo(source_id=one.commits[place].source_id, cascade=cascade))


def _correct(hours: float | None = None) -> Step:
    def payload(one: Storyteller) -> CommandPayload:
        ended_at = one.start + timedelta(hours=hours) if hours else None
        return Correct(edit=Edit(fact_id=one.stated(1), text=THIRD), ended_at=ended_at)

    return _order(payload)


def _resolve(action: str, text: str | None = None) -> Step:
    return _order(lambda one: Resolve.model_validate({"fact_id": one.stated(1), "action": action, "text": text}))


KNOWN: Final = _say(OLD)
REPLACED: Final = (KNOWN, _say(NEW, "REPLACE"))
HELD: Final = (KNOWN, _say(NEW, "CONTRADICT", certainty="strong"))
"""A contradiction that is held back, because the known fact is surer."""
UNRESOLVED: Final = (KNOWN, _say(NEW))
CONFIRM: Final = _order(lambda one: Confirm(fact_ids=(one.stated(1),)))
REJECT: Final = _order(lambda one: Reject(fact_ids=(one.stated(1),)))
STORIES: Final[dict[str, tuple[Step, ...]]] = {
    "the model overwrites": (
        *REPLACED,
        _say("Mira works in sales.", "MERGE", text="Mira works at Globex, in sales."),
        _say("Mira has left.", "RETRACT", action_hint="retract"),
    ),
    "contradicted": (KNOWN, _say(NEW, "CONTRADICT")),
    "announced, then timed": (
        KNOWN,
        _say(NEW, "EXPIRE", days=3, action_hint="retract"),
        _order(lambda one: Expire(fact_ids=(one.stated(0),)), days=5),
    ),
    "timed alone": (
        lambda one: one.say(OLD, [], valid_until=one.start + timedelta(days=3)),
        _order(lambda one: Expire(fact_ids=(one.stated(0),)), days=5),
    ),
    "held, confirmed by repetition": (*HELD, _say(NEW)),
    "held, confirmed by a human": (*HELD, CONFIRM),
    "a confirmation undone": (*HELD, CONFIRM, _undo(), _undo(), _undo()),
    "a confirmation undone and repeated": (*HELD, CONFIRM, _undo(), CONFIRM),
    "held, rejected by repetition": (*HELD, KNOWN),
    "held, rejected by a human": (*HELD, REJECT),
    "a rejection undone": (*HELD, REJECT, _undo()),
    "held, then deleted": (*HELD, _order(lambda one: Delete(fact_ids=(one.stated(1),)))),
    "held, then undone": (*HELD, _undo()),
    "held": HELD,
    "the application": (
        KNOWN,
        _order(lambda one: Update(edits=(Edit(fact_id=one.stated(0), text=NEW),))),
        _order(lambda one: Delete(fact_ids=(one.stated(1),))),
        _say("Mira likes tea."),
        _order(lambda _: DeleteAll()),
    ),
    "corrected": (*REPLACED, _correct()),
    "corrected to an end": (*REPLACED, _correct(hours=2.5)),
    "a correction undone": (*REPLACED, _correct(), _undo()),
    "a contradiction confirmed by a human": (
        *REPLACED,
        _say("Mira never worked at Globex.", "CONTRADICT"),
        _order(lambda one: Confirm(fact_ids=(one.stated(2),))),
    ),
    "a turn undone": (
        KNOWN,
        _say(NEW, "MERGE", text="Mira works at Acme and works at Globex."),
        _undo_turn(1),
        _undo(),
        _undo_turn(1),
    ),
    "a cascade undone": (*REPLACED, _say(THIRD, "REPLACE"), _undo_turn(1, cascade=True)),
    "a window undone": (
        *REPLACED,
        _order(lambda one: Undo(model="reader-2", since=one.start, until=one.start + timedelta(hours=4))),
    ),
    "replaced by a human": (*UNRESOLVED, _resolve("replace")),
    "the old kept by a human": (*UNRESOLVED, _resolve("keep_old")),
    "both kept by a human": (*UNRESOLVED, _resolve("keep_both")),
    "merged by a human": (*UNRESOLVED, _resolve("merge", "Mira works at Acme and Globex.")),
    "resolved by the model": (
        *UNRESOLVED,
        lambda one: one.say("Mira likes her work.", [decision_json(1, "ADD"), decision_json(2, "REPLACE", 1)]),
    ),
    "late history": (
        _say(OLD, **EMPLOYER),
        _say(NEW, "REPLACE", **EMPLOYER),
        lambda one: one.say(THIRD, [], days=-1, **EMPLOYER),
    ),
}
SECOND_MODEL: Final = frozenset({"a window undone", "held, rejected by repetition", "corrected"})
"""The stories whose turns another model decides."""


async def live_all(stored: ProjectedDatabase) -> None:
    """Every story, a month after the one before."""
    resolver = ResolverHarness(stored)
    try:
        for number, (name, steps) in enumerate(STORIES.items()):
            one = Storyteller(resolver, number, "reader-2" if name in SECOND_MODEL else "reader-1")
            for step in steps:
                await step(one)
    finally:
        await resolver.close()
