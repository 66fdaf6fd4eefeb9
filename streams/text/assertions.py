"""What a text claims beyond others, and what it loses, denies or mixes up of them, as far as words show it.

Each check was kept because it refuses at least nine harmful replies for an honest one (docs/quality.md).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.text.differences import compare_subjects
from mnemolog.streams.text.readings import (
    NUMERIC_DATE,
    Reading,
    has_condition,
    is_content,
    is_number,
    read,
    start_of,
    stem_of,
)
from mnemolog.streams.text.tokens import (
    CONJUNCTIONS,
    DATES,
    NEGATIONS,
    PATTERNS,
    QUALIFIERS,
    TENSE_ENDINGS,
    TENSES,
    UNITS,
    WORDS,
    words_of,
)

SYMMETRIC: Final = CONJUNCTIONS | {",", "or", "oder", "ou", "o", "nor", "ni", "&", "/"}
_IS: Final = frozenset({"is", "are", "was", "ist", "sind", "est", "es", "son", "è", "é"})
UNTIL: Final = frozenset({"until", "till", "bis", "jusque", "jusqu", "hasta", "fino", "até"})
SINCE: Final = frozenset({"since", "seit", "depuis", "desde"})
_TERMS: Final = WORDS["prepositions"] | WORDS["terms"]
_LEAST_COMMON: Final = 3
_SHORT: Final = 4
_LONGEST_ENDING: Final = 2
_RUN: Final = re.compile(
    r"[\u30a1-\u30fa\u30fc]{2,}|(?<=[在叫去到从是])[\u3400-\u9fff]{2,}|[\u3400-\u9fff]{2,}(?=さん|から|[にでとへ])"
)
"""Signs that may be a name: katakana, and ideographs where a name stands."""


def added_details(sources: Sequence[str], text: str, extras: Sequence[str] = ()) -> Iterator[str]:
    """The numbers, dates, units and names of `text` that neither `sources` nor `extras` have."""
    readings, own = [read(source) for source in (*sources, *extras)], read(text)
    details = frozenset().union(*(reading.details for reading in readings))
    yield from _claims_beyond(own, details)
    yield from added_names(text, (*sources, *extras))


def _claims_beyond(own: Reading, details: frozenset[str]) -> list[str]:
    """What a text claims beyond these details; of a date in digits these may have its numbers."""
    claims = set(own.claimed - details)
    for token in own.tokens:
        parts = [str(int(number)) for number in re.findall(r"\d+", token)] if NUMERIC_DATE.fullmatch(token) else []
        if parts and token not in details and not all({part, f"month {part}"} & details for part in parts):
            claims.add(token)
    return sorted(claims)


def added_names(text: str, sources: Sequence[str]) -> Iterator[str]:
    """The words of a text with a capital, or its runs of signs, that no source has in any form."""
    own = read(text)
    if own.names or not own.is_spaced:
        words = frozenset().union(*(read(source).lower for source in sources))
        yield from strange_names(own, words, frozenset("".join(sources)))


def strange_names(
    own: Reading, words: Collection[str], signs: frozenset[str], sentence: Collection[str] = ()
) -> Iterator[str]:
    """The names of a text that are none of some words in any form; runs of signs of which none of the signs has two.

    Of German, which writes all nouns so, only words behind another noun, or behind "in", "bei", "namens" and the like;
    of a single word the words of a `sentence` tell the language.
    """
    names = own.names
    if not WORDS["german"].isdisjoint(own.lower if len(own.lower) > 1 else sentence):
        before = WORDS["before_german_names"]
        pairs = pairwise(own.tokens)  # "Schwester Johanna", not "Ritas Freizeit"
        names &= {
            two.casefold() for one, two in pairs if one.casefold() in before or (one[0].isupper() and one[-1] != "s")
        }
    yield from sorted(name for name in names if not _is_known(name, words))
    if not own.is_spaced:
        runs = (run for token in own.tokens for run in _RUN.findall(token))
        yield from (run for run in runs if any(signs.isdisjoint(pair) for pair in pairwise(run)))


def _is_known(name: str, words: Collection[str]) -> bool:
    """Whether a name is among the words, or is one with another ending ("Anna", "Annas"; "Казань", "Казани")."""
    start = name[:_LEAST_COMMON]
    alike = (word for word in words if word.startswith(start) and len(start) == _LEAST_COMMON)
    return name in words or any(
        name[:shared] == word[:shared] for word in alike for shared in [max(len(name), len(word)) - _LONGEST_ENDING]
    )


def contrary(one: Reading, other: Reading) -> bool:
    """Whether one text denies what the other affirms in the same words: all that a negation reaches is in both.

    Two negations are none ("cannot live without"), and "not until" turns around what it denies. Words like "hates"
    and "stopped" count as negations where the other text has none.
    """
    for denying, affirming in ((one, other), (other, one)):
        if not {token.casefold() for token in denying.tokens}.isdisjoint(UNTIL):
            continue
        words = frozenset(affirming.stems) if affirming.is_spaced else affirming.signs
        for denial in denying.denials:
            is_soft = denying.is_spaced and denial.word not in NEGATIONS
            # "mit Rauchen aufgehört", "used to play chess"
            is_over = (
                affirming.ending and any(not one.reached for one in affirming.denials)
            ) or " " in affirming.ending
            # "dejé el banco", "dejó el banco": both tell it
            is_soft_in_both = is_soft and (
                affirming.is_negative or {denial.word[:3]} & {*(one[:3] for one in affirming.lower)}
            )
            if is_soft_in_both or is_over:
                continue
            sides = [(_is_denied(word, denying), _is_denied(word, affirming)) for word in denial.reached]
            is_all = bool(sides) and all(_has(word, words) for word in denial.reached)
            if is_all and all(None not in side and side[0] != side[1] for side in sides):
                return True
    return False


def tells_otherwise(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether a known fact tells that what a statement tells is not so, has ended, or is otherwise.

    An end is one of all that it names: "Kim and I are divorced" of "I married Kim". A state ("my dog is ill") is told
    otherwise by all that is said of the thing ("my dog recovered"), of a person ("I'm ill") only by another state.
    """
    own, other = read(fact.text), read(known.text)
    if (own.names ^ other.names) & own.lower_set & other.lower_set:  # "turkey" and "Turkey"
        return False
    ending = "" if known.valid_until else other.ending  # a term ends nothing else
    ended = frozenset(other.stems) - {stem_of(word) for word in ending.split()}
    if contrary(own, other) or (ending and ended and ended <= {*own.stems}):
        return True
    state, known_state = (PATTERNS["state"].match(" ".join(one.lower)) for one in (own, other))
    if state is None:
        return False
    if known_state and known_state["thing"] == state["thing"]:
        return known_state["state"] != state["state"]
    thing = frozenset(read(state["thing"]).stems)
    return thing <= {*other.stems} and not thing <= {*read(fact.subject or "").stems, *map(stem_of, own.names)}


def _is_denied(word: str, reading: Reading) -> bool | None:
    """Whether a clause denies a word, and not twice; None where a negation may reach it."""
    if any(_has(word, denial.unclear) for denial in reading.denials):
        return None
    clauses = Counter(denial.clause for denial in reading.denials if _has(word, denial.reached))
    return any(times % 2 for times in clauses.values())


def _has(word: str, words: frozenset[str]) -> bool:
    """Whether a stem is among others, or a form of it: verbs of few letters have the first ones in common ("como")."""
    return word in words or (
        len(word) <= _SHORT and any(one[:_LEAST_COMMON] == word[:_LEAST_COMMON] for one in words if len(one) <= _SHORT)
    )


def lost_details(parents: Sequence[str], text: str) -> Iterator[str]:
    """The numbers, dates, units and names of `parents` that `text` lacks, and clauses of which it has no word."""
    own = read(text)
    for parent in parents:
        yield from _claims_beyond(read(parent), own.details)
        yield from ["doubt"] * (has_condition(parent) and not has_condition(text))
        yield from added_names(parent, [text])
        yield from foreign_clauses(parent, [text])


def foreign_clauses(text: str, sources: Sequence[str]) -> Iterator[str]:
    """The clauses of a text, of at least two words that tell something, of which no source has any word."""
    readings = [read(source) for source in sources]
    known = frozenset().union(*(reading.words | reading.signs for reading in readings))
    tokens = {token.casefold() for reading in readings for token in reading.tokens}
    for clause in read(text).clauses:
        told = [token.casefold() for token in clause.tokens if _tells(token) and token.casefold() not in clause.names]
        told = told if clause.is_spaced else sorted(clause.signs)
        if len(told) > 1 and not any(
            {word, stem_of(word), start_of(word)} & known or _is_known(word, tokens) for word in told
        ):
            yield " ".join(told)


def lost_words(parent: str, text: str) -> list[str]:
    own = read(text)
    tokens = {token.casefold() for token in own.tokens}
    told = [token.casefold() for token in read(parent).tokens if _tells(token)]
    return [word for word in told if not ({stem_of(word), start_of(word)} & own.words or _is_known(word, tokens))]


def unsaid_terms(known: str, text: str) -> Iterator[str]:
    """The words behind a preposition with which a text says more than a known one: "for backends"."""
    before, own = read(known), read(text)
    if len({*before.stems} - {*own.stems}) > 1:  # the verb may be another one
        return
    lost, words = lost_words(text, known), [word for word in own.lower if word not in WORDS["articles"] | WORDS["my"]]
    for preposition, word in pairwise(words):
        is_term = preposition in _TERMS and preposition not in before.lower
        yield from [word] * (is_term and word in lost and word not in WORDS["attributes"])


def mixed_up(parents: Sequence[str], text: str) -> bool:
    """Whether several clauses of a text each mix words that only one parent has with words of another alone.

    "Ann plays chess", "Bob plays golf": "Ann plays golf and Bob plays chess".
    """
    words = [frozenset((*read(parent).stems, *read(parent).claimed)) for parent in parents]
    own = [one - frozenset().union(*words[:at], *words[at + 1 :]) for at, one in enumerate(words)]
    clauses = [frozenset((*clause.stems, *clause.claimed)) for clause in read(text).clauses]
    return sum(sum(bool(clause & one) for one in own) > 1 for clause in clauses) > 1


def moved(sources: Iterable[Reading], own: Reading) -> Iterator[str]:
    """The numbers that belong to another thing than in the sources."""
    if not own.counted:
        return
    known = frozenset().union(*(source.counted for source in sources))
    numbers, things = {number for number, _ in known}, {thing for _, thing in known}
    for number, thing in sorted(own.counted - known):
        if number in numbers and thing in things:
            yield f"{number} {thing}"


def is_denial(one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, user_names: Sequence[str] = ()) -> bool:
    """Whether one of two facts denies just what the other says: "Mira eats meat", "Mira no longer eats meat at all".

    "Mira does not like green tea" does not deny that she likes tea, and "she doesn't" denies nothing of Mira.
    """
    if compare_subjects(one.subject, other.subject, user_names) == "other":
        return False
    denial, positive = sorted((read(one.text), read(other.text)), key=lambda reading: not reading.denies)
    if not denial.denies or positive.denies or not any(one.reached for one in denial.denials):
        return False
    if not denial.is_spaced:
        return denial.signs <= positive.signs
    denied = {stem_of(token) for token in denial.tokens if token[0].isalpha() and is_content(token)}
    return denial.claimed <= positive.details and denied <= {stem_of(token) for token in positive.tokens}


def reordered(known: str, text: str) -> bool:
    """Whether a text has just the words of another one in another order ("Ann manages Bob", "from Rome to Milan").

    Not what stands around "and", or on the two sides of "is".
    """
    left, right = ([*words_of(one)] for one in (known, text))
    if left == right or sorted(left) != sorted(right) or not SYMMETRIC.isdisjoint(left):
        return False
    return not any(word in _IS and left == [*right[at + 1 :], word, *right[:at]] for at, word in enumerate(right))


def other_value(known: str, text: str) -> str | None:
    """The word of `text` in the place of another one of the known text: "milk" in "is allergic to milk", for "nuts".

    A verb may be in other words ("lives", "resides"): only what follows an article, a preposition or another word
    that tells something counts.
    """
    left, right = (  # the words that tell something, each with the word before it
        [(before, token) for before, token in pairwise(("", *read(one).tokens)) if _tells(token)]
        for one in (known, text)
    )
    stems, others = ([stem_of(token) for _, token in words] for words in (left, right))
    places = [at for at, (one, other) in enumerate(zip(stems, others, strict=False)) if one != other]
    if len(left) != len(right) or len(places) != 1:
        return None
    place = places[0]
    may_be_verb = place == 0 or (place == 1 and right[0][1][0].isupper())
    before = {left[place][0].casefold(), right[place][0].casefold()}
    is_noun = before <= WORDS["articles"] | WORDS["possessives"]  # of both: "started at" is no value for "has a job at"
    return right[place][1] if is_noun or not may_be_verb else None


def _tells(token: str) -> bool:
    word = token.casefold()
    is_amount = is_number(token) or word in DATES or word in UNITS or word in QUALIFIERS
    return is_content(token) and not is_amount and word not in WORDS["linking"]


def changed_tense(source: str, text: str) -> bool:
    """Whether a verb of `text` is in another tense than in `source`, where neither has the tense of the other."""
    reading = read(source)
    if reading.ending:
        return False
    said, told = _verbs(reading), _verbs(read(text))
    for sides in TENSES:
        for one, other in (sides, sides[::-1]):
            if said & one and not said & other and told & other and not told & one:
                return True
    gone, come = said - told, told - said
    return any(_presents(past) & come for past in gone) or any(_presents(past) & gone for past in come)


def tells_past(text: str) -> bool:
    """Whether a text tells what was, by the form of its verbs, and not what has been so since: "lived in Kiel"."""
    own = read(text)
    if not SINCE.isdisjoint(map(str.casefold, own.tokens)):
        return False
    verbs = _verbs(own) - own.names - DATES.keys()
    return bool(own.ending) or any(_presents(verb) or any(verb in past for past, _ in TENSES) for verb in verbs)


def _verbs(reading: Reading) -> frozenset[str]:
    """The words but for "was" of "was born", and for those after a form of "to be" or "to have" ("has lived in")."""
    words = [token.casefold() for token in ("", *reading.tokens, "")]
    found = zip(words, pairwise(words[1:]), strict=False)
    return frozenset(word for before, (word, after) in found if before not in WORDS["auxiliaries"] and after != "born")


def _presents(past: str) -> frozenset[str]:
    """What a word is in the present, if it is a verb in the past; joining words are in no tense ("a dog named Rex")."""
    bases = ((past.removesuffix(end), now) for end, now in TENSE_ENDINGS if past.endswith(end))
    forms = frozenset(base + now for base, now in bases if len(base) >= _LEAST_COMMON)
    return forms if past not in WORDS["linking"] else frozenset()
