"""What the words around a statement say about it: that it has ended, is doubtful, holds for a while ..."""

import re
from typing import Final, Literal

Mark = Literal["ended", "corrected", "doubtful", "mistaken", "passing", "beside"]
_OF_A_SENTENCE: Final[frozenset[Mark]] = frozenset({"doubtful", "corrected", "mistaken"})
_WORDS: Final[dict[Mark, str]] = {
    "ended": r"\b(?:no longer|any ?more|any longer|used to|stopped|quit|gave up|given up|switched|instead of)\b",
    "corrected": r"\b(?:actually|correction|i meant|was wrong|made a mistake|never)\b|^\s*(?:sorry|no),",
    "doubtful": r"\b(?:i think|i guess|maybe|perhaps|probably|i believe|not sure)\b",
    "mistaken": (
        r"\b(?:correction|i meant|mistaken|mistake|got (?:it|that) wrong|(?:was|were|am) wrong|mixed (?:\w+ )?up|typo"
        r"|nonsense|mis(?:typed|spoke|read|remembered|heard|understood|stated)|exaggerat\w+|turns out|found out|wrongly"
        r"|not true|lied|(?:was|were|have|has) never|never (?:was|were|did)|told you wrong"
        r"|wrong (?:box|number|date|word|name|one))\b"
    ),
    "passing": (
        r"\b(?:for now|for the time being|temporar\w+|while|during|until|till|tonight|at the moment"
        r"|this (?:week|weekend|month|term|semester|summer|winter|spring|autumn)"
        r"|(?<!from )(?<!of )(?<!starting )today|just this once|just once|just that once|only this once"
        r"|for (?:a|an|the next|another|one|two|three|four|five|six|\d+)(?: \w+)? (?:nights?|days?|weeks?|months?))\b"
    ),
    "beside": (
        r"\b(?:also|as well|too|besides|in addition|additionally|another|second (?:job|home|flat|car)|part-time"
        r"|on the side)\b"
    ),
}
_PATTERNS: Final = {mark: re.compile(words, re.IGNORECASE) for mark, words in _WORDS.items()}


def marks(text: str) -> frozenset[Mark]:
    """Which of them a text has."""
    return frozenset(mark for mark, pattern in _PATTERNS.items() if pattern.search(text))


def marks_in(sentence: str, part: str) -> frozenset[Mark]:
    """Those of a part of a sentence: doubt and correction colour all of it, the others only the part."""
    return (marks(sentence) & _OF_A_SENTENCE) | marks(part)
