"""What a merged text loses of a parent: its words, and that something has ended."""

from collections.abc import Sequence

from mnemolog.streams.text.readings import Reading, is_content, is_number, start_of, stem_of
from mnemolog.streams.text.word_lists import DATES, LINKING_WORDS, UNITS


def lost_words(parent: Reading, merged: Reading) -> Sequence[str]:
    """The words of a parent of which the merged text has no form, but for those that only join ("a dog called Rex").

    Names and what tells of an end are looked for elsewhere. Of a script without spaces the signs that tell something.
    """
    if not parent.is_spaced:
        return sorted(parent.signs - merged.signs)
    kept = {part for token in merged.tokens for part in (stem_of(token), start_of(token))}
    left_out = LINKING_WORDS.union(parent.names, parent.ending.split())
    told = [token for token in parent.tokens if tells(token) and token.casefold() not in left_out]
    return [token for token in told if not {stem_of(token), start_of(token)} & kept]


def lost_ending(parent: Reading, others: Sequence[Reading], merged: Reading) -> str:
    """What tells of an end in a parent, where the merged text has neither it nor another that no parent has; or ""."""
    words = " ".join(merged.tokens).casefold()
    is_own = merged.ending and merged.ending not in {other.ending for other in others}
    return "" if not parent.ending or is_own or parent.ending in words else parent.ending


def tells(token: str) -> bool:
    """Whether a token is a word that tells something, and no number, date or unit."""
    word = token.casefold()
    return is_content(token) and not is_number(token) and word not in DATES and word not in UNITS
