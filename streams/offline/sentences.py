"""Splits a message into sentences, and says which state nothing of its speaker; has the patterns of `phrases.toml`."""

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
_COPIED: Final = {name: compiled(text, _PARTS | _TABLES["copied"]) for name, text in _TABLES["copied"].items()}
SLOT_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, the slot, and the form of the clause. `pet`, `any` and the like stand for several."""
PETS: Final = tuple(compiled("{pet}", _PARTS).groupindex)
RELATIVES: Final = tuple(compiled("{relative}", _PARTS).groupindex)

MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_LISTED: Final = 300  # characters that are listed of text that is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of a mark that makes the sentence before it a joke
_MAX_SIGNS: Final = 0.12  # share of a line's characters that are signs of code or data
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?= (?:I|My|We)\b))\s+(?:\[[ xX]\]\s+)?")
_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Words of a message as they stand there, and why they are no fact."""

    text: str
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


def sentences(content: str, speaker: str | None = None) -> Iterator[Sentence]:
    """All of a message of a speaker, in its order; text that is too long to be read comes last."""
    read = content[:MAX_MESSAGE]
    if len(content) > MAX_MESSAGE:
        ends = [match.end() for match in _END.finditer(read)]
        read = read[: ends[-1] if ends else read.rfind(" ") + 1 or None]
    found: list[Sentence] = []
    for text, is_copied in _passages(read, speaker):
        for sentence in _copy(text) if is_copied else _of_line(text):
            is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
            if is_mark and found and not found[-1].omitted:
                found[-1] = replace(found[-1], omitted="joke")
            found.append(sentence)
    yield from found
    if rest := content[len(read) :].strip():
        yield Sentence(text=_listed(rest), omitted="too_long")


def _passages(content: str, speaker: str | None) -> Iterator[tuple[str, bool]]:
    """The lines of a message, each with whether it is copied: code, data, a log, or words of somebody else.

    A message that others signed is copied as a whole; from the head of a mail, or words that announce a text ("her
    reply:"), all that follows is copied.
    """
    lines = [line for line in content.splitlines() if line.strip()]
    labels = [None if WORDS["label"].match(plain(line)) else _COPIED["label"].match(plain(line)) for line in lines]
    named = [found for found in labels if found]
    is_chat = any(found["before"] or found["after"] for found in named) or (
        len({found["name"].casefold() for found in named}) > 1
        and any(WORDS["self"].search(found.string, found.end()) for found in named)
    )
    signed = _COPIED["signed"].search(plain(content))
    is_copied = bool(signed and signed.start() and not _is_same(signed["name"], speaker))
    is_fenced = False
    for line, label in zip(lines, labels, strict=True):
        words, is_own = plain(line), bool(label and _is_same(label["name"], speaker))
        is_fence = bool(_COPIED["fence"].match(words))
        announced = None if WORDS["label"].match(words) else _COPIED["announced"].search(words)
        is_said = label and not (is_own or announced) and (is_chat or WORDS["self"].search(words, label.end()))
        is_copied = is_copied or (not is_fenced and bool(_COPIED["head"].match(words)))
        if is_copied or is_fenced or is_fence or is_said or _is_technical(words):
            is_fenced ^= is_fence
            yield line.strip(), True
            continue
        start, end = label.end() if label and is_own else 0, announced.end() if announced else len(line)
        for quote in _COPIED["quote"].finditer(words, start, end):
            yield line[start : quote.start()], False
            yield quote[0], True
            start = quote.end()
        yield line[start:end], False
        if announced:
            is_copied = True
            yield line[end:].strip(), True


def _is_technical(line: str) -> bool:
    signs = sum(sign in "{}[]<>=;|\\/$#_`~^" for sign in line)
    return bool(_COPIED["technical"].search(line)) or signs > max(2, _MAX_SIGNS * len(line))


def _is_same(name: str, speaker: str | None) -> bool:
    said = (speaker or "").casefold()
    return name.casefold() in (said, said.partition(" ")[0])


def _copy(text: str) -> Iterator[Sentence]:
    if any(sign.isalnum() for sign in text):
        yield Sentence(text=_listed(text), omitted="quotation")


def _of_line(line: str) -> Iterator[Sentence]:
    line = _BULLET.sub("", line, count=1)
    language = "en" if is_english(line) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
    for piece in sentencex.segment(language, line):
        yield from _pieces(piece.strip())


def _pieces(text: str) -> Iterator[Sentence]:
    """A sentence; a statement before a question, and what is too long of it, is one of its own."""
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
    """The beginning of text that is only listed, and how much more there is."""
    more = len(text) - MAX_LISTED
    return text if more <= 0 else f"{text[:MAX_LISTED]}… ({more} characters more)"
