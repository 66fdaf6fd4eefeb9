"""Event cases: one event, driven from a turn or a command to the rows, and the words of other vocabularies for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.projections.queries.results import WriteResult
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.fact_changes import Change, observe_change
from tests.support.harnesses.pipeline_harness import Person
from tests.support.servers.scripted_model import ScriptedDecision

CaseRun = Callable[[Person], Awaitable[Change]]


@dataclass(frozen=True, slots=True)
class EventCase:
    """Drives `event`, checks the rows, and shows at most one word of each vocabulary."""

    event: str
    vocabulary: Mapping[str, str]
    run: CaseRun

    @property
    def name(self) -> str:
        return self.run.__name__


EVENT_CASES: Final[list[EventCase]] = []


def event_case(event: str, **words: str) -> Callable[[CaseRun], CaseRun]:
    """Register a case; it is run with a person without facts."""

    def collect(run: CaseRun) -> CaseRun:
        EVENT_CASES.append(EventCase(event, words, run))
        return run

    return collect


def old_text(person: Person) -> str:
    """The fact that is known first."""
    return f"{person.name} writes with Emacs."


def new_text(person: Person) -> str:
    """The new fact, which concerns the known one."""
    return f"{person.name} writes with Vim."


def merged_text(person: Person) -> str:
    return f"{person.name} writes with Emacs and Vim."


def extraction_of(text: str, **fields: Any) -> dict[str, Any]:
    """All have equal vectors: only the texts differ."""
    return fact_json(text, "the editor", **fields)


def say_new(person: Person, decision: ScriptedDecision, **fields: Any) -> Awaitable[WriteResult]:
    """A turn with the new fact, about which the model decides `decision`."""
    turn = {name: fields.pop(name) for name in ("occurred_at",) if name in fields}
    return person.say(extraction_of(new_text(person), **fields), decisions={new_text(person): decision}, **turn)


async def observe_old_and_new(person: Person, action: Awaitable[WriteResult]) -> Change:
    return await observe_change(person, action, old=old_text(person), new=new_text(person))
