"""What holds for every message: nothing raises, nothing is lost, and only what is certain ends a fact."""

import re
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.model import RuleModel
from mnemolog.streams.offline.resolve import judge
from mnemolog.streams.offline.sentences import sentences, slot_statements
from tests.support.builders.prompts import MONDAY, extraction, known_fact, turn, user
from tests.support.builders.questions import number_conflicts

WORDS = (
    *("I", "we", "my", "Ich", "je", "live", "in", "Bern", "Rome", "work", "at", "Acme", "not", "no longer", "and"),
    *("if", "would", "dog", "called", "Rex", "am", "allergic", "to", "nuts", "yesterday", "until Friday", "?", "!"),
    *("\n", '"', "haha", "please", "maybe", "moved", "from", "now", "died", "never", "3", "May", "> ", "- ", "```"),
    *("Tom:", "。", ".", ","),
)
BULLET = re.compile(r"^\s*(?:\[[ xX]\]|\d{1,2}[.)]|[-*•+])\s*(?:\[[ xX]\]\s+)?", re.MULTILINE)
TALK = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
MESSAGES = TALK | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=400)


def letters(text: str) -> str:
    return "".join(sign for sign in text if sign.isalnum())


@given(MESSAGES)
def test_every_letter_is_in_a_sentence(content: str) -> None:
    """The signs of lists are no words of a sentence."""
    found = list(sentences(content))
    texts, bullets = "".join(letters(one.text) for one in found), "".join(BULLET.findall(content))
    rest = iter(letters(content))
    assert all(sign in rest for sign in texts)
    assert Counter(letters(content)) - Counter(texts) <= Counter(letters(bullets))


@given(MESSAGES)
@settings(deadline=None)
async def test_every_reply_is_valid_and_every_statement_survives(content: str) -> None:
    task = extraction(user(content, "Alice"))
    model = RuleModel()
    first, second = await model.complete(extraction_prompt(task)), await model.complete(extraction_prompt(task))
    parsed = parse_extraction(first.text, task)
    assert first.text == second.text
    assert parsed.value is not None
    assert parsed.complaints == ()
    facts, _ = read_turn(task.turn)
    kept = " ".join(letters(fact.excerpt) for fact in facts) + " ".join(letters(one.text) for one in parsed.dropped)
    stated = [one.text for one in sentences(content) if one.omitted is None]
    for word in re.findall(r"[^\W_]{4,}", " ".join(stated)):
        assert word in kept or len(facts) == 100 or word.casefold() in {"haha", "hello"}


@given(TALK, TALK)
@settings(deadline=None)
def test_only_what_is_certain_ends_a_fact(earlier: str, later: str) -> None:
    known = [
        known_fact(number, fact.text, key=fact.key, value=fact.value, subject=fact.subject, excerpt=fact.excerpt)
        for number, fact in enumerate(read_turn(turn(user(earlier), speaker="Alice"))[0], start=1)
    ]
    new = read_turn(turn(user(later), speaker="Alice"))[0]
    conflicts = number_conflicts([(fact, tuple(known)) for fact in new], said_at=MONDAY)
    for conflict, decision in zip(conflicts.conflicts, judge(conflicts), strict=True):
        if decision["verdict"] not in OVERWRITE_OF_VERDICT:
            continue
        ended = [one for label, one in conflict.candidates if label in decision["targets"]]
        speaks_of_slots = bool(slot_statements(conflict.fact.excerpt, MONDAY))
        assert all(one.key is None or speaks_of_slots for one in ended)
        assert all(one.subject == "Alice" for one in ended)


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
    assert not parsed.notes
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
