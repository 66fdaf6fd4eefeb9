"""The mood of a turn: asked for by a setting alone, kept with the turn, never a reason to ask again."""

import json
from typing import Any

import pytest

from mnemolog.schemas.provenance import Mood
from mnemolog.streams.llm.extract_prompt import read_mood
from tests.support.harnesses.extract_harness import ScriptedModel, extracted, replied, turn

JOY = {"emotion": "joy", "intensity": 0.75, "energy": "high"}


def reply(mood: object) -> str:
    return json.dumps(json.loads(replied("Mira lives in Berlin.")) | {"mood": mood})


async def test_a_mood_is_asked_for_and_kept_in_the_step() -> None:
    model = ScriptedModel(reply(JOY))
    output = await extracted(model, turn().to_bytes(), detect_mood=True)
    (step,) = output.steps
    assert step.mood == Mood(emotion="joy", intensity=0.75, energy="high")
    (prompt,) = model.questions
    assert "emotion: one of joy, love" in prompt.messages[0].content
    assert "mood" in prompt.schema["required"]
    assert len(output.facts) == 1


async def test_without_the_setting_nothing_is_asked_or_kept() -> None:
    model = ScriptedModel(reply(JOY))
    output = await extracted(model, turn().to_bytes())
    (step,), (prompt,) = output.steps, model.questions
    assert step.mood is None
    assert "mood" not in step.model_dump()
    assert "mood" not in prompt.messages[0].content + json.dumps(prompt.schema)


@pytest.mark.parametrize(
    "mood",
    [
        None,
        "happy",
        [],
        {},
        JOY | {"emotion": "bliss"},
        JOY | {"intensity": 1.5},
        JOY | {"intensity": "0.5"},
        JOY | {"energy": "HIGH"},
        JOY | {"more": 1},
    ],
)
async def test_an_invalid_mood_is_left_out_and_the_facts_are_kept(mood: Any) -> None:
    output = await extracted(ScriptedModel(reply(mood)), turn().to_bytes(), detect_mood=True)
    (step,) = output.steps
    assert (step.mood, step.reprompts, len(output.facts)) == (None, 0, 1)


@pytest.mark.parametrize("text", ["", "no json", "[]", "{", "{}", '{"mood": {"emotion": "joy"', "null", "3"])
def test_a_reply_that_is_none_has_no_mood(text: str) -> None:
    assert read_mood(text) is None


def test_words_around_the_object_are_overlooked() -> None:
    assert read_mood(f"Here it is: {reply(JOY)} Done.") == Mood.model_validate(JOY)
