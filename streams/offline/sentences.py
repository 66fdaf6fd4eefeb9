"""Splits a message into sentences, and says which state nothing of its speaker. `phrases.toml` has the patterns."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import sentencex  # type: ignore[import-untyped]  # ships no types

from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.text.tokens import DATE_PARTS, compiled, tables

TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
PARTS: Final = TABLES["parts"] | DATE_PARTS
OMITTED: Final = {reason: compiled(text, PARTS) for reason, text in TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, PARTS) for name, text in TABLES["words"].items()}
_SHOWN: Final = {name: compiled(text, PARTS | TABLES["shown_parts"]) for name, text in TABLES["shown"].items()}
MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_LISTED: Final = 300  # characters that are listed of text that is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of a mark that makes the sentence before it a joke
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_BULLET: Final = re.compile(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?= (?:I|My|We)\b))\s+(?:\[[ xX]\]\s+)?")
_UP_TO_END: Final = re.compile(r"(?s).*(?:[.!?](?=\s)|[\u3002\uff01\uff1f\n])|.* |.*")


class Sentence(NamedTuple):
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


def sentences(content: str, speaker: str | None = None) -> list[Sentence]:
    """All of a message of a speaker, in its order; text that is too long to be read comes last."""
    said, rest = _cut(content, MAX_MESSAGE)
    found: list[Sentence] = []
    for text, is_shown in _pieces(said, speaker):
        for sentence in [Sentence(text[:MAX_LISTED], "quotation")] if is_shown else _of_piece(text):
            is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
            if is_mark and found and not found[-1].omitted:
                found[-1] = Sentence(found[-1].text, "joke")
            found.append(sentence)
    return [*found, Sentence(rest[:MAX_LISTED], "too_long")] if rest else found


def _pieces(content: str, speaker: str | None) -> Iterator[tuple[str, bool]]:
    """A message sentence by sentence, each with whether it is shown: code, data, a log, or words of somebody else.

    A message that somebody else signed is shown as a whole. From the head of a mail, or words that announce a text
    ("her reply:"), all that follows is shown; of a chat the lines of others.
    """
    names = ((speaker or "").casefold(), (speaker or "").partition(" ")[0].casefold())
    signed = _SHOWN["signed"].match(plain(content))
    is_of_others, is_code = bool(signed and signed["signer"].casefold() not in names), False
    lines = list(filter(str.strip, content.splitlines()))
    is_diff = any(line.startswith("+") for line in lines)
    are_rows = [False, *(bool(_SHOWN["row"].match(plain(line))) for line in lines), False]
    for place, line in enumerate(lines, start=1):
        is_fence = line.strip().startswith(("```", "~~~"))
        is_table = are_rows[place] and (are_rows[place - 1] or are_rows[place + 1])
        is_data = _SHOWN["line"].match(plain(line)) or (is_diff and line.startswith("-"))
        is_whole = is_of_others or is_code or is_fence or is_data
        is_code ^= is_fence
        item = _BULLET.sub("", line, count=1)
        language = "en" if is_english(item) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
        for piece in map(str.strip, [line] if is_whole else sentencex.segment(language, item)):
            is_of_others = is_of_others or bool(_SHOWN["begins"].match(plain(piece)))
            label = None if is_whole or is_of_others else _SHOWN["label"].match(plain(piece))
            if label and label["name"].strip("_").casefold() in names:
                yield piece[label.end() :], False
            else:
                yield piece, bool(is_whole or is_of_others or is_table or label)


def _of_piece(piece: str) -> Iterator[Sentence]:
    """A sentence. What is stated before a question, and what is too long of one, is one of its own."""
    text, rest = _cut(piece, MAX_SENTENCE)
    if not any(sign.isalnum() for sign in text) and not OMITTED["joke"].search(text):
        return
    omitted = reason_not_stated(text)
    before = WORDS["stated_before"].match(plain(text)) if omitted == "question" else None
    if before and reason_not_stated(before["stated"]) is None:
        yield Sentence(text[: before.end("stated")])
        text = text[before.end() :]
    yield Sentence(text, omitted)
    if rest:
        yield Sentence(rest[:MAX_LISTED], "too_long")


def reason_not_stated(text: str) -> OmissionReason | None:
    """Why a sentence states nothing; None where it does, as far as is known."""
    said = WORDS["remember"].sub("", plain(text), count=1)
    is_short = len(said.split()) <= _SMALL_TALK and not WORDS["subject"].search(said)
    if is_short and WORDS["greeting"].match(said) and not OMITTED["question"].search(said):
        return "greeting"
    return next((reason for reason, pattern in OMITTED.items() if pattern.search(said)), None)


def _cut(text: str, limit: int) -> tuple[str, str]:
    """What of a text is read, to the last end of a sentence or a word within the limit, and the rest."""
    found = _UP_TO_END.match(text, 0, limit) if len(text) > limit else None
    end = found.end() if found else len(text)
    return text[:end].rstrip(), text[end:].strip()


@lru_cache(maxsize=1024)
def may_give_voice(content: str, *, is_user: bool) -> bool:
    """Whether "I" may be somebody else in the messages beside a message, of the user or of the assistant.

    Beside work on a text it may. It is the user where the user greets, tells of the user and asks about other things
    than words.
    """
    if WORDS["wording"].search(content):
        return True
    for one in sentences(content) if is_user else ():
        said = plain(one.text)
        is_of_user = one.omitted in ("greeting", "question", "joke") or WORDS["own"].match(said)
        is_of_user = (is_of_user and one.omitted not in ("request", "quotation")) or WORDS["asks"].fullmatch(said)
        if not is_of_user or WORDS["about_words"].search(said):
            return True
    return False
