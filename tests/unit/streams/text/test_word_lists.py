import json
import tomllib
from pathlib import Path

import pytest

from mnemolog.streams.text import tokens as word_lists

FOLDER = Path(word_lists.__file__).parent
GENERATED = json.loads((FOLDER / "cldr_words.json").read_text(encoding="utf-8"))
BY_HAND = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("section", ["numbers", "dates", "units"])
def test_a_word_has_one_meaning_in_a_section_and_only_what_cldr_lacks_is_kept_by_hand(section: str) -> None:
    words = [word for source in (GENERATED, BY_HAND) for words in source[section].values() for word in words.split()]
    assert len(words) == len(set(words))
    assert [word for word in words if word != word.casefold()] == []


def test_tens_and_ones_make_a_number_of_two_words() -> None:
    assert (word_lists.TENS["twenty"], word_lists.ONES["deux"]) == ("20", "2")
    assert ("ten" in word_lists.TENS, "zero" in word_lists.ONES) == (False, False)


@pytest.mark.parametrize(
    ("words", "word", "meaning"),
    [
        (word_lists.NUMBERS, "septante", "70"),
        (word_lists.NUMBERS, "dezasseis", "16"),
        (word_lists.NUMBERS, "veintidós", "22"),
        (word_lists.DATES, "terça", "weekday 2"),
        (word_lists.DATES, "montags", "weekday 1"),
        (word_lists.DATES, "sept", "month 9"),
        (word_lists.UNITS, "giorni", "day"),
        (word_lists.UNITS, "°c", "celsius"),
    ],
)
def test_words_of_each_source_are_there(words: dict[str, str], word: str, meaning: str) -> None:
    assert words[word] == meaning


@pytest.mark.parametrize("word", ["do", "so", "set", "sam", "un", "eine", "in", "pie"])
def test_frequent_words_with_another_meaning_are_left_out(word: str) -> None:
    assert word not in word_lists.NUMBERS | word_lists.DATES | word_lists.UNITS
