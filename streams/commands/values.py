"""What a fact whose text a command has changed says now, read from the two texts without a model."""

from datetime import datetime
from itertools import takewhile
from typing import Final, Literal

from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.text.word_lists import NEGATIONS

MAX_NAME_WORDS: Final = 4
_PUNCTUATION: Final = ".,;:!?\"'()"


def value_after_edit(old_text: str, old_value: str | None, new_text: str) -> str | None:
    """The value of `new_text`, where that is clear from `old_text` and its value; else None.

    It is clear where the texts differ in one place. If that is in the value, its words are replaced: "lives in Munich",
    "lives in Bonn". A name that is added beside it belongs to it: "lives in York", "lives in New York". If it is
    elsewhere and tells no negation, the value stays.
    """
    old, new, value = _words(old_text), _words(new_text), _words(old_value or "")
    places = [at for at in range(len(old)) if value and _folded(old[at : at + len(value)]) == _folded(value)]
    if len(places) != 1:
        return None
    begins, ends = places[0], places[0] + len(value)
    first, last, inserted = _changed_part(old, new)
    is_added_name = first == last and first in (begins, ends) and _is_name(inserted)
    if (last <= begins or first >= ends) and not is_added_name:
        denies = any(word.casefold() in NEGATIONS for word in (*old[first:last], *inserted))
        return None if denies else old_value
    if first < begins or last > ends:
        return None
    found = [*old[begins:first], *inserted, *old[last:ends]]
    verbatim = " ".join(_signed_words(new_text)[begins : begins + len(found)])
    return verbatim.strip(_PUNCTUATION) if _may_be_value(found, value) else None


def beginning_after_edit(old: StoredFact, new_text: str, at: datetime) -> datetime | None:
    """Since when `new_text` is true, where it has another date in the place of the one since which `old` was.

    The date of a text is that of its beginning if the fact began on it, or tells a change. None where that is not
    clear, or nothing changed.
    """
    from mnemolog.streams.text.times import find_times  # noqa: PLC0415 - of the extra `server`; clients come by here

    direction: Literal[-1, 1] = 1 if old.true_from > at or old.fact.action_hint == "update" else -1
    before, after = (
        [when for when in find_times(text, at, direction) if when.role != "until"] for text in (old.fact.text, new_text)
    )
    if len(before) != 1 or len(after) != 1 or before[0].first == after[0].first:
        return None
    is_beginning = old.fact.action_hint == "update" or old.true_from.date() == before[0].first
    return after[0].start(at) if is_beginning else None


def adds_denial(old_text: str, new_text: str) -> bool:
    """Whether `new_text` denies something and `old_text` does not."""
    old, new = ({word.casefold() for word in _words(text)} for text in (old_text, new_text))
    return bool(new & NEGATIONS) and not old & NEGATIONS


def _signed_words(text: str) -> list[str]:
    return [word for word in text.split() if word.strip(_PUNCTUATION)]


def _words(text: str) -> list[str]:
    return [word.strip(_PUNCTUATION) for word in _signed_words(text)]


def _folded(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


def _changed_part(old: list[str], new: list[str]) -> tuple[int, int, list[str]]:
    """From where to where `old` differs from `new`, and the words that `new` has there."""
    same = [one == other for one, other in zip(old, new, strict=False)]
    first = sum(takewhile(bool, same))
    backwards = zip(reversed(old[first:]), reversed(new[first:]), strict=False)
    kept = sum(takewhile(bool, (one == other for one, other in backwards)))
    return first, len(old) - kept, new[first : len(new) - kept]


def _may_be_value(words: list[str], old_value: list[str]) -> bool:
    """Whether words may take the place of a value: no more than it has, or a name, and no negation."""
    if not words or any(word.casefold() in NEGATIONS for word in words):
        return False
    return len(words) <= len(old_value) or (len(words) <= MAX_NAME_WORDS and _is_name(words))


def _is_name(words: list[str]) -> bool:
    return bool(words) and all(word[0].isupper() or word[0].isdigit() for word in words)
