"""What the text of an extracted fact asserts beyond the words of its turn: amounts, and negations that are turned.

Only what is certain is refused: a fact that is left out is lost. Dates, years, times of day and small counts may follow
from what was said ("yesterday", "half past four", "a son and a daughter"), but no other weekday, measure or count than
was said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.assertions import mispaired
from mnemolog.streams.text.pairings import recounted
from mnemolog.streams.text.readings import Reading, is_number, read
from mnemolog.streams.text.tokens import numbers_of, units_of
from mnemolog.streams.text.word_lists import DATES, NEGATIONS, NUMBERS

_LARGEST_COUNT: Final = 12
"""Up to it a number without a unit may be counted from what was named."""
_LONG: Final = 4  # digits
_CONJUGATED: Final = 3  # letters that forms of a verb have in common
_MEASURES: Final = frozenset(
    {"kg", "g", "mg", "km", "m", "cm", "mm", "mile", "foot", "inch", "litre", "ml", "ounce"}
) | {*("pound", "euro", "dollar", "franc", "yen", "percent", "kcal", "celsius", "fahrenheit")}
_KINDS: Final = (frozenset(day for day in DATES.values() if day.startswith("weekday")), _MEASURES)
"""Details of which a text has no other ones than its excerpt."""
_TURNS_AROUND: Final = frozenset({"without", "ohne", "sans", "sin", "senza", "sem"}) | {
    *("until", "till", "bis", "jusque", "jusqu", "hasta", "fino", "até")
}
_NEGATIVE = re.compile(r"\b(?:un|dis|non|nicht|mis|in|im)[-\w]{3,}|\w+(?:less|free|frei)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")


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
    told = said.details | turn.named if any(_amounts(excerpt)) else turn.details
    yield from (number for number in _amounts(text) if number not in told and not _spelled(number, turn))
    yield from mispaired([excerpt], text)
    yield from sorted((_replaced(own, said) | recounted(excerpt, text)) - turn.details)
    if not own.is_foreign and not said.is_foreign:
        if not is_negative(own) and _denied_outright(said, own):
            yield "the contrary of its excerpt, which denies it"
        if not turn.denies and any(reach and reach <= {*said.stems} for reach in own.negations):
            yield "a negation"


def _replaced(own: Reading, said: Reading) -> frozenset[str]:
    """The weekdays and measures that a text has, where its excerpt has others."""
    return frozenset().union(*(own.claimed & kind - said.claimed for kind in _KINDS if said.claimed & kind))


def _amounts(text: str) -> Iterator[str]:
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
            is_told = unit in _MEASURES or not (_YEAR.fullmatch(number) or token.casefold() in NUMBERS)
            is_part = any(is_number(near) for near in (*tokens[place - 1 : place], *tokens[place + 1 : place + 2]))
            is_large = number.isdigit() and int(number) > _LARGEST_COUNT
            if is_told and not is_part and (unit in _MEASURES or is_large):
                yield number


def _spelled(number: str, turn: TurnWords) -> bool:
    """Whether the digits of a long number stand in the turn in another form: "5550100" for "555-0100"."""
    return len(number) >= _LONG and number in turn.digits


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
