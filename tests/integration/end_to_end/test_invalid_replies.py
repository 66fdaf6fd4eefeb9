"""Invalid replies of the model: two re-prompts with what is wrong; then both facts stay until somebody resolves it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Final

import pytest
import pytest_asyncio

from mnemolog.projections.queries.results import WriteResult
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness
from tests.support.servers.scripted_model import ScriptedAnswer, ScriptedDecision

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Hal never rides his 3 bikes with Tom."
NEW: Final = "Hal rides his bikes on Sundays."
RIGHT: Final = "Hal never rides his 3 bikes with Tom, but rides on Sundays."
KEEPS: Final = "keep what each fact says, or do not merge"


def decision_reply(action: str, *known: int, new: int = 1, **fields: Any) -> str:
    return decisions_reply(decision_json(new, action, *known, **fields))


FAULTS: Final[dict[str, tuple[str, str]]] = {
    "a fact that was not offered": (decision_reply("REPLACE", 2), "K2 is not among its known facts (K1)"),
    "a negation is lost": (
        decision_reply("MERGE", 1, text="Hal rides his 3 bikes with Tom on Sundays."),
        f"loses its negation: {KEEPS}",
    ),
    "another form": ('{"actions": []}', "decisions: Field required"),
}
"""One of each kind; `test_resolve_parser.py` has them all."""


async def say_with_invalid_replies(hal: Person, *answers: ScriptedAnswer, **turn: Any) -> WriteResult:
    """A fact, then one that may conflict; the model gives these answers, the last one again and again."""
    await hal.say(fact_json(OLD, "bikes"))
    return await hal.say(fact_json(NEW, "bikes"), answers=answers, **turn)


@dataclass(frozen=True, slots=True)
class InvalidReplyCase:
    """A person whose second fact got invalid replies: the texts of both facts, and the result."""

    person: Person
    old: str
    new: str
    result: WriteResult


InvalidReplyCases = dict[str, InvalidReplyCase]


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def invalid_reply_cases(harness: PipelineHarness) -> InvalidReplyCases:
    """All faults at once, each about somebody else."""

    async def confuse(name: str, answer: str) -> InvalidReplyCase:
        person, old, new = harness.person(name), OLD.replace("Hal", name), NEW.replace("Hal", name)
        await person.say(fact_json(old, "bikes"))
        result = await person.say(fact_json(new, "bikes"), answers=[answer.replace("Hal", name)])
        return InvalidReplyCase(person, old, new, result)

    names = (f"Hal{letter}" for letter in ascii_lowercase)
    answers = zip(names, (answer for answer, _ in FAULTS.values()), strict=False)
    ends = await asyncio.gather(*(confuse(name, answer) for name, answer in answers))
    return dict(zip(FAULTS, ends, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_faulty_ruling_is_told_twice_and_then_both_facts_stand(
    harness: PipelineHarness, invalid_reply_cases: InvalidReplyCases, fault: str
) -> None:
    complaint, case = FAULTS[fault][1], invalid_reply_cases[fault]
    repairs = harness.model.repair_messages(case.new)
    assert (len(harness.model.requests_about(case.new)), len(repairs)) == (3, 2)
    assert all(complaint in one for one in repairs), repairs
    assert case.result.trace is not None
    assert {stage.stage: stage.reprompts for stage in case.result.stages if stage.reprompts} == {"resolve": 2}
    assert all(complaint in reprompt.complaint for reprompt in case.result.trace.reprompts)
    (memory,) = case.result.memories
    assert (memory.event, memory.unresolved, case.result.llm_calls) == ("fact_added", True, 4)
    facts = await case.person.facts()
    assert [(row["status"], row["unresolved"]) for row in facts.values()] == [("active", False), ("active", True)]
    old = facts[case.old]
    assert (old["mention_count"], old["true_to"], old["superseded_by"]) == (1, None, None)


@pytest.mark.parametrize("faults", [1, 2])
async def test_a_model_that_comes_to_reason_is_heard(harness: PipelineHarness, faults: int) -> None:
    hal = harness.person(f"hal-{faults}")
    right = decision_reply("MERGE", 1, text=RIGHT)
    result = await say_with_invalid_replies(hal, *[decision_reply("REPLACE", 2)] * faults, right)
    assert (result.llm_calls, [memory.event for memory in result.memories]) == (2 + faults, ["facts_merged"])
    assert await hal.statuses() == {OLD: "superseded", RIGHT: "active"}
    assert await harness.memory.unresolved(user_id=hal.name) == []


async def test_what_is_unresolved_is_listed_with_what_it_stands_beside(harness: PipelineHarness) -> None:
    hal = harness.person("hal-listed")
    await say_with_invalid_replies(hal, decision_reply("REPLACE", 2))
    (waiting,) = await harness.memory.unresolved(user_id=hal.name)
    assert (waiting.fact.text, [one.text for one in waiting.beside]) == (NEW, [OLD])
    assert "K2 is not among its known facts" in waiting.reason
    assert [fact.text for fact in await harness.memory.facts(user_id=hal.name)] == [OLD, NEW]
    assert await harness.memory.unresolved(user_id="nobody") == []


LATER: Final = "Hal takes his bikes to France."


async def reprompts_of(hal: Person, *decisions: ScriptedDecision, new: str = NEW) -> WriteResult:
    """A later turn meets the unresolved fact, and the model rules on both."""
    await hal.say(fact_json(OLD, "bikes"))
    await hal.say(fact_json(new, "bikes"), answers=["no"])
    own, of_the_unresolved = decisions
    return await hal.say(fact_json(LATER, "bikes"), decisions={LATER: own, new: of_the_unresolved})


AGAIN: Final = "Hal does not ride his 3 bikes with Tom."
RESOLUTIONS: Final[Sequence[tuple[ScriptedDecision, str, str]]] = [
    (ScriptedDecision("ADD"), "active", "active"),
    (ScriptedDecision("SIMILAR", (OLD,)), "active", "active"),
    (ScriptedDecision("KEEP", (OLD,)), "active", "archived"),
    (ScriptedDecision("REPLACE", (OLD,)), "superseded", "active"),
    (ScriptedDecision("MERGE", (OLD,), text=RIGHT), "superseded", "superseded"),
    (ScriptedDecision("RETRACT", (OLD,)), "retracted", "active"),
]


@pytest.mark.parametrize(("decision", "old", "new"), RESOLUTIONS, ids=[one.action for one, _, _ in RESOLUTIONS])
async def test_a_later_turn_that_meets_it_settles_it(
    harness: PipelineHarness, decision: ScriptedDecision, old: str, new: str
) -> None:
    hal, unresolved = harness.person(f"hal-later-{decision.action}"), AGAIN if decision.action == "KEEP" else NEW
    result = await reprompts_of(hal, ScriptedDecision("ADD"), decision, new=unresolved)
    (question,) = hal.questions_about(LATER)[-1:]
    assert set(question.new.values()) == {LATER, unresolved}
    assert result.llm_calls == 2
    statuses = await hal.statuses()
    assert (statuses[OLD], statuses[unresolved], statuses[LATER]) == (old, new, "active")
    assert await harness.memory.unresolved(user_id=hal.name) == []


async def test_a_later_turn_without_a_valid_ruling_leaves_it_as_it_is(harness: PipelineHarness) -> None:
    hal = harness.person("hal-stubborn")
    await say_with_invalid_replies(hal, "no")
    await hal.say(fact_json(LATER, "bikes"), answers=["no"])
    waiting = await harness.memory.unresolved(user_id=hal.name)
    assert [one.fact.text for one in waiting] == [NEW, LATER]
    assert await hal.statuses() == dict.fromkeys((OLD, NEW, LATER), "active")
