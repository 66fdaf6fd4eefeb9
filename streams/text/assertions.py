"""What a text asserts that other texts do not, and what it loses or swaps of them, as far as words show it.

First the checks of decisions and summaries; below the parts they are made of: lost words and tenses, then amounts,
dates and names that have changed places. `TurnWords` and `unsaid` check facts against their turn.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Final, Self

from mnemolog.schemas.facts import Candidate, Certainty, ExtractedFact
from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.differences import compare_subjects
from mnemolog.streams.text.readings import Reading, clauses_of, dates_in, is_content, is_number, read, start_of, stem_of
from mnemolog.streams.text.tokens import (
    ARTICLES,
    AUXILIARIES,
    CLAUSE_ENDS,
    CONJUNCTIONS,
    DATES,
    DENYING_WORDS,
    LINKING_WORDS,
    NEGATIONS,
    NUMBERS,
    OPPOSITES,
    POSSESSIVES,
    PREPOSITIONS,
    SENTENCE_ENDS,
    SENTENCE_STARTERS,
    TENSE_ENDINGS,
    TENSES,
    UNITS,
    in_its_language,
    numbers_of,
    units_of,
    words_of,
)

_NEGATING: Final = ("un", "dis", "non", "nicht", "mis")
_INFLECTIONS: Final = frozenset({"", "s", "es", "n", "en", "e", "er", "em", "ern", "ens"})
_SHORTEST_INFLECTED: Final = 4
_WEAKER: Final = frozenset({"possibly", "intended", "sometimes", "some", "about"})
"""Qualifiers of a statement that says less than the same one without them."""
_DENYING: Final = NEGATIONS | DENYING_WORDS
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
    """The numbers, dates, units, names, words and ends of `parents` that `text` lacks."""
    own, readings = read(text), [read(parent) for parent in parents]
    words = {token.casefold() for token in own.tokens}
    for place, said in enumerate(readings):
        others = [*readings[:place], *readings[place + 1 :]]
        dates = (date for date, parts in dates_in(said) if not _has_date(own.details, parts))
        names = (name for name in said.names if not _is_known(name, words))
        yield from sorted({*(said.claimed - own.details), *dates, *names})
        yield from (f'"{word}"' for word in lost_words(said, own))
        yield from (f'the tense of "{word}"' for word in changed_tenses(said, own))
        if ending := lost_ending(said, others, own):
            yield f'"{ending}"'


def _has_date(details: frozenset[str], parts: Sequence[str]) -> bool:
    return all({part, f"month {part}"} & details for part in parts)


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
    known = {start for reading in readings for token in reading.tokens for start in (stem_of(token), start_of(token))}
    for token in own.tokens if own.is_spaced else ():
        is_known = token.casefold() in LINKING_WORDS or {stem_of(token), start_of(token)} & known
        if is_telling_word(token) and not is_known:
            yield f'"{token}"'
    if not own.is_spaced:
        yield from sorted(own.signs - frozenset().union(*(reading.signs for reading in readings)))


def other_matter(known: str, text: str, ignored: frozenset[str]) -> Iterator[str]:
    """What shows that a text is about something else than the known text: an end or a plan, or no word in common.

    It may also have all words of the known text and more ("a senior engineer").
    """
    reading, own = read(known), read(text)
    if own.ending and not reading.ending:
        yield f'"{own.ending}"'
    if reading.ending and not own.ending and (own.is_never or not own.negations):
        yield f'that it {"never was" if own.is_never else "is"} so: "{reading.ending}"'
    if weaker := reading.claimed & _WEAKER - own.details:
        yield f"that it is so: {min(weaker)}"
    yield from (f'the tense of "{word}"' for word in changed_tenses(reading, own))
    told = {*own.stems, *own.details} - ignored
    if own.stems[:1] == reading.stems[:1]:
        told -= {*own.stems[:1]}  # the subject
    if own.is_spaced and told and not told & {*reading.stems, *reading.details}:
        yield "all that it says"
    if not own.is_spaced:
        yield from sorted(own.signs - reading.signs)
    elif added := _inserted(reading, own, ignored):
        yield f'"{added[0]}"'


def _inserted(known: Reading, own: Reading, ignored: frozenset[str]) -> list[str]:
    """The words that `own` has more where it has all words of a known text in their order; what leads in counts not."""
    words = (token for token in known.tokens if token not in CLAUSE_ENDS and token.casefold() not in ARTICLES)
    left = [token.casefold() for token in words if stem_of(token) not in ignored]
    more: list[str] = []
    for token in reversed(own.tokens):
        if left and token.casefold() == left[-1]:
            left.pop()
        elif left and is_content(token) and stem_of(token) not in ignored:
            more.append(token)
    return [] if left else more


def other_value(known: str, text: str) -> str | None:
    """The first word of `text` that stands where the known text has another: "walnuts" for "peanuts"; None where none.

    A verb may be in other words ("lives", "resides"): only an object, and what is somebody's or of somebody, counts.
    Before it both say the same, more than who it is about, or after it: "is allergic to nuts", "to milk from Kent".
    """
    left, right = ([word for word in words_of(in_its_language(one)) if _has_place(word)] for one in (known, text))
    place = next((at for at, pair in enumerate(zip(left, right, strict=False)) if not _is_one_word(*pair)), None)
    if place is None or not (is_content(left[place]) and is_telling_word(right[place])):
        return None
    before, after = right[:place][-1:], right[place + 1 : place + 2]
    is_object = not after or (before and before[0] in PREPOSITIONS) or (place > 1 and is_content(after[0]))
    is_owned = before == ["s"] or (after and after[0] in POSSESSIVES)
    rest, other_rest = left[place + 1 :], right[place + 1 :]
    is_same_after = len(rest) == len(other_rest) and all(map(_is_one_word, rest, other_rest))
    is_same_beside = any(map(is_content, right[1:place])) or is_same_after
    is_new = is_same_beside and not any(_is_one_word(word, right[place]) for word in left)
    return right[place] if is_new and (is_owned or (is_object and place > 0)) else None


def _is_one_word(one: str, other: str) -> bool:
    return one == other or stem_of(one) == stem_of(other)


def _has_place(word: str) -> bool:
    """Whether a word counts where two texts are held side by side: articles, pronouns and "now" may be there or not."""
    return is_content(word) or word not in SENTENCE_STARTERS or (word in PREPOSITIONS and word not in ARTICLES)


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
    denied = {stem_of(token) for token in denial.tokens if token[0].isalpha() and token.casefold() not in _DENYING}
    same = denial.claimed <= positive.details and denied <= {stem_of(token) for token in positive.tokens}
    return any(denial.negations) and same


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


def lost_words(parent: Reading, merged: Reading) -> Sequence[str]:
    """The words of a parent of which the merged text has no form, but for those that only join ("a dog called Rex").

    Names and what tells of an end are looked for elsewhere. Of a script without spaces the signs that tell something.
    """
    if not parent.is_spaced:
        return sorted(parent.signs - merged.signs)
    kept = {part for token in merged.tokens for part in (stem_of(token), start_of(token))}
    left_out = LINKING_WORDS.union(parent.names, parent.ending.split())
    told = [token for token in parent.tokens if is_telling_word(token) and token.casefold() not in left_out]
    return [token for token in told if not {stem_of(token), start_of(token)} & kept]


def lost_ending(parent: Reading, others: Sequence[Reading], merged: Reading) -> str:
    """What tells of an end in a parent, where the merged text has neither it nor another that no parent has; or ""."""
    words = " ".join(merged.tokens).casefold()
    is_own = merged.ending and merged.ending not in {other.ending for other in others}
    return "" if not parent.ending or is_own or parent.ending in words else parent.ending


def is_telling_word(token: str) -> bool:
    """Whether a token is a word that tells something, and no number, date or unit."""
    word = token.casefold()
    return is_content(token) and not is_number(token) and word not in DATES and word not in UNITS


_ALWAYS_PAST: Final = "born"
_SHORTEST_BASE: Final = 3


def changed_tenses(source: Reading, text: Reading) -> Iterator[str]:
    """The verbs of `text` in another tense than in `source`, where neither has the tense of the other.

    None where the source tells of an end ("used to live in"): that is lost or kept as a whole.
    """
    if source.ending:
        return
    said, told = _verbs(source), _verbs(text)
    for sides in TENSES:
        for one, other in (sides, sides[::-1]):
            if said & one and not said & other and told & other and not told & one:
                yield min(told & other)
    yield from sorted(now for past in said - told for now in _presents(past) & (told - said))
    yield from sorted(past for past in told - said if _presents(past) & (said - told))


def _verbs(reading: Reading) -> frozenset[str]:
    """The words but for "was" of "was born", and for those after a form of "to be" or "to have" ("has lived in")."""
    words = [token.casefold() for token in ("", *reading.tokens, "")]
    found = zip(words, pairwise(words[1:]), strict=False)
    return frozenset(word for before, (word, after) in found if before not in AUXILIARIES and after != _ALWAYS_PAST)


def _presents(past: str) -> frozenset[str]:
    """What a word is in the present, if it is a verb in the past; joining words are in no tense ("a dog named Rex")."""
    bases = ((past.removesuffix(end), now) for end, now in TENSE_ENDINGS if past.endswith(end))
    forms = frozenset(base + now for base, now in bases if len(base) >= _SHORTEST_BASE)
    return forms if past not in LINKING_WORDS else frozenset()


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
            if new not in before.get(thing, frozenset()) and len(before[thing]) == 1
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
    shared = {word for word in {*one} & {*other} if _has_meaning(word)}
    left, right = ([word for word in words if word in shared] for words in (one, other))
    return left == right and len(left) == len(shared)


def _has_meaning(word: str) -> bool:
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
        telling = [*map(_has_meaning, words)]
        for start in (place for place, tells in enumerate(telling) if tells):
            for end in range(start + 2, min(start + 2 + _MAX_BETWEEN, len(words))):
                if telling[end] and words[start] != words[end]:
                    pairs.setdefault((words[start], words[end]), []).append(words[start + 1 : end])
    return pairs


@lru_cache(maxsize=2048)
def _counted(text: str) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Each number with the word right after it and its unit, or "", and the words near after it."""
    found: list[tuple[str, str, frozenset[str]]] = []
    for clause in clauses_of(read(text).tokens):
        for place, token in enumerate(clause):
            if not is_number(token) or token.casefold() in DATES or _YEAR.fullmatch(token):
                continue
            rest = clause[place + 1 :]
            while rest and (rest[0].casefold() in UNITS or rest[0].casefold() in _JOINS):
                rest = rest[1:]
            near = frozenset(stem_of(word) for word in rest[:_NEAR] if is_content(word))
            is_thing = bool(rest) and is_content(rest[0]) and rest[0].casefold() not in DATES
            found += ((number, stem_of(rest[0]) if is_thing else "", near) for number in numbers_of([token]))
    return tuple(found)


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


_LARGEST_COUNT: Final = 12
"""Up to this a number without a unit may be counted from what was named."""
_LONG: Final = 4  # digits of a number that may be written in another form
_CONJUGATED: Final = 3  # letters that forms of a verb have in common
_MEASURES: Final = frozenset(
    {"kg", "g", "mg", "km", "m", "cm", "mm", "mile", "foot", "inch", "litre", "ml", "ounce"}
) | {*("pound", "euro", "dollar", "franc", "yen", "percent", "kcal", "celsius", "fahrenheit")}
_KINDS: Final = (frozenset(day for day in DATES.values() if day.startswith("weekday")), _MEASURES)
"""Weekdays and measures: a text may not have others than its excerpt."""
_TURNS_AROUND: Final = frozenset({"without", "ohne", "sans", "sin", "senza", "sem"}) | {
    *("until", "till", "bis", "jusque", "jusqu", "hasta", "fino", "até")
}
_NEGATIVE = re.compile(r"\b(?:un|dis|non|nicht|mis|in|im)[-\w]{3,}|\w+(?:less|free|frei)\b", re.IGNORECASE)
_LIKELY_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What a turn says, its recalled memory and names included: all that a fact's text can come from.

    `named` are the details of names and of the time of the turn alone.
    """

    details: frozenset[str]
    named: frozenset[str]
    digits: str
    denies: bool

    @classmethod
    def of(cls, turn: Turn) -> Self:
        messages = [message.content for message in turn.messages]
        names = [message.name or "" for message in turn.messages]
        named = [*names, turn.speaker or "", f"{turn.occurred_at:%Y %m %d %H %M}"]
        texts = [*messages, *turn.recalled, *named]
        readings = [read(text) for text in texts]
        return cls(
            details=frozenset().union(*(reading.details for reading in readings)),
            named=frozenset().union(*(read(name).details for name in named)),
            digits=re.sub(r"\D", "", " ".join(texts)),
            denies=any(map(is_negative, readings)),
        )

    def with_question(self, asked: str) -> Self:
        """The same with the words of a question that the turn answers."""
        own = read(asked)
        return replace(
            self,
            details=self.details | own.details,
            digits=self.digits + re.sub(r"\D", "", asked),
            denies=self.denies or is_negative(own),
        )


def unsaid(text: str, excerpt: str, turn: TurnWords) -> Iterator[str]:
    """What the text of a fact says and its turn does not, in words for a complaint."""
    own, said = read(text), read(excerpt)
    stated = said.details | turn.named if any(_measured_amounts(excerpt)) else turn.details
    for number in _measured_amounts(text):
        is_written_otherwise = len(number) >= _LONG and number in turn.digits  # "5550100" for "555-0100"
        if number not in stated and not is_written_otherwise:
            yield number
    yield from mispaired([excerpt], text)
    replaced = frozenset().union(*(own.claimed & kind - said.claimed for kind in _KINDS if said.claimed & kind))
    yield from sorted((replaced | recounted(excerpt, text)) - turn.details)
    if not own.is_foreign and not said.is_foreign:
        if not is_negative(own) and _denied_outright(said, own):
            yield "the contrary of its excerpt, which denies it"
        if not turn.denies and any(reach and reach <= {*said.stems} for reach in own.negations):
            yield "a negation"


def _measured_amounts(text: str) -> Iterator[str]:
    """The numbers that nobody can have counted or reckoned from a day: measures, and what is larger than a count."""
    tokens = read(text).tokens
    for place, token in enumerate(tokens):
        if not is_number(token):
            continue
        around = [near.casefold() for near in tokens[max(0, place - 2) : place + 3]]
        if any(near in DATES for near in around):
            continue
        unit = next(iter([*units_of(tokens[place : place + 2]), *units_of(tokens[max(0, place - 1) : place])]), "")
        for number in numbers_of([token]):
            is_told = unit in _MEASURES or not (_LIKELY_YEAR.fullmatch(number) or token.casefold() in NUMBERS)
            is_part = any(is_number(near) for near in (*tokens[place - 1 : place], *tokens[place + 1 : place + 2]))
            is_large = number.isdigit() and int(number) > _LARGEST_COUNT
            if is_told and not is_part and (unit in _MEASURES or is_large):
                yield number


def _denied_outright(said: Reading, own: Reading) -> bool:
    words = {token.casefold() for token in said.tokens}
    if not said.negations or "?" in said.tokens or words & _TURNS_AROUND or said.negated & said.affirmed:
        return False
    reaches = [reach for reach in said.negations if reach and not any(said.stems.count(stem) > 1 for stem in reach)]
    starts = {stem[:_CONJUGATED] for stem in own.stems}  # "no como", "come"
    return bool(reaches) and all(stem[:_CONJUGATED] in starts for reach in reaches for stem in reach)


def is_negative(reading: Reading) -> bool:
    """Whether a text has a negation, or another word that means that something is not so."""
    words = {token.casefold() for token in reading.tokens}
    return bool(reading.negations or reading.ending or words & NEGATIONS) or any(
        _NEGATIVE.fullmatch(word) for word in words
    )
