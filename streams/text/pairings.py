"""Which amount, date or name belongs to which thing in a text, and who does what to whom."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Final

from mnemolog.streams.text.readings import clauses_of, is_content, is_number, read, stem_of
from mnemolog.streams.text.tokens import CLAUSE_ENDS, CONJUNCTIONS, SENTENCE_ENDS, in_its_language, numbers_of, words_of
from mnemolog.streams.text.word_lists import DATES, UNITS

_COSTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(CONJUNCTIONS, 4),
    **dict.fromkeys(CLAUSE_ENDS, 4),
    ";": 8,
    **dict.fromkeys(SENTENCE_ENDS, 20),
}
"""Of a token between a thing and its amount; any other costs 1."""
_MAX_BETWEEN: Final = 4  # words between two that have a part in what the sentence says
_FEWEST_SWAPPED: Final = 2  # values that can change places
_NEAR: Final = 3  # words after an amount in which its thing is named
_SYMMETRIC: Final = CONJUNCTIONS | {",", "or", "oder", "ou", "o", "nor", "ni", "&", "/"}
_YEAR = re.compile(r"(?:19|20)\d\d")
_JOINS: Final = frozenset({"of", "de", "d", "von", "di"})
_Kind = Callable[[Sequence[str]], list[str | None]]
"""The values of one kind among tokens, at their places."""
_Words = tuple[str, ...]
_Pairs = dict[tuple[str, str], list[_Words]]
_Links = dict[str, frozenset[str]]
"""For each thing the value that it is nearest to."""


def swapped(sources: Sequence[str], text: str, ignored: frozenset[str]) -> frozenset[str]:
    """The amounts, dates, names and objects of `text` that have changed places with others of the sources.

    "10 mg in the morning, 5 mg at night" against "5 mg in the morning and 10 mg at night". Words of `ignored` are the
    subject, and belong to all.
    """
    found: set[str] = set()
    for kind in (_amounts, _dates, _names, _objects_of(sources)):
        if len({*kind(read(text).tokens)} - {None}) < _FEWEST_SWAPPED:
            continue
        before = _joined(_links(source, kind, ignored) for source in sources)
        after = _links(text, kind, ignored)
        moves = {
            (old, new)
            for thing, values in after.items()
            for new in values
            for old in before.get(thing, frozenset())
            if new not in before.get(thing, frozenset()) and _is_exclusive(before, thing)
        }
        found |= {new for old, new in moves if _reaches(moves, new, old)}
    return frozenset(found)


def misplaced_amounts(sources: Sequence[str], text: str) -> frozenset[str]:
    """The numbers that stand before another thing in `text` than in the sources ("3 cats", "dogs"; "3 dogs")."""
    known: dict[str, set[str]] = {}
    beside = _neighbours(text).difference(*map(_neighbours, sources))
    stems = {stem for source in sources for stem in read(source).stems}
    for source in sources:
        for number, thing, _ in _counted(source):
            known.setdefault(number, set()).update({thing} - {""})
    return frozenset(one for one, other in beside if one in known and other in known) | frozenset(
        number
        for number, thing, near in _counted(text)
        if number in known and thing in stems and thing not in known[number] and not known[number] & near
    )


def recounted(source: str, text: str) -> frozenset[str]:
    """The numbers before a thing that the source counts otherwise, and names once ("3 rooms", "4 rooms")."""
    told: dict[str, set[str]] = {}
    for number, thing, _ in _counted(source):
        told.setdefault(thing, set()).add(number)
    once = {thing for thing in told if thing and read(source).stems.count(thing) == 1}
    return frozenset(number for number, thing, _ in _counted(text) if thing in once and number not in told[thing])


def _neighbours(text: str) -> frozenset[tuple[str, str]]:
    """Numbers with another one right after them."""
    amounts = _amounts(read(text).tokens)
    return frozenset((one, other) for one, other in pairwise(amounts) if one and other)


def reversed_roles(sources: Sequence[str], text: str) -> frozenset[str]:
    """Pairs of words that have changed places around the same words ("the dog bit the man", "the man bit the dog")."""
    words, others = _words(text), [*map(_words, sources)]
    if all(_are_in_one_order(words, other) for other in others):
        return frozenset()
    own, known = _pairs([words]), _pairs(others)
    return frozenset(
        f"{one} {' '.join(between)} {other}"
        for one, other in own
        if (other, one) in known
        for between in _between(own, one, other) & _between(known, other, one)
        if between not in _between(known, one, other) | _between(own, other, one)
    )


def _words(text: str) -> _Words:
    return words_of(in_its_language(text))


def _are_in_one_order(one: _Words, other: _Words) -> bool:
    """Whether the words of both that tell something come in one order, each of them once."""
    shared = {word for word in {*one} & {*other} if _tells(word)}
    left, right = ([word for word in words if word in shared] for words in (one, other))
    return left == right and len(left) == len(shared)


def _tells(word: str) -> bool:
    return is_number(word) or is_content(word)


def _between(pairs: _Pairs, one: str, other: str) -> set[_Words]:
    """What is between two words: all of it, and each word of it that tells something."""
    found: set[_Words] = set()
    for between in pairs.get((one, other), ()):
        if not _SYMMETRIC.issuperset(between):
            found.add(between)
            if CLAUSE_ENDS.isdisjoint(between) and CONJUNCTIONS.isdisjoint(between):
                found.update((word,) for word in between if is_content(word))
    return found


def _pairs(texts: Iterable[_Words]) -> _Pairs:
    """Two words that tell something, one not far behind the other, each time with what is between them."""
    pairs: _Pairs = {}
    for words in texts:
        telling = [*map(_tells, words)]
        for start in (place for place, tells in enumerate(telling) if tells):
            for end in range(start + 2, min(start + 2 + _MAX_BETWEEN, len(words))):
                if telling[end] and words[start] != words[end]:
                    pairs.setdefault((words[start], words[end]), []).append(words[start + 1 : end])
    return pairs


@lru_cache(maxsize=2048)
def _counted(text: str) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Each number with the word right after it and its unit, or "", and the words near after it."""
    return tuple(_found_counts(text))


def _found_counts(text: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    for clause in clauses_of(read(text).tokens):
        for place, token in enumerate(clause):
            if not is_number(token) or token.casefold() in DATES or _YEAR.fullmatch(token):
                continue
            rest = clause[place + 1 :]
            while rest and (rest[0].casefold() in UNITS or rest[0].casefold() in _JOINS):
                rest = rest[1:]
            near = frozenset(stem_of(word) for word in rest[:_NEAR] if is_content(word))
            is_thing = bool(rest) and is_content(rest[0]) and rest[0].casefold() not in DATES
            for number in numbers_of([token]):
                yield number, stem_of(rest[0]) if is_thing else "", near


def _links(text: str, kind: _Kind, ignored: frozenset[str]) -> _Links:
    """What of a kind each content word is nearest to; in doubt both."""
    tokens = read(text).tokens
    values = [(place, value) for place, value in enumerate(kind(tokens)) if value and stem_of(value) not in ignored]
    if not values:
        return {}
    places = [0, *accumulate(_COSTS.get(token.casefold(), 1) for token in tokens)]
    links: _Links = {}
    for place, token in enumerate(tokens):
        stem = _thing_of(token)
        after = bisect_left(values, place, key=itemgetter(0))  # only the value before and the one after can be nearest
        beside = values[max(0, after - 1) : after + 1]
        if stem is None or stem in ignored or any(place == at for at, _ in beside):
            continue
        near = sorted((abs(places[place] - places[at]), value) for at, value in beside)
        if nearest := frozenset(value for distance, value in near if distance == near[0][0]):
            links[stem] = links.get(stem, frozenset()) | nearest
    return {thing: found for thing, found in links.items() if len(found) == 1}


def _thing_of(token: str) -> str | None:
    """The date, the number or the stem of a word that tells something; None of another token."""
    if date := DATES.get(token.casefold()):
        return date
    if is_number(token):
        return next(numbers_of([token]), None) or stem_of(token)
    return stem_of(token) if is_content(token) else None


def _amounts(tokens: Sequence[str]) -> list[str | None]:
    return [next(numbers_of([token]), None) if is_number(token) else None for token in tokens]


def _dates(tokens: Sequence[str]) -> list[str | None]:
    return [DATES.get(token.casefold()) for token in tokens]


def _names(tokens: Sequence[str]) -> list[str | None]:
    return [
        token.casefold() if token[0].isupper() and is_content(token) and token.casefold() not in DATES else None
        for token in tokens
    ]


def _objects_of(sources: Sequence[str]) -> _Kind:
    """The stems of the last words that tell something, each of one source only: "dogs" of "is afraid of dogs"."""
    stems = [read(source).stems for source in sources]
    objects = {one[-1] for one in stems if one and sum(one[-1] in other for other in stems) == 1}
    return lambda tokens: [stem_of(token) if stem_of(token) in objects else None for token in tokens]


def _joined(found: Iterable[_Links]) -> _Links:
    joined: _Links = {}
    for links in found:
        for thing, values in links.items():
            joined[thing] = joined.get(thing, frozenset()) | values
    return joined


def _is_exclusive(links: _Links, thing: str) -> bool:
    return len(links.get(thing, ())) == 1


def _reaches(moves: set[tuple[str, str]], start: str, end: str) -> bool:
    """Whether moves lead from one value to another: then both have changed places."""
    seen, open_values = {start}, [start]
    while open_values:
        at = open_values.pop()
        if at == end:
            return True
        following = {new for old, new in moves if old == at} - seen
        seen |= following
        open_values += following
    return False
