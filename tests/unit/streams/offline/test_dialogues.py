"""Dialogues as users talk (`dialogues.txt`): no wrong value fills a slot, and nothing ends that goes on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mnemolog.testing import InMemoryClient

_LINES = Path(__file__).with_name("dialogues.txt").read_text(encoding="utf-8").splitlines()
DIALOGUES = [line for line in _LINES if not line.startswith("#")]
ENDS = ("fact_replaced", "fact_retracted", "fact_contradicted", "fact_expired")
LEAST_FILLED = 18
LEAST_ENDED = 8


def talk(dialogue: str) -> tuple[list[str], list[str]]:
    """The values of the speaker's slots that are believed after a dialogue, and the texts of what ended others."""
    now = datetime(2026, 3, 4, 12, tzinfo=UTC)
    ended: list[str] = []
    with InMemoryClient(now=lambda: now) as client:
        memory = client.scope(user_id="alice")
        for turn in dialogue.split(" / "):
            parts = [part.strip().replace("\\n", "\n") for part in turn.split(" | ")]
            roles = ["assistant" if part.startswith("A: ") else "user" for part in parts]
            messages = [
                {"role": role, "content": part.removeprefix("A: ")} for role, part in zip(roles, parts, strict=True)
            ]
            result = memory.add(messages, speaker="Alice", wait=True)
            ended += [(change.text or "").casefold() for change in result.changes if change.event in ENDS]
            now += timedelta(minutes=10)
        filled = [fact.value or "" for fact in memory.facts() if fact.key and fact.status == "active"]
    return [value.casefold() for value in filled], ended


def test_no_slot_and_no_end_of_a_dialogue_is_wrong() -> None:
    wrong: list[str] = []
    right_values = right_ends = 0
    for dialogue in DIALOGUES:
        said, may_fill, may_end = (part.strip() for part in dialogue.split("||"))
        filled, ended = talk(said)
        values, ends = (list(filter(None, part.split(", "))) for part in (may_fill, may_end))
        wrong += [f"{said}: {value}" for value in filled if value not in values]
        wrong += [f"{said}: ended by {text}" for text in ended if not any(value in text for value in ends)]
        right_values, right_ends = right_values + len(filled), right_ends + len(ended)
    assert not wrong
    assert right_values >= LEAST_FILLED
    assert right_ends >= LEAST_ENDED
    assert len(DIALOGUES) > 100


@pytest.mark.parametrize(
    "said",
    [
        *("I can eat nuts again!", "The nut allergy turned out to be wrong.", "Turns out I'm not allergic after all."),
        *("My allergy test was negative for nuts", "I outgrew my nut allergy", "I can have nuts without any trouble."),
        *(
            "The doctor says my nut allergy is gone",
            "The doctor said that I'm not allergic to nuts anymore.",
            "Dr. Lee thinks I'm not allergic to nuts.",
            "I think I'm not allergic to nuts.",
            "My blood test says I was never allergic to nuts.",
            "I had nuts yesterday without a reaction",
            "I'm no longer allergic.",
        ),
    ],
)
def test_an_allergy_that_is_denied_in_other_words_waits_and_is_respected_until_then(said: str) -> None:
    assert after_nuts(said) == ["fact_pending"]


@pytest.mark.parametrize(
    "said",
    [
        *("My brother can eat nuts again.", "I can't eat nuts.", "I can't have nuts again, I nearly died."),
        *("I'm not allergic to cats.", "If I could eat nuts again!", "Are you sure that I'm not allergic to nuts?"),
        *("I'm still allergic to nuts, the test wasn't wrong.", "She said I'm wrong about films.", "I ate fish again."),
        *("People think I'm not allergic to nuts.", "Everyone at work says I'm not allergic to nuts anymore."),
        *("Kim has always said I'm not allergic.", "My boss believes my nut allergy is gone."),
        *("She isn't allergic to nuts anymore.", "My son isn't allergic."),
        "The doctor told my wife that her nut allergy is gone.",
    ],
)
def test_other_sentences_call_no_allergy_in_question(said: str) -> None:
    assert after_nuts(said) in (["fact_added"], [])


def after_nuts(said: str) -> list[str]:
    with InMemoryClient() as client:
        memory = client.scope(user_id="alice")
        memory.add("I'm allergic to nuts.", speaker="Alice", wait=True)
        result = memory.add(said, speaker="Alice", wait=True)
        assert [fact.value for fact in memory.facts() if fact.key == "allergy" and fact.status == "active"] == ["nuts"]
        return [change.event for change in result.changes]
