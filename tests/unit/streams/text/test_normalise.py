"""Quotations are found as whole words, however often, and beside scripts without spaces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.text.tokens import has_words, without_texts

SIGNS = "ab .-あ漢é1"
WORD_SIGN = r"[^\W\u3040-\u30ff\u3400-\u9fff]"


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("i moved to norway, no", "no", True),
        ("norway", "no", False),
        ("casino", "no", False),
        ("私は東京に住む", "東京", True),
        ("anna and ann", "ann", True),
        ("no", "", False),
    ],
)
def test_a_quotation_is_found_as_whole_words(text: str, words: str, expected: bool) -> None:
    assert has_words(text, words) is expected


@given(st.text(SIGNS, max_size=14), st.text("ab-あ漢é1", min_size=1, max_size=4))
def test_a_quotation_is_found_where_no_word_goes_on_over_its_ends(text: str, words: str) -> None:
    before = rf"(?<!{WORD_SIGN})" if re.match(WORD_SIGN, words) else ""
    after = rf"(?!{WORD_SIGN})" if re.match(WORD_SIGN, words[-1]) else ""
    expected = re.search(f"{before}{re.escape(words)}{after}", " ".join(text.split()))
    assert has_words(text, words) is (expected is not None)


def test_copies_of_texts_are_taken_out_and_nothing_grows_together() -> None:
    told = "the dog is called rex"
    assert without_texts(f"{told} {told}, yes, {told}s", [told]) == f"\n \n, yes, {told}s"
