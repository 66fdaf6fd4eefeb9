"""The labelled dialogues are whole: a case that is missing or misfiled would silently change every figure."""

from collections import Counter

import pytest

from tests.quality.understanding.cases import FAMILIES, DialogueCase, ends_with, load, read

CASES = load()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_20_cases_numbered_from_1_half_of_them_for_tuning(family: str) -> None:
    cases = list(read(family))
    assert [case.id for case in cases] == [f"{family}-{number:02}" for number in range(1, len(cases) + 1)]
    splits = Counter(case.split for case in cases)
    assert splits["dev"] == splits["test"] >= 10


def test_the_set_has_200_cases_in_four_languages() -> None:
    assert len(CASES) >= 200
    assert {case.language for case in CASES} == {"en", "de", "fr", "es"}


def test_no_turn_is_said_twice_with_who_is_meant() -> None:
    """What one half is tuned on must not be asked for in the other half."""
    said = Counter(
        turn.messages[-1].content for case in CASES if case.entities for turn in case.turns if len(turn.messages) == 1
    )
    assert [text for text, count in said.items() if count > 1] == []


def test_nobody_who_is_named_is_called_as_who_speaks() -> None:
    """Who is called so is the user: the case would expect a merge, and call it wrong."""
    for case in CASES:
        names = [name for entity in case.entities for mention in entity.mentions for name in mention.names]
        assert not any(ends_with(name, case.speaker) for name in names), case.id


def test_a_mention_is_said_in_its_turn() -> None:
    for case in CASES:
        for entity in case.entities:
            for mention in entity.mentions:
                said = " ".join(message.content for message in case.turns[mention.turn].messages).casefold()
                assert any(name.casefold() in said for name in mention.names), (case.id, entity.label)


def test_a_case_that_contradicts_itself_is_refused() -> None:
    good = next(case for case in CASES if case.relations).model_dump()
    entity = good["entities"][0]
    for fault, field in (
        ("one label", {"entities": [entity, entity]}),
        ("unknown labels", {"relations": [good["relations"][0] | {"object": "nobody"}]}),
        ("no turn 9", {"entities": [entity | {"mentions": [{"turn": 9, "names": ["Ana"]}]}]}),
        ("nothing has to hold", dict.fromkeys(("facts", "never", "ended", "entities", "relations"), ())),
    ):
        with pytest.raises(ValueError, match=fault):
            DialogueCase.model_validate(good | field)
