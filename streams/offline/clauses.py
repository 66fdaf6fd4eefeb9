"""From a message to plain first-person clauses: split, contractions written out, fillers left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mnemolog.streams.offline.earnest import is_meant, is_taken_back
from mnemolog.streams.offline.marks import Mark, marks, marks_in

MAX_MESSAGE = 20_000  # characters of a message that are read: the rest of a document is no talk
MAX_CLAUSE = 300  # longer sentences are not what these rules understand, and would only cost time

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = "\ufffc"
_SPEECH = re.compile(r'"[^"\n]*\b(?:I|I\'m|I\'ve|my)\b[^"\n]*"', re.IGNORECASE)
_ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|dr|st|prof|e\.g|i\.e|vs|a\.m|p\.m|no)\.$", re.IGNORECASE)
_TAIL = 8  # an abbreviation with the word boundary before it
_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?]+(?=\S)[^.!?;\n]*)*[.!?;]*")
_SPEAKER = re.compile(
    r"^\s*(?!(?:Correction|Update|News|Note|Reminder|Sorry|Typo|Edit|PS|Fact|Question|Answer|Also|Btw"
    r"|Fyi)\b)(?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?):\s+(?=\S)"
)
_VERBS = (
    "live|love|like|enjoy|hate|dislike|have|prefer|am|speak|study|own|use|drive|go|work|play|rent|run|drink|eat|teach"
    "|wear|bought|moved|settled|got|joined|started|left|quit|switched|sold|adopted"
)
_THIRD = "lives|works|has|loves|likes|speaks|studies|is|hates|prefers|goes|teaches|owns|uses|drives"
_SUBJECT = r"(?:i|my|we|our|he|she|it|they)"
_JOINT = re.compile(
    rf"\s*[\u2013\u2014]\s*|\s-+\s|(?<=\w)-\s|,?\s+(?:and|but|so|because|though|since)\s+(?={_SUBJECT}\b)"
    rf"|,?\s+(?=(?:while|as long as) (?:the|{_SUBJECT})\b)|[,:]\s+(?=(?:{_SUBJECT}|they|these|those|this|that)\b)"
    rf"|,\s+(?:and|but)\s+(?!(?:with|by|the|an?|also|then)\b)|,\s+(?=(?-i:[A-Z])[\w]+ is (?:now )?my\b)"
    rf"|\s+and\s+(?=(?:{_VERBS}|{_THIRD})\b)|\s+but\s+(?=(?:{_VERBS}|do not|don't|am not)\b)",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:i|my|we|our|he|she|it|they|me|us|love|hate)\b", re.IGNORECASE)
_BARE_VERB = re.compile(rf"(?:{_VERBS}|{_THIRD})\b", re.IGNORECASE)
_TERSE = re.compile(r"(?:love|loving|like|hate|prefer) (?:the|my|to)\b", re.IGNORECASE)
_TWO = re.compile(r"^(?:[Mm]y [\w ]+?|[A-Z]\w+) and I\b")
_PARTED = re.compile(r" (?:have )?(?:broke|broken|split|separated|got divorced|are no longer)\b")

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
    r"|guess what|as of (?:now|today)|from now on|nowadays|these days|i think|i guess|i believe|maybe|perhaps"
    r"|probably"
    r"|lately|finally|correction|now|currently|right now|good news|bad news|update|great|cool|nice|sure|right|typo"
    r"|i mean|i meant(?: to say)?|big news|hooray|first of all"
    r"|[A-Z]\w+(?=, (?:I\b|my\b(?! [\w -]+,))))(?:[,:!]+\s*|\s+that\s+|\s+)(?=\S)",
    re.IGNORECASE,
)
_ADVERB = re.compile(
    r"\b(?:really|currently|now|still|just|recently|also|actually|absolutely|totally|honestly|finally|definitely"
    r"|truly"
    r"|already|originally|kind of|sort of|probably|lately|nowadays|very much)\b\s*|,? too(?=,)",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r",?\s+(?:anymore|any more|any longer|these days|at the moment|right|as well|too|though|again|please"
    r"|by the way|lol|haha"
    r"|a lot|so much|very much|, you know|at all|always (?:have|will|did))$",
    re.IGNORECASE,
)
_MEANWHILE = re.compile(r"(?:while|as long as)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One statement: `words` made plain, `excerpt` as it was said, `speaker` where a script names one.

    `meanwhile` is the clause ("while ...") for whose time it holds.
    """

    words: str
    excerpt: str
    speaker: str | None
    marks: frozenset[Mark]
    meanwhile: str = ""


def clauses(content: str) -> Iterator[Clause]:
    """The statements of a message. Questions, suppositions, code and what others are quoted with are left out."""
    visible = _SPEECH.sub(_muted, _CODE.sub("\n", content[:MAX_MESSAGE].translate(_QUOTES)))
    for line in visible.splitlines():
        if line.lstrip().startswith(">"):
            continue
        named = _SPEAKER.match(line)
        yield from _clauses_in(line[named.end() :] if named else line, named["name"] if named else None)


def _muted(speech: re.Match[str]) -> str:
    """A mark in place of what somebody is quoted with: it ends a sentence where the quotation did."""
    return f"{_QUOTED}." if speech[0][-2] in ".!?" else _QUOTED


def _clauses_in(line: str, speaker: str | None) -> Iterator[Clause]:
    """The clauses of one line. Where it says that something was wrong, all of it is what was said."""
    sentences = tuple(_sentences(line))
    if is_taken_back(line, sentences):
        return
    whole = line.strip() if len(line) <= MAX_CLAUSE and "mistaken" in marks(line) and _QUOTED not in line else None
    for sentence in filter(is_meant, sentences):
        for clause in _clauses_of(sentence, speaker):
            yield replace(clause, excerpt=whole, marks=clause.marks | {"mistaken"}) if whole else clause


def _clauses_of(sentence: str, speaker: str | None) -> Iterator[Clause]:
    """A part such as "and love it" borrows the subject of the part before; "while ..." holds for all parts."""
    borrowed = "I" if _TERSE.match(sentence) else ""
    parts = tuple(_parts(sentence))
    meanwhile = next((part for part in parts if len(parts) > 1 and _MEANWHILE.match(part)), "")
    for excerpt in parts:
        words = plain(excerpt)
        if borrowed and _BARE_VERB.match(words):
            words = f"{borrowed} {words[0].lower()}{words[1:]}"
        elif words:
            borrowed = "I" if words.startswith("I ") else "they"
        if excerpt != meanwhile:
            yield Clause(
                words=words,
                excerpt=excerpt,
                speaker=speaker,
                marks=marks_in(sentence, excerpt) | marks(meanwhile),
                meanwhile=plain(meanwhile).replace("While ", "while ", 1),
            )


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for piece in _SENTENCE.finditer(line):
        if piece.end() < len(line) and _ABBREVIATION.search(line, max(start, piece.end() - _TAIL), piece.end()):
            continue
        sentence, start = line[start : piece.end()].strip(), piece.end()
        if 0 < len(sentence) <= MAX_CLAUSE and _QUOTED not in sentence:
            yield sentence


def _parts(sentence: str) -> Iterator[str]:
    whole = _TWO.match(sentence)
    first = 0
    for joint in _JOINT.finditer(sentence, whole.end() if whole else 0):
        fronted = joint[0].strip() == "," and bool(_PERSON.match(sentence, joint.end()))
        if fronted and not _PERSON.search(sentence, first, joint.start()):
            continue  # "Last week, I ..." is one part
        yield from filter(None, [sentence[first : joint.start()].strip(" ,;")])
        first = joint.end()
    yield from filter(None, [sentence[first:].strip(" ,;")])


def plain(text: str) -> str:
    """`text` with contractions written out, without fillers, and "we" read as "I"."""
    words = text
    for pattern, written in _CONTRACTIONS:
        words = pattern.sub(written, words)
    words = words.strip().rstrip(" .!,;:")
    while (shorter := _FILLER.sub("", words, count=1)) != words:
        words = shorter
    if (two := _TWO.match(words)) and not _PARTED.match(words, two.end()):
        words = f"I{words[two.end() :]}"
    words = re.sub(r"^we are\b", "I am", words, flags=re.IGNORECASE)
    words = re.sub(r"^(?:we|i)\b", "I", words, flags=re.IGNORECASE)
    words = _ADVERB.sub("", words)
    while (shorter := _TRAILING.sub("", words)) != words:
        words = shorter
    return " ".join(words.split())
