"""What an answer states with the question before it, in the clear cases; in doubt it is read like any sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from mnemolog.streams.offline.phrases import WORDS
from mnemolog.streams.offline.sentences import plain, reason_not_stated, without_margins
from mnemolog.streams.offline.slots import FILLS, SlotStatement, slot_statements
from mnemolog.streams.text.patterns import tables
from mnemolog.streams.text.short_answers import sentences_of, short_answer

_MAX_QUESTION: Final = 200  # characters
_MAX_VALUE: Final = 6
_MAX_FRAGMENT: Final = 8  # words
_RULES: Final = tables(Path(__file__).with_name("questions.toml"))
_BEFORE: Final = r"(?:(?:so|and|ok|okay|oh|great|nice|got it|thanks?|hm+|well|by the way)\b[,.!:]?\s+)*"
_LEADS: Final = re.compile(
    r"^(?:(?:it|that)(?:'s| is) |i(?:'m| am) (?:in|at|called) |(?:in|at|to|from|near|on) )", re.IGNORECASE
)
_POINTS_BACK: Final = re.compile(
    r"^\W*(?:(?:is|was) (?:that|this|it) (?:right|correct|true|so)|(?:am i|are we) right|right|correct|"
    r"did i get (?:that|it) right|"
    r"(?:shall|should|may|can) i (?:note|remember|save|store) (?:that|this|it)(?: down)?)\W*$",
    re.IGNORECASE,
)
_OPEN_QUESTION: Final = re.compile(
    r"^\W*(?:what|which|who|where|when|how (?!are you|is it going|do you do|can i|may i))\b.*\b(?:you|your)\b",
    re.IGNORECASE,
)
_PERSONS: Final = (
    (re.compile(r"\byou(?:'re| are)\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byou(?:'ve| have)\b", re.IGNORECASE), "I have"),
    (re.compile(r"\byou were\b", re.IGNORECASE), "I was"),
    (re.compile(r"\byourself\b", re.IGNORECASE), "myself"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)


def answer_text(speaker: str, question: str, said: str) -> str:
    """An answer with its question, as a transcript has them."""
    return f'{speaker}, asked "{question}?": {said}'


def own_words(text: str, excerpt: str) -> str:
    """The words by which a fact is compared: its excerpt, or for an answer that says little alone the whole text."""
    return text if ', asked "' in text else excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A form of a question, and the sentence that its answer states."""

    asks: re.Pattern[str]
    states: str
    is_proposal: bool = False

    def sentence(self, question: str, **values: str) -> str | None:
        """What the answer to a question states; None where the question has another form."""
        match = self.asks.fullmatch(question)
        if match is None:
            return None
        found = {name.rstrip("0123456789"): said for name, said in match.groupdict().items() if said}
        return self.states.format(**found, **values)


def _rules(table: str) -> tuple[Rule, ...]:
    rows = (line.split(" => ") for line in _RULES[table].splitlines())
    return tuple(
        Rule(asks=re.compile(rf"{_BEFORE}(?:{asks})", re.IGNORECASE), states=states, is_proposal=table == "proposal")
        for asks, states in rows
    )


_VALUE_RULES: Final = _rules("value")
_WHETHER_RULES: Final = (*_rules("proposal"), *_rules("whether"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReading:
    """What an answer states: values of slots, or itself, asked `question`; or nothing."""

    question: str
    statements: tuple[SlotStatement, ...] = ()
    is_kept: bool = False
    denies: bool = False


def read_answer(asked: str, said: str, at: datetime) -> AnswerReading | None:
    """What `said` states as the answer to `asked`; None where it is to be read by itself."""
    question = _question_of(asked)
    if question is None or "?" in said:
        return None
    kind = short_answer(said)
    if kind is None:
        return _read_value(question, said, at)
    if kind == "open":
        return AnswerReading(question=question)
    found = next(_whether(question), None)
    if found is None:
        return None
    rule, sentence = found
    statements = _whole_statements(sentence, at)
    if kind == "no":
        return AnswerReading(question=question, is_kept=not rule.is_proposal, denies=True)
    return AnswerReading(question=question, statements=statements, is_kept=not statements)


def _question_of(asked: str) -> str | None:
    """The question that an answer is to, without its mark; where that only points back, what it points to."""
    sentences = list(sentences_of(plain(asked)))
    place = next((place for place in reversed(range(len(sentences))) if "?" in sentences[place]), None)
    if place is None:
        return None
    question = sentences[place]
    if place and _POINTS_BACK.match(question):
        question = sentences[place - 1]
    question = without_margins(question.rpartition(": ")[2])
    return question if 0 < len(question) <= _MAX_QUESTION else None


def _whether(question: str) -> Iterator[tuple[Rule, str]]:
    for rule in _WHETHER_RULES:
        if (sentence := rule.sentence(question)) is not None:
            for second, first in _PERSONS:
                sentence = second.sub(first, sentence)
            yield rule, sentence


def _read_value(question: str, said: str, at: datetime) -> AnswerReading | None:
    words = without_margins(plain(said))
    if not words or reason_not_stated(words) or WORDS["doubt"].search(words) or WORDS["negation"].search(words):
        return None
    value = _LEADS.sub("", words, count=1)
    if len(value.split()) <= _MAX_VALUE:
        for rule in _VALUE_RULES:
            sentence = rule.sentence(question, v=value)
            if sentence is not None and (statements := _whole_statements(sentence, at)):
                return AnswerReading(question=question, statements=statements)
    is_fragment = len(words.split()) <= _MAX_FRAGMENT and not WORDS["self"].search(words)
    return AnswerReading(question=question, is_kept=True) if is_fragment and _OPEN_QUESTION.match(question) else None


def _whole_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """The values that a sentence states, if it states nothing else."""
    found = slot_statements(sentence, at)
    return found if found and all(one.act in FILLS and one.is_whole for one in found) else ()
