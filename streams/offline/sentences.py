"""Splits a message into sentences, and says which state nothing, and why; has the patterns of `phrases.toml`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import sentencex  # type: ignore[import-untyped]  # ships no types

from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.text.patterns import DATE_PARTS, compiled, tables

_TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
_PARTS: Final = _TABLES["parts"] | DATE_PARTS
OMITTED: Final = {reason: compiled(text, _PARTS) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, _PARTS) for name, text in _TABLES["words"].items()}
SLOT_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, the slot, and how it says so. `pet`, `any` and the like stand for several slots."""
PETS: Final = tuple(compiled("{pet}", _PARTS).groupindex)
RELATIVES: Final = tuple(compiled("{relative}", _PARTS).groupindex)


MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_LISTED: Final = 300  # characters that are listed of what is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of what marks the sentence before as a joke
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?= (?:I|My|We)\b))\s+(?:\[[ xX]\]\s+)?")
_SPEAKER = re.compile(r"\s*(?P<name>[^\W\d_a-z][\w'.-]+(?: [^\W\d_a-z][\w'.-]+)?):\s+(?=\S)")
_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Words of a message as they stand there; why they are no fact, and the speaker whom a script names."""

    text: str
    speaker: str | None = None
    omitted: OmissionReason | None = None


def plain(text: str) -> str:
    """With typewriter quotes, character for character."""
    return text.translate(_TYPOGRAPHY)


def is_english(text: str) -> bool:
    """Whether a sentence is in English, as its small words show; in doubt it is, and rules may read it."""
    said = plain(text)
    return len(WORDS["other_language"].findall(said)) <= len(WORDS["english"].findall(said))


def without_margins(text: str) -> str:
    """Without signs and white space around it."""
    return text.strip(" \t\n.,;:!?…\"'()*-\u2013\u2014\u00bf\u00a1")


def sentences(content: str) -> Iterator[Sentence]:
    """All of a message, in its order; what is too long to be read comes last."""
    read = content[:MAX_MESSAGE]
    if len(content) > MAX_MESSAGE:
        ends = [match.end() for match in _END.finditer(read)]
        read = read[: ends[-1] if ends else read.rfind(" ") + 1 or None]
    found: list[Sentence] = []
    for sentence in _in_blocks(read):
        is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
        if is_mark and found and not found[-1].omitted:
            found[-1] = replace(found[-1], omitted="joke")
        found.append(sentence)
    yield from found
    if rest := content[len(read) :].strip():
        yield Sentence(text=_listed(rest), omitted="too_long")


def _in_blocks(content: str) -> Iterator[Sentence]:
    """Code is a quotation, and so is a line that begins with ">"; the other lines are split into sentences."""
    start = 0
    for code in [*_CODE.finditer(content), None]:
        lines = content[start : code.start() if code else None].splitlines()
        is_script = len({found["name"] for line in lines if (found := _SPEAKER.match(line))}) > 1
        for line in filter(str.strip, lines):
            if line.lstrip().startswith(">"):
                yield Sentence(text=_listed(line.strip()), omitted="quotation")
            else:
                yield from _in_line(_BULLET.sub("", line, count=1), is_script=is_script)
        if code:
            start = code.end()
            yield Sentence(text=_listed(code[0]), omitted="quotation")


def _in_line(line: str, *, is_script: bool) -> Iterator[Sentence]:
    named = None if WORDS["label"].match(line) else _SPEAKER.match(line)
    if named and not (is_script or WORDS["self"].search(plain(line[named.end() :]))):
        named = None
    language = "en" if is_english(line) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
    for piece in sentencex.segment(language, line[named.end() :] if named else line):
        for sentence in _pieces(piece.strip()):
            yield replace(sentence, speaker=named["name"]) if named else sentence


def _pieces(text: str) -> Iterator[Sentence]:
    """A sentence; what it says before it asks, and what is too long of it, is one of its own."""
    if not any(sign.isalnum() for sign in text) and not OMITTED["joke"].search(text):
        return
    end = len(text) if len(text) <= MAX_SENTENCE else text.rfind(" ", 0, MAX_SENTENCE) + 1 or MAX_SENTENCE
    text, rest = text[:end].rstrip(), text[end:].strip()
    omitted = reason_not_stated(text)
    before = WORDS["stated_before"].match(plain(text)) if omitted == "question" else None
    if before and reason_not_stated(before["stated"]) is None:
        yield Sentence(text=text[: before.end("stated")])
        text = text[before.end() :]
    yield Sentence(text=text, omitted=omitted)
    if rest:
        yield Sentence(text=_listed(rest), omitted="too_long")


def reason_not_stated(text: str) -> OmissionReason | None:
    """Why a sentence states nothing; None where it does, as far as is known."""
    said = WORDS["remember"].sub("", plain(text), count=1)
    is_short = len(said.split()) <= _SMALL_TALK and not WORDS["subject"].search(said)
    if is_short and WORDS["greeting"].match(said) and not OMITTED["question"].search(said):
        return "greeting"
    return next((reason for reason, pattern in OMITTED.items() if pattern.search(said)), None)


def _listed(text: str) -> str:
    """The beginning of what is only listed, and how much more there is."""
    more = len(text) - MAX_LISTED
    return text if more <= 0 else f"{text[:MAX_LISTED]}… ({more} characters more)"
