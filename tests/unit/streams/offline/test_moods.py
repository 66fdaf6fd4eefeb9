"""The mood that the rules read: what is said outright."""

from datetime import UTC, datetime

import pytest

from mnemolog.schemas.provenance import Mood
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.offline.extract import read_mood_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def read(*contents: str, role: str = "user") -> tuple[str, float, str]:
    messages = tuple(Message.model_validate({"role": role, "content": content}) for content in contents)
    mood = Mood.model_validate(
        read_mood_of(Turn(turn_id="t", scope=Scope(user_id="mira"), messages=messages, occurred_at=NOON))
    )
    return mood.emotion, mood.intensity, mood.energy


@pytest.mark.parametrize(
    ("said", "emotion"),
    [
        *(("I'm glad we met.", "joy"), ("I'm scared of the operation.", "fear"), ("I'm mad at him.", "anger")),
        *(("She left. I'm heartbroken.", "sadness"), ("I am grateful for your help.", "gratitude")),
        *(("I can\u2019t believe it.", "surprise"), ("I was so embarrassed.", "shame")),
        *(("It is disgusting.", "disgust"), ("I think I'm in love.", "love")),
        *((said, "neutral") for said in ("I live in Berlin.", "I'm not very happy.", "The gross weight is 4 kg.", "")),
    ],
)
def test_a_feeling_is_read_where_it_is_named_and_not_denied(said: str, emotion: str) -> None:
    assert read(said)[0] == emotion


@pytest.mark.parametrize(
    ("said", "intensity", "energy"),
    [
        ("I live in Berlin.", 0.0, "medium"),
        ("I'm happy.", 0.5, "medium"),
        ("I'm very happy.", 0.8, "medium"),
        ("I'm happy!!", 0.8, "high"),
        ("I'm exhausted.", 0.0, "low"),
        ("I AM ANGRY WITH HIM", 0.5, "high"),
        ("My car is a VW.", 0.0, "medium"),
    ],
)
def test_intensity_and_energy(said: str, intensity: float, energy: str) -> None:
    assert read(said)[1:] == (intensity, energy)


def test_what_the_assistant_says_has_no_mood() -> None:
    assert read("I'm so happy for you!!", role="assistant") == ("neutral", 0.0, "medium")
