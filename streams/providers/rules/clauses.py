"""From a message to plain first-person clauses: split, contractions written out, fillers left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Mark = Literal["ended", "corrected", "doubtful"]
MAX_MESSAGE = 20_000  # characters of a message that are read: the rest of a document is no talk
MAX_CLAUSE = 300  # longer sentences are not what these rules understand, and would only cost time

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = "\ufffc"
_SPEECH = re.compile(r'"[^"\n]*\b(?:I|I\'m|I\'ve|my)\b[^"\n]*"', re.IGNORECASE)
_ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|dr|st|prof|e\.g|i\.e|vs|a\.m|p\.m|no)\.$", re.IGNORECASE)
_TAIL = 8  # an abbreviation with the word boundary before it
_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?]+(?=\S)[^.!?;\n]*)*[.!?;]*")
_SPEAKER = re.compile(r"^\s*(?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?):\s+(?=\S)")
_HYPOTHESIS = re.compile(
    r"\b(?:if (?:i|we|my|you|it|only)|would|could|should|might|wish|imagine|suppose|supposed|pretend"
    r"|what if|unless|as though"
    r"|as if|whether)\b",
    re.IGNORECASE,
)
_VERBS = "work|live|love|like|enjoy|hate|dislike|have|prefer|am|play|speak|study|own|use|drive|go|bought|moved|got"
_JOINT = re.compile(
    rf"\s*[\u2013\u2014]\s*|\s-+\s|(?<=\w)-\s|,?\s+(?:and|but|so|because|while|though|since)\s+(?=(?:i|my"
    rf"|we|our|he|she|it|they)\b)"
    rf"|[,:]\s+(?=(?:i|my|we|it)\b)|,?\s+and\s+(?=(?:{_VERBS})\b)|,?\s+but\s+(?=(?:{_VERBS}|do not|don't|am not)\b)",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:i|my|we|our|he|she|it|they|love|hate)\b", re.IGNORECASE)
_BARE_VERB = re.compile(rf"(?:{_VERBS})\b", re.IGNORECASE)
_TERSE = re.compile(r"(?:love|loving|like|hate|prefer) (?:the|my|to)\b", re.IGNORECASE)
_TWO = re.compile(r"^(?:[Mm]y [\w ]+?|[A-Z]\w+) and I\b")

_CONTRACTIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), written)
    for pattern, written in (
        (r"\bcan't\b", "cannot"),
        (r"\bcan not\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\b(i|we|they|you)'ve\b", r"\1 have"),
        (r"\bi'm\b", "I am"),
        (r"\bim\b", "I am"),
        (r"\b(we|they|you)'re\b", r"\1 are"),
        (r"\b(i|we|he|she|they)'ll\b", r"\1 will"),
        (r"\b(i|we|he|she|they)'d\b", r"\1 would"),
        (r"\b(it|that|he|she)'s\b", r"\1 is"),
    )
)
_FILLER = re.compile(
    r"^(?:well|oh|hey|hi|hello|so|also|and|but|plus|anyway|by the way|btw|fyi|just so you know|yes|yeah"
    r"|yep|no|nope|ok|okay"
    r"|actually|honestly|to be honest|in fact|wow|haha|lol|thanks|sorry|please note|note|please remember|remember"
    r"|guess what|as of (?:now|today)|from now on|nowadays|these days|i think|i guess|i believe|maybe|perhaps|probably"
    r"|lately|finally|correction|now|currently|right now|good news|bad news|update|great|cool|nice|sure|right"
    r"|[A-Z]\w+(?=, (?:I|my)\b))(?:[,:!]+\s*|\s+that\s+|\s+)(?=\S)",
    re.IGNORECASE,
)
_ADVERB = re.compile(
    r"\b(?:really|currently|now|still|just|recently|also|actually|absolutely|totally|honestly|finally|definitely|truly"
    r"|already|originally|kind of|sort of|probably|lately|nowadays|very much)\b\s*",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r",?\s+(?:anymore|any more|any longer|these days|at the moment|right|as well|too|though|again|please"
    r"|by the way|lol|haha"
    r"|a lot|so much|very much|, you know|at all)$",
    re.IGNORECASE,
)
_MARK_WORDS: tuple[tuple[Mark, str], ...] = (
    ("ended", r"\b(?:no longer|any ?more|any longer|used to|stopped|quit|gave up|given up|switched|instead of)\b"),
    ("corrected", r"\b(?:actually|correction|i meant|was wrong|made a mistake|never)\b|^\s*(?:sorry|no),"),
    ("doubtful", r"\b(?:i think|i guess|maybe|perhaps|probably|i believe|not sure)\b"),
)
_MARKS = tuple((mark, re.compile(pattern, re.IGNORECASE)) for mark, pattern in _MARK_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One statement: `words` made plain, `excerpt` as it was said, `speaker` where a script names one."""

    words: str
    excerpt: str
    speaker: str | None
    marks: frozenset[Mark]


def clauses(content: str) -> Iterator[Clause]:
    """The statements of a message. Questions, suppositions, code and what others are quoted with are left out."""
    visible = _SPEECH.sub(_muted, _CODE.sub("\n", content[:MAX_MESSAGE].translate(_QUOTES)))
    for line in visible.splitlines():
        if line.lstrip().startswith(">"):
            continue
        named = _SPEAKER.match(line)
        speaker = named["name"] if named else None
        for sentence in _sentences(line[named.end() :] if named else line):
            yield from _clauses_of(sentence, speaker)


def _muted(speech: re.Match[str]) -> str:
    """A mark in place of what somebody is quoted with: it ends a sentence where the quotation did."""
    return f"{_QUOTED}." if speech[0][-2] in ".!?" else _QUOTED


def _clauses_of(sentence: str, speaker: str | None) -> Iterator[Clause]:
    """A part such as "and love it" borrows the "I" of the part before."""
    first_person = bool(_TERSE.match(sentence))
    for excerpt in _parts(sentence):
        words = plain(excerpt)
        if first_person and _BARE_VERB.match(words):
            words = f"I {words[0].lower()}{words[1:]}"
        first_person = words.startswith("I ")
        yield Clause(words=words, excerpt=excerpt, speaker=speaker, marks=_marks(sentence, excerpt))


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for piece in _SENTENCE.finditer(line):
        if piece.end() < len(line) and _ABBREVIATION.search(line, max(start, piece.end() - _TAIL), piece.end()):
            continue
        sentence, start = line[start : piece.end()].strip(), piece.end()
        if _is_statement(sentence):
            yield sentence


def _is_statement(sentence: str) -> bool:
    asked = sentence.rstrip("\"')").endswith("?")
    return 0 < len(sentence) <= MAX_CLAUSE and not (asked or _HYPOTHESIS.search(sentence) or _QUOTED in sentence)


def _parts(sentence: str) -> Iterator[str]:
    whole = _TWO.match(sentence)
    first = 0
    for joint in _JOINT.finditer(sentence, whole.end() if whole else 0):
        if joint[0].strip() == "," and not _PERSON.search(sentence, first, joint.start()):
            continue  # "Last week, I ..." is one part
        yield from filter(None, [sentence[first : joint.start()].strip(" ,;")])
        first = joint.end()
    yield from filter(None, [sentence[first:].strip(" ,;")])


def _marks(sentence: str, part: str) -> frozenset[Mark]:
    """Doubt and correction colour a whole sentence, an end only the part that tells it."""
    return (marks(sentence) - {"ended"}) | (marks(part) & {"ended"})


def marks(text: str) -> frozenset[Mark]:
    """What the words around a statement say about it."""
    return frozenset(mark for mark, pattern in _MARKS if pattern.search(text))


def plain(text: str) -> str:
    """`text` with contractions written out, without fillers, and "we" read as "I"."""
    words = text
    for pattern, written in _CONTRACTIONS:
        words = pattern.sub(written, words)
    words = words.strip().rstrip(" .!,;:")
    while (shorter := _FILLER.sub("", words, count=1)) != words:
        words = shorter
    words = _TWO.sub("I", words)
    words = re.sub(r"^we are\b", "I am", words, flags=re.IGNORECASE)
    words = re.sub(r"^(?:we|i)\b", "I", words, flags=re.IGNORECASE)
    words = _ADVERB.sub("", words)
    while (shorter := _TRAILING.sub("", words)) != words:
        words = shorter
    return " ".join(words.split())
