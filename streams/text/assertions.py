"""What a text asserts that others do not, and what it loses of them, in words that a complaint can use.

By words, capitals and lists in six languages; of other scripts only digits, Latin names and signs of negation are read.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from mnemolog.schemas.facts import Candidate, Certainty, ExtractedFact
from mnemolog.streams.text.pairings import misplaced_amounts, reversed_roles, swapped
from mnemolog.streams.text.readings import Reading, dates_in, is_content, is_number, read, stem_of
from mnemolog.streams.text.subjects import compare_subjects
from mnemolog.streams.text.tokens import CLAUSE_ENDS, words_of
from mnemolog.streams.text.word_lists import (
    ARTICLES,
    DATES,
    DENYING_WORDS,
    ENDINGS,
    LINKING_WORDS,
    NEGATIONS,
    OPPOSITES,
    POSSESSIVES,
    PREPOSITIONS,
    UNITS,
)

_NEGATING: Final = ("un", "dis", "non", "nicht", "mis")
_INFLECTIONS: Final = frozenset({"", "s", "es", "n", "en", "e", "er", "em", "ern", "ens"})
_SHORTEST_INFLECTED: Final = 4
_WEAKER: Final = frozenset({"possibly", "intended", "sometimes", "some", "about"})
"""Qualifiers of a statement that says less than the same one without them."""
DOUBTFUL: Final[frozenset[Certainty]] = frozenset({"weak", "speculation"})
"""Certainties of statements that may stand beside what they deny."""


def added_details(sources: Sequence[str], text: str, extras: Sequence[str] = ()) -> Iterator[str]:
    """The numbers, dates, units and names of `text` that neither `sources` nor `extras` have."""
    readings, own = [read(source) for source in (*sources, *extras)], read(text)
    details = frozenset().union(*(reading.details for reading in readings))
    words = {token.casefold() for reading in readings for token in reading.tokens}
    yield from sorted(own.claimed - details)
    yield from (date for date, parts in dates_in(own) if date not in details and not _has_date(details, parts))
    yield from sorted(name for name in own.names if not _is_known(name, words))


def lost_details(parents: Sequence[str], text: str) -> Iterator[str]:
    """The numbers, dates, units and names of `parents` that `text` lacks, and the parents of which little is left."""
    own = read(text)
    words = {token.casefold() for token in own.tokens}
    for parent in parents:
        said = read(parent)
        dates = (date for date, parts in dates_in(said) if not _has_date(own.details, parts))
        names = (name for name in said.names if not _is_known(name, words))
        gone = sorted({*(said.claimed - own.details), *dates, *names})
        yield from gone or ([f'most of "{parent}"'] if _is_lost(parent, parents, own) else [])


def _has_date(details: frozenset[str], parts: Sequence[str]) -> bool:
    return all({part, f"month {part}"} & details for part in parts)


def _is_lost(parent: str, parents: Sequence[str], merged: Reading) -> bool:
    """Whether less than half of a parent is left, or nothing of what it says beside the others to its last word."""
    said, others = read(parent), [read(other) for other in parents if other != parent]
    if not said.stems or not said.is_spaced:
        return False
    told = [stem for stem in said.stems if not all(stem in other.stems[:1] for other in others)] or [*said.stems]
    special = [stem for stem in told if not any(stem in other.stems for other in others)]
    is_left = any(stem in merged.stems for stem in special) or said.stems[-1] not in special
    return not is_left or 2 * sum(stem in merged.stems for stem in told) < len(told)


def turned_negations(sources: Sequence[str], text: str, ignored: frozenset[str] = frozenset()) -> Iterator[str]:
    """What `text` denies and no source does, or the other way round; `ignored` are stems of the subject."""
    readings, own = [read(source) for source in sources], read(text)
    negated = frozenset().union(*(reading.negated for reading in readings)) - ignored
    affirmed = frozenset().union(*(reading.affirmed for reading in readings)) - ignored
    said = {stem for reading in readings for stem in reading.stems}
    unclear = said - negated - affirmed
    reached = [reach - ignored - unclear for reach in own.negations]
    if own.negations and not any(reading.negations for reading in readings):
        yield "it denies something that was not denied"
    elif any(reach and not reach & negated for reach in reached):
        yield "it denies something else"
    elif turned := frozenset().union(*reached) & affirmed - negated:
        yield f"it denies {_quoted(turned, own)}"
    if kept := (own.affirmed - ignored) & negated - affirmed:
        yield f"it does not deny {_quoted(kept, own)}"
    if own.is_foreign and not own.negations and any(reading.negations for reading in readings):
        yield "it loses a negation"
    yield from _opposites(said, {token.casefold() for one in readings for token in one.tokens}, own)


def lost_negation(parents: Sequence[str], text: str) -> bool:
    """Whether a parent denies something and the text nothing."""
    return any(read(parent).negations for parent in parents) and not read(text).negations


def mispaired(sources: Sequence[str], text: str, ignored: frozenset[str] = frozenset()) -> Iterator[str]:
    """Amounts, dates and names that belong to another thing than in the sources, and roles that have changed."""
    if values := swapped(sources, text, ignored) | misplaced_amounts(sources, text):
        yield f"{', '.join(sorted(values))} with what it belongs to"
    yield from (f'"{pair}"' for pair in sorted(reversed_roles(sources, text)))


def added_words(sources: Sequence[str], text: str) -> Iterator[str]:
    """The words of `text` that no source has, but for those that only join ("a dog called Rex").

    Of a script without spaces the signs that tell something.
    """
    own, readings = read(text), [read(source) for source in sources]
    known = {start for reading in readings for token in reading.tokens for start in (stem_of(token), _start_of(token))}
    for token in own.tokens if own.is_spaced else ():
        if _tells(token) and token.casefold() not in LINKING_WORDS and not {stem_of(token), _start_of(token)} & known:
            yield f'"{token}"'
    if not own.is_spaced:
        yield from sorted(own.signs - frozenset().union(*(reading.signs for reading in readings)))


def _start_of(token: str) -> str:
    """What the forms of a long word have in common: "teaches", "taught" have not, "hospital", "hospitals" have."""
    return token.casefold()[:_SHORTEST_INFLECTED] if len(token) >= _SHORTEST_INFLECTED else token.casefold()


def other_matter(known: Sequence[str], text: str, ignored: frozenset[str]) -> Iterator[str]:
    """What shows that a text is about something else than the known ones: an end or a plan, or no word of theirs."""
    readings, own = [read(one) for one in known], read(text)
    ends = {token.casefold() for token in own.tokens} & ENDINGS
    known_ends = [{token.casefold() for token in reading.tokens} & ENDINGS for reading in readings]
    if ends and not any(known_ends):
        yield f'"{min(ends)}"'
    if known_ends and all(known_ends) and not ends and not own.negations:
        yield f'that it is so: "{min(known_ends[0])}"'
    weaker = [reading.claimed & _WEAKER - own.details for reading in readings]
    if weaker and all(weaker):
        yield f"that it is so: {min(weaker[0])}"
    told = {*own.stems, *own.details} - ignored
    if any(own.stems[:1] == reading.stems[:1] for reading in readings):
        told -= {*own.stems[:1]}  # the subject
    if own.is_spaced and told and not any(told & {*reading.stems, *reading.details} for reading in readings):
        yield "all that it says"
    yield from _words_of_its_own(readings, own, ignored)


def _words_of_its_own(known: Sequence[Reading], own: Reading, ignored: frozenset[str]) -> Iterator[str]:
    """What a text has beside all words of each known one ("a senior engineer"), or instead of one of their signs."""
    if not own.is_spaced:
        yield from sorted(own.signs - frozenset().union(*(reading.signs for reading in known)))
        return
    added = [_inserted(reading, own, ignored) for reading in known]
    if added and all(added):
        yield f'"{added[0][0]}"'


def _inserted(known: Reading, own: Reading, ignored: frozenset[str]) -> list[str]:
    """The words that `own` has more where it has all words of a known text in their order; what leads in is not one."""
    left = [token.casefold() for token in known.tokens if not _is_left_out(token) and stem_of(token) not in ignored]
    more: list[str] = []
    for token in reversed(own.tokens):
        if left and token.casefold() == left[-1]:
            left.pop()
        elif left and is_content(token) and stem_of(token) not in ignored:
            more.append(token)
    return [] if left else more


def _is_left_out(token: str) -> bool:
    return token in CLAUSE_ENDS or token.casefold() in ARTICLES


def other_value(known: str, text: str) -> str | None:
    """The one word of `text` in whose place the known text has another: "walnuts" for "peanuts"; None where none.

    A verb may be in other words ("lives", "resides"): only an object, and what is somebody's or of somebody, counts.
    """
    left, right = ([word for word in words_of(one) if word not in ARTICLES] for one in (known, text))
    if len(left) != len(right):
        return None
    pairs = zip(left, right, strict=True)
    places = [place for place, (one, other) in enumerate(pairs) if stem_of(one) != stem_of(other)]
    if len(places) != 1:
        return None
    (place,) = places
    before, after = right[:place][-1:], right[place + 1 : place + 2]
    is_object = not after or (before and before[0] in PREPOSITIONS) or (place > 1 and is_content(after[0]))
    is_owned = before == ["s"] or (after and after[0] in POSSESSIVES)
    is_told = is_content(left[place]) and is_content(right[place]) and (place > 0 or is_owned)
    return right[place] if (is_object or is_owned) and is_told else None


def is_denial(one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, user_names: Sequence[str] = ()) -> bool:
    """Whether one of two facts denies just what the other says: "Mira eats meat", "Mira no longer eats meat at all".

    "Mira does not like green tea" does not deny that she likes tea, and "she doesn't" denies nothing of Mira.
    """
    if compare_subjects(one.subject, other.subject, user_names) == "other":
        return False
    left, right = read(one.text), read(other.text)
    return _denies(left, right) or _denies(right, left)


def _denies(denial: Reading, positive: Reading) -> bool:
    if not denial.negations or positive.negations:
        return False
    if not denial.is_spaced:
        return denial.signs <= positive.signs
    told = {stem_of(token) for token in denial.tokens if _is_of_denied(token)}
    same = denial.claimed <= positive.details and told <= {stem_of(token) for token in positive.tokens}
    return any(denial.negations) and same


def _is_of_denied(token: str) -> bool:
    word = token.casefold()
    return word[0].isalpha() and word not in NEGATIONS and word not in DENYING_WORDS


def _opposites(said: set[str], words: set[str], own: Reading) -> Iterator[str]:
    """Words that mean the contrary of what was said, and were not said themselves."""
    tokens = {token.casefold() for token in own.tokens}
    for token in tokens:
        base = next((token[len(start) :].lstrip("-") for start in _NEGATING if token.startswith(start)), "")
        if len(base) >= _SHORTEST_INFLECTED and stem_of(base) in said and stem_of(token) not in said:
            yield f'"{token}" was not said'
    for word in words:
        base = next((word[len(start) :].lstrip("-") for start in _NEGATING if word.startswith(start)), "")
        if len(base) >= _SHORTEST_INFLECTED and stem_of(base) in {*own.stems} - said and stem_of(word) not in own.stems:
            yield f'"{word}" was said'
    for sides in OPPOSITES:
        for one, other in (sides, sides[::-1]):
            if tokens & one and words & other and not words & one:
                yield f'"{min(tokens & one)}" was not said'


def _tells(token: str) -> bool:
    word = token.casefold()
    return is_content(token) and not is_number(token) and word not in DATES and word not in UNITS


def _is_known(name: str, words: set[str]) -> bool:
    """Whether a name is among the words, or an inflection of one."""
    if name in words:
        return True
    return any(
        name.startswith(word) or word.startswith(name)
        for word in words
        if min(len(name), len(word)) >= _SHORTEST_INFLECTED
        and (name.removeprefix(word) in _INFLECTIONS or word.removeprefix(name) in _INFLECTIONS)
    )


def _quoted(stems: set[str] | frozenset[str], reading: Reading) -> str:
    found = [token for token in reading.tokens if is_content(token) and stem_of(token) in stems]
    return ", ".join(dict.fromkeys(f'"{token}"' for token in found)) or "it"
