"""What a text asserts that others do not, and what it loses of them, in words that a complaint can use.

By words, capitals and lists in six languages; of other scripts only digits, Latin names and signs of negation are read.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from mnemolog.schemas.facts import Candidate, Certainty, ExtractedFact
from mnemolog.streams.text.losses import lost_ending, lost_words, tells
from mnemolog.streams.text.pairings import misplaced_amounts, reversed_roles, swapped
from mnemolog.streams.text.readings import Reading, dates_in, is_content, read, start_of, stem_of
from mnemolog.streams.text.subjects import compare_subjects
from mnemolog.streams.text.tenses import changed_tenses
from mnemolog.streams.text.tokens import CLAUSE_ENDS, in_its_language, words_of
from mnemolog.streams.text.word_lists import (
    ARTICLES,
    DENYING_WORDS,
    LINKING_WORDS,
    NEGATIONS,
    OPPOSITES,
    POSSESSIVES,
    PREPOSITIONS,
    SENTENCE_STARTERS,
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
        if tells(token) and token.casefold() not in LINKING_WORDS and not {stem_of(token), start_of(token)} & known:
            yield f'"{token}"'
    if not own.is_spaced:
        yield from sorted(own.signs - frozenset().union(*(reading.signs for reading in readings)))


def other_matter(known: str, text: str, ignored: frozenset[str]) -> Iterator[str]:
    """What shows that a text is about something else than the known one: an end or a plan, or no word of its."""
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
    yield from _words_of_its_own(reading, own, ignored)


def _words_of_its_own(known: Reading, own: Reading, ignored: frozenset[str]) -> Iterator[str]:
    """What a text has beside all words of the known one ("a senior engineer"), or instead of one of its signs."""
    if not own.is_spaced:
        yield from sorted(own.signs - known.signs)
    elif added := _inserted(known, own, ignored):
        yield f'"{added[0]}"'


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
    """The first word of `text` that stands where the known text has another: "walnuts" for "peanuts"; None where none.

    A verb may be in other words ("lives", "resides"): only an object, and what is somebody's or of somebody, counts.
    Before it both say the same, more than who it is about, or after it: "is allergic to nuts", "to milk from Kent".
    """
    left, right = ([word for word in words_of(in_its_language(one)) if _has_place(word)] for one in (known, text))
    place = next((at for at, pair in enumerate(zip(left, right, strict=False)) if not _is_one_word(*pair)), None)
    if place is None or not (is_content(left[place]) and tells(right[place])):
        return None
    before, after = right[:place][-1:], right[place + 1 : place + 2]
    is_object = not after or (before and before[0] in PREPOSITIONS) or (place > 1 and is_content(after[0]))
    is_owned = before == ["s"] or (after and after[0] in POSSESSIVES)
    is_same_beside = any(map(is_content, right[1:place])) or _are_alike(left[place + 1 :], right[place + 1 :])
    is_new = is_same_beside and not any(_is_one_word(word, right[place]) for word in left)
    return right[place] if is_new and (is_owned or (is_object and place > 0)) else None


def _is_one_word(one: str, other: str) -> bool:
    return one == other or stem_of(one) == stem_of(other)


def _are_alike(left: Sequence[str], right: Sequence[str]) -> bool:
    return len(left) == len(right) and all(map(_is_one_word, left, right))


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
