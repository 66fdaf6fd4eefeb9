"""The labelled sets are whole: a case that is missing or misfiled would silently change every figure."""

from collections import Counter
from collections.abc import Iterable

from tests.quality import cases as conflicts
from tests.quality.cases import FAMILIES, LANGUAGES, SPLITS
from tests.quality.understanding import cases as dialogues
from tests.quality.understanding.cases import ends_with

CASES = conflicts.load()
ENGLISH = [case for case in CASES if case.language == "en"]
DIALOGUES = dialogues.load()


def repeated(items: Iterable[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]


def test_every_conflict_lies_in_its_file_and_none_is_there_twice() -> None:
    for path in conflicts.files():
        for case in conflicts.read(path):
            named = case.family if case.language == "en" else f"conflicts.{case.language}"
            assert path.stem == named, case.id
            assert case.id.startswith(f"{case.family}-"), case.id
    assert repeated(case.id for case in CASES) == []
    assert repeated(case.turn.text for case in CASES) == []


def test_each_family_and_language_has_as_many_conflicts_in_both_halves() -> None:
    for family in FAMILIES:
        splits = Counter(case.split for case in ENGLISH if case.family == family)
        assert splits["dev"] == splits["test"] >= 13, family
    for language in set(LANGUAGES) - {"en"}:
        cases = [case for case in CASES if case.language == language]
        splits = Counter(case.split for case in cases)
        assert splits["dev"] == splits["test"] >= 20, language
        assert {case.family for case in cases} == set(FAMILIES)


def test_both_halves_ask_for_each_best_outcome_and_for_keeping_as_well_as_ending() -> None:
    dev, test = ({case.right[0] for case in ENGLISH if case.split == split} for split in SPLITS)
    assert dev == test
    old = Counter(case.old for case in ENGLISH)
    assert min(old["kept"], old["ended"]) >= len(ENGLISH) / 4


def test_a_family_of_dialogues_is_numbered_from_1_and_half_of_it_is_for_tuning() -> None:
    for family in dialogues.FAMILIES:
        cases = list(dialogues.read(family))
        assert [case.id for case in cases] == [f"{family}-{number:02}" for number in range(1, len(cases) + 1)]
        splits = Counter(case.split for case in cases)
        assert splits["dev"] == splits["test"] >= 10
    assert len(DIALOGUES) >= 200
    assert {case.language for case in DIALOGUES} == {"en", "de", "fr", "es"}


def test_no_turn_of_a_dialogue_is_said_twice_with_who_is_meant() -> None:
    """What one half is tuned on must not be asked for in the other half."""
    named = [turn for case in DIALOGUES if case.entities for turn in case.turns]
    assert repeated(turn.messages[-1].content for turn in named if len(turn.messages) == 1) == []


def test_a_mention_is_said_in_its_turn_and_nobody_is_called_as_who_speaks() -> None:
    """Who is called as the speaker is the user: the case would expect a merge, and call it wrong."""
    for case in DIALOGUES:
        for mention in (mention for entity in case.entities for mention in entity.mentions):
            said = " ".join(message.content for message in case.turns[mention.turn].messages).casefold()
            assert any(name.casefold() in said for name in mention.names), case.id
            assert not any(ends_with(name, case.speaker) for name in mention.names), case.id
