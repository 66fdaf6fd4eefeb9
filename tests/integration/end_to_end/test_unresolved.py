"""A model that gives no valid ruling is told what is wrong, twice; then both facts stand, and somebody settles it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Final

import pytest
import pytest_asyncio

from mnemolog.projections.results import WriteResult
from tests.servers.scripted import Answer, Question, Ruling, decision, decisions, reading
from tests.world import Person, World, day

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

OLD: Final = "Hal never rides his 3 bikes with Tom."
NEW: Final = "Hal rides his bikes on Sundays."
RIGHT: Final = "Hal never rides his 3 bikes with Tom, but rides on Sundays."
KEEPS: Final = "keep every number, name and negation, or do not merge"


def ruling(action: str, *known: int, new: int = 1, **fields: Any) -> str:
    return decisions(decision(new, action, *known, **fields))


FAULTS: Final[dict[str, tuple[str, str]]] = {
    "a fact that was not offered": (ruling("REPLACE", 2), "K2 is not among its known facts (K1)"),
    "a fact that is none": (ruling("REPLACE", -1), "K-1 is not among its known facts (K1)"),
    "a new fact that is none": (ruling("ADD", new=7), "there is no new fact N7"),
    "no decision": (decisions(), "N1 has 0 decisions: give exactly one"),
    "two decisions": (decisions(decision(1, "ADD"), decision(1, "KEEP", 1)), "N1 has 2 decisions: give exactly one"),
    "no such decision": (ruling("OVERWRITE", 1), "decisions.0.action"),
    "a decision of another vocabulary": (ruling("UPDATE", 1), "decisions.0.action"),
    "no target": (ruling("CONTRADICT"), "CONTRADICT needs the known facts that it concerns"),
    "a target of ADD": (ruling("ADD", 1), "ADD concerns no known fact"),
    "no reason": (ruling("REPLACE", 1, reason=" "), "decisions.0.reason"),
    "no merged text": (ruling("MERGE", 1), "MERGE needs the merged sentence as text"),
    "a number is lost": (
        ruling("MERGE", 1, text="Hal never rides his bikes with Tom on Sundays."),
        f"loses 3: {KEEPS}",
    ),
    "a name is lost": (ruling("MERGE", 1, text="Hal never rides his 3 bikes on Sundays."), f"loses tom: {KEEPS}"),
    "a weekday is lost": (ruling("MERGE", 1, text="Hal never rides his 3 bikes with Tom."), "the merged text loses"),
    "a negation is lost": (
        ruling("MERGE", 1, text="Hal rides his 3 bikes with Tom on Sundays."),
        f"loses its negation: {KEEPS}",
    ),
    "no end": (ruling("EXPIRE", 1), "EXPIRE needs ended_at"),
    "an end before the beginning": (ruling("REPLACE", 1, ended_at=day(-1)), "ended_at lies before K1 began"),
    "another form": ('{"actions": []}', "decisions: Field required"),
}


async def confused(hal: Person, *answers: Answer, **turn: Any) -> WriteResult:
    """Hal is told about, then something that may conflict; the model gives these answers, the last one for ever."""
    await hal.says(reading(OLD, "bikes"))
    return await hal.says(reading(NEW, "bikes"), answers=answers, **turn)


@dataclass(frozen=True, slots=True)
class Confusion:
    """One whom the model was confused about, under a name of its own; what was said of it when, and what came of it."""

    person: Person
    old: str
    new: str
    result: WriteResult


Confusions = dict[str, Confusion]


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def confusions(world: World) -> Confusions:
    """All faults at once, each about somebody else."""

    async def confuse(name: str, answer: str) -> Confusion:
        person, old, new = world.person(name), OLD.replace("Hal", name), NEW.replace("Hal", name)
        await person.says(reading(old, "bikes"))
        result = await person.says(reading(new, "bikes"), answers=[answer.replace("Hal", name)])
        return Confusion(person, old, new, result)

    names = (f"Hal{letter}" for letter in ascii_lowercase)
    answers = zip(names, (answer for answer, _ in FAULTS.values()), strict=False)
    ends = await asyncio.gather(*(confuse(name, answer) for name, answer in answers))
    return dict(zip(FAULTS, ends, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_faulty_ruling_is_told_twice_and_then_both_facts_stand(
    world: World, confusions: Confusions, fault: str
) -> None:
    complaint, case = FAULTS[fault][1], confusions[fault]
    told = world.model.complaints(case.new)
    assert (len(world.model.asked(case.new)), len(told)) == (3, 2)
    assert all(complaint in one for one in told), told
    assert case.result.trace is not None
    assert {stage.stage: stage.reprompts for stage in case.result.stages if stage.reprompts} == {"resolve": 2}
    assert all(complaint in reprompt.complaint for reprompt in case.result.trace.reprompts)
    (memory,) = case.result.memories
    assert (memory.event, memory.unresolved, case.result.llm_calls) == ("ADD", True, 4)
    facts = await case.person.facts()
    assert [(row["status"], row["unresolved"]) for row in facts.values()] == [("active", False), ("active", True)]
    old = facts[case.old]
    assert (old["mention_count"], old["true_to"], old["superseded_by"]) == (1, None, None)


@pytest.mark.parametrize("faults", [1, 2])
async def test_a_model_that_comes_to_reason_is_heard(world: World, faults: int) -> None:
    hal = world.person(f"hal-{faults}")
    right = ruling("MERGE", 1, text=RIGHT)
    result = await confused(hal, *[ruling("REPLACE", 2)] * faults, right)
    assert (result.llm_calls, [memory.event for memory in result.memories]) == (2 + faults, ["MERGE"])
    assert await hal.standing() == {OLD: "superseded", RIGHT: "active"}
    assert await world.memory.unresolved(user_id=hal.name) == []


async def test_two_facts_that_end_the_same_one_oppose_each_other(world: World) -> None:
    ida = world.person("ida")
    old, rome, bonn = "Ida lives in Oslo.", "Ida lives in Rome.", "Ida lives in Bonn."
    await ida.says(reading(old, "home"))

    def opposing(question: Question) -> str:
        label = question.label(old)
        return decisions(decision(1, "REPLACE", label), decision(2, "KEEP", label))

    result = await ida.says(reading(rome, "home"), reading(bonn, "home"), answers=[opposing])
    assert [(memory.event, memory.unresolved) for memory in result.memories] == [("ADD", True), ("ADD", True)]
    complaint = "K1 serves N1 REPLACE, N2 KEEP: what one decision ends serves that one only"
    assert all(complaint in told for told in world.model.complaints(rome))
    assert await ida.standing() == dict.fromkeys((old, rome, bonn), "active")


async def test_how_often_a_model_is_asked_again_is_the_turns_choice(world: World) -> None:
    result = await confused(world.person("hal-0"), "no", overrides={"reprompts": 0})
    assert (result.llm_calls, result.memories[0].unresolved) == (2, True)


async def test_what_is_unresolved_is_listed_with_what_it_stands_beside(world: World) -> None:
    hal = world.person("hal-listed")
    await confused(hal, ruling("REPLACE", 2))
    (waiting,) = await world.memory.unresolved(user_id=hal.name)
    assert (waiting.fact.text, [one.text for one in waiting.beside]) == (NEW, [OLD])
    assert "K2 is not among its known facts" in waiting.reason
    assert [fact.text for fact in await world.memory.facts(user_id=hal.name)] == [OLD, NEW]
    assert await world.memory.unresolved(user_id="nobody") == []


LATER: Final = "Hal takes his bikes to France."


async def asked_again(hal: Person, *rulings: Ruling) -> WriteResult:
    """A later turn meets the unresolved fact, and the model rules on both."""
    await confused(hal, "no")
    own, of_the_unresolved = rulings
    return await hal.says(reading(LATER, "bikes"), ruled={LATER: own, NEW: of_the_unresolved})


SETTLED: Final[Sequence[tuple[Ruling, str, str]]] = [
    (Ruling("ADD"), "active", "active"),
    (Ruling("SIMILAR", (OLD,)), "active", "active"),
    (Ruling("KEEP", (OLD,)), "active", "archived"),
    (Ruling("REPLACE", (OLD,)), "superseded", "active"),
    (Ruling("MERGE", (OLD,), text=RIGHT), "superseded", "superseded"),
    (Ruling("RETRACT", (OLD,)), "retracted", "active"),
]


@pytest.mark.parametrize(("ruling", "old", "new"), SETTLED, ids=[one.action for one, _, _ in SETTLED])
async def test_a_later_turn_that_meets_it_settles_it(world: World, ruling: Ruling, old: str, new: str) -> None:
    hal = world.person(f"hal-later-{ruling.action}")
    result = await asked_again(hal, Ruling("ADD"), ruling)
    (question,) = hal.asked(LATER)[-1:]
    assert set(question.new.values()) == {LATER, NEW}
    assert result.llm_calls == 2
    standing = await hal.standing()
    assert (standing[OLD], standing[NEW], standing[LATER]) == (old, new, "active")
    assert await world.memory.unresolved(user_id=hal.name) == []


async def test_a_later_turn_without_a_valid_ruling_leaves_it_as_it_is(world: World) -> None:
    hal = world.person("hal-stubborn")
    await confused(hal, "no")
    await hal.says(reading(LATER, "bikes"), answers=["no"])
    waiting = await world.memory.unresolved(user_id=hal.name)
    assert [one.fact.text for one in waiting] == [NEW, LATER]
    assert await hal.standing() == dict.fromkeys((OLD, NEW, LATER), "active")


async def test_a_command_settles_it_with_a_merged_text(world: World) -> None:
    hal = world.person("hal-command")
    await confused(hal, "no")
    result = await hal.orders("resolve", await hal.fact_id(NEW), "merge", text=RIGHT)
    assert (result.status, [memory.event for memory in result.memories]) == ("done", ["MERGE"])
    assert await hal.standing() == {OLD: "superseded", NEW: "superseded", RIGHT: "active"}
    again = await hal.orders("resolve", await hal.fact_id(NEW), "keep_both")
    assert (again.status, again.success) == ("rejected", False)
    assert "closed_fact" in (again.error or "")
