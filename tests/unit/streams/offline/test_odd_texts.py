"""However odd a readable text is, the offline rules answer it with a valid reply."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.offline.model import RuleModel
from tests.support.builders.prompts import MONDAY, extraction, user

_SIGNS = (
    *("\u2028", "\u2029", "\x1c", "\x1f", "\x85", "\x0b", "\x0c", "\u200b", "\u200e", "\ufeff", "\u00ad", "\u0301"),
    *("\u0130", "\ufb01", "\u0149", "\u2026", "\t", "\r", "\r\n", "\u3000", "\u00a0", "\\", '"', "{", "}", "```"),
    *("> ", "- ", "1. ", "Tom: ", "Note: ", "\U0001f600", "\U0010ffff", "\uffff", "\ue000", "\u202e", "\u01c5"),
    *("\u00bd", "\u00b2", "\u2167", "\u2460", "\u0663", ".", "!", "?", ","),
)
_WORDS = (
    *("I", "live", "in", "Bern", "my", "name", "is", "am", "allergic to", "nuts", "no longer", "not", "yesterday"),
    *("in 1066", "since 1500", "until 9999", "in 3 million years", "vor 500 Jahren", "il y a 2000 ans", "moved"),
    *("90000 days ago", "on 1.1.0001", "in 90000 weeks", "0001-01-01", "bis 31.12.9999", "until the year 10000"),
    *("on 31 February", "for 99999999999999 days", "next year", "10 mg", "3 cats", "dog called", "a" * 600),
)
_ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=9)
_CONTENTS = st.builds(
    str.join, st.sampled_from(["", " "]), st.lists(st.sampled_from([*_SIGNS, *_WORDS]) | _ANY, min_size=1)
)
_NAMES = st.none() | _ANY.filter(str.strip) | st.sampled_from(["A" * 200, "13", "Tom"])
_TIMES = st.sampled_from([MONDAY, datetime(1971, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 23, 59, tzinfo=UTC)])


async def _assert_valid(content: str, speaker: str | None = None, at: datetime = MONDAY) -> None:
    task = extraction(user(content), speaker=speaker, occurred_at=at)
    reply = await RuleModel().complete(extraction_prompt(task))
    parsed = parse_extraction(reply.text, task)
    assert parsed.value is not None
    assert not parsed.is_incomplete
    assert parsed.complaints == ()


@given(_CONTENTS, _NAMES, _TIMES)
async def test_no_readable_text_ends_as_an_invalid_reply(content: str, speaker: str | None, at: datetime) -> None:
    await _assert_valid(content, speaker, at)


@pytest.mark.parametrize(
    ("content", "speaker"), [("0", "0#0"), ("2;1", "\u00bd"), ("0", "0\r0"), ("I have 3 cats.", "3 of 5")]
)
async def test_a_speaker_with_digits_states_no_number(content: str, speaker: str) -> None:
    await _assert_valid(content, speaker)


@pytest.mark.parametrize("said", ["in 0001-01-01 I moved", "I stay until 31.12.9999"])
async def test_a_date_that_no_fact_can_have_is_no_time(said: str) -> None:
    await _assert_valid(said)
