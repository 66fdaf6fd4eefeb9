"""A context that comes back in the next turn is no evidence, whatever a model makes of it."""

from itertools import cycle
from typing import Any, get_args

import pytest

from mnemolog.projections.context import Context, ContextFormat
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import Person, PipelineHarness

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


def known_texts(name: str) -> list[str]:
    return [f"{name} lives in Bern.", f"{name} writes <b>R&D</b> notes & [lists].", f"{name} is allergic to nuts."]


async def person_with_facts(harness: PipelineHarness, name: str) -> Person:
    person = harness.person(name.lower())
    topics = zip(known_texts(name), ["home", "work on paper", "food in the kitchen"], strict=True)
    facts = [fact_json(text, topic) | {"excerpt": text, "certainty": "weak"} for text, topic in topics]
    facts[-1]["category"] = "health"
    await person.say(*facts, messages=[{"role": "user", "content": " ".join(known_texts(name))}])
    return person


def greedy_extraction(name: str, context: Context) -> list[dict[str, Any]]:
    """What a model extracts that takes everything it reads for news: lines as they stand, and what they say."""
    lines = [line for line in context.text.splitlines() if name in line]
    assert len(lines) == len(known_texts(name))
    as_written = [fact_json(line, "notes") | {"excerpt": line} for line in lines]
    over_lines = fact_json(f"{name} has notes.", "notes") | {"excerpt": " ".join("\n".join(lines[1:]).split())}
    as_known = [fact_json(text, "notes") | {"excerpt": text} for text in known_texts(name)]
    return [*as_written, over_lines, *as_known]


@pytest.mark.parametrize(("form", "place"), list(zip(get_args(ContextFormat), cycle(["system", "user"]), strict=False)))
async def test_what_comes_back_adds_confirms_and_changes_nothing(
    harness: PipelineHarness, form: ContextFormat, place: str
) -> None:
    name = f"Zoe{form}{place}"
    person = await person_with_facts(harness, name)
    question = f"What do you know of {name}?"
    context = await harness.memory.context(question, format=form, **person.scope)
    assert sorted(fact.text for fact in context.facts) == sorted(known_texts(name))
    before = await person.facts()
    repeated = f"{context.text}\n{' '.join(known_texts(name))}"
    asked = {"role": "user", "content": question if place == "system" else f"{repeated}\n\n{question}"}
    answer = {"role": "assistant", "content": f"I know this:\n{repeated}"}
    messages = [*(context.messages if place == "system" else []), asked, answer]
    result = await person.say(*greedy_extraction(name, context), messages=messages, recalled=context.recalled)
    assert result.status == "nothing_stored", result
    assert await person.facts() == before
