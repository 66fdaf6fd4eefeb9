"""What a fact's text says, to compare two of them: its words, its numbers, and whether it denies."""

# ruff: noqa: SIM905 -- a list of words is best read as words

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from mnemolog.schemas.base import normalise

Stance = Literal["holds", "denied", "over", "ending"]
"""It is so; it is not or never was; it has ended; its end is announced."""

_SYNONYMS: Final[dict[str, str]] = {
    word: meaning
    for meaning, words in {
        "like": "likes loves enjoys adores prefers like love loved liked enjoy prefer dislikes hates detests fond",
        "live": "lives live lived resides",
        "work": "works work worked job position employment employed",
        "has": "has have had owns own owned got",
        "use": "uses use used",
        "is": "is am are be been become becomes became",
        "study": "studies study studied",
        "kid": "kids kid child children",
        "mother": "mom mum",
        "father": "dad",
        "1": "one",
        "2": "two",
        "3": "three",
        "4": "four",
        "5": "five",
        "6": "six",
        "7": "seven",
        "8": "eight",
        "9": "nine",
        "10": "ten",
        "11": "eleven",
        "12": "twelve",
        "13": "thirteen",
        "14": "fourteen",
        "15": "fifteen",
        "16": "sixteen",
        "17": "seventeen",
        "18": "eighteen",
        "19": "nineteen",
        "20": "twenty",
        "30": "thirty",
        "40": "forty",
        "50": "fifty",
        "60": "sixty",
        "70": "seventy",
        "80": "eighty",
        "90": "ninety",
        "100": "hundred",
    }.items()
    for word in words.split()
}
_EMPTY: Final = frozenset(
    "a an the is does do did to of in at on for as with since from by until and their them they his her its he she it"
    " not neither nor never no longer cannot anymore again now also very too really that this any some only just"
    " been there".split()
)
_DENYING: Final = frozenset("not never no neither nor cannot dislikes hates detests without".split())
_OVER: Final = frozenset(
    "sold lost left quit stopped ended expired died cancelled canceled dropped resigned divorced retired disbanded"
    " gave up"
    " away got rid broke split passed closed shut down out moved".split()
)
_OVER_VERBS: Final = _OVER - frozenset("gave up away got rid broke split passed closed shut down out moved".split())
_OVER_PHRASE: Final = re.compile(
    r"\bno longer\b|\bgave (?:up|away)\b|\b(?:closed|shut) down\b|\b(?:broken|split) up\b|\bgot rid of\b|\b(?:broke"
    r"|split) up\b|\bpassed away\b|\bran out\b"
    r"|\bis over\b|\bmoved (?:out|away)\b"
)
_ENDING: Final = re.compile(
    r"\b(?:ends|expires|runs out|finishes|terminates)\b|\bwill (?:end|expire|stop|leave|quit)\b|\bis (?:leaving"
    r"|quitting)\b"
    r"|\blast (?:day|week|month|shift)\b"
)
_ENDING_WORDS: Final = frozenset(
    "ends end expires expire runs out finishes terminates will stop leave leaving quit quitting last shift".split()
)
_TIMES: Final = frozenset(
    "january february march april may june july august september october november december week month year day".split()
)
_DAYS: Final = frozenset(
    f"{day}{plural}"
    for day in (
        "monday tuesday wednesday thursday friday saturday sunday morning afternoon evening night weekend".split()
    )
    for plural in ("", "s")
)
_SHORT: Final = 3  # "bus" and "gas" are no plurals
_WORD: Final = re.compile(r"[^\W_]+(?:[.,:'-][^\W_]+)*")
_STATES: Final = re.compile(r"(?:is|has|does|goes|was never)\b|[a-z]+s\b")
_PREFERRED: Final = re.compile(r"(?P<kept>\bprefers .+?) (?:to|over|rather than) .*")
_AUXILIARY: Final = re.compile(rf"^(?:has|have) (?=(?:{'|'.join(sorted(_OVER))}|broken)\b)|\b(?:was|were) (?=never\b)")
_PLAN: Final = re.compile(
    r"(?:plans|needs|wants|hopes|has) to\b|is (?:going to|planning|moving|flying|travel+ing|visiting|starting"
    r"|thinking)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """`words` carry the statement without its subject, its denial and its times; `verb` is the first of them.

    `quantities` are its numbers and dates, `days` those of the week and parts of a day: they narrow what is said.
    A `lasting` one tells a state, no event and no plan.
    """

    stance: Stance
    verb: str
    words: frozenset[str]
    quantities: frozenset[str]
    days: frozenset[str]
    lasting: bool

    @property
    def all(self) -> frozenset[str]:
        return self.words | self.quantities | self.days

    @property
    def affirms(self) -> bool:
        return self.stance in ("holds", "ending")


@lru_cache(maxsize=1024)  # a known fact is read once for each new one
def sense(text: str, subject: str) -> Sense:
    """What `text` says of `subject`, with which it begins."""
    predicate = _predicate(text, subject)
    said = _WORD.findall(_AUXILIARY.sub("", predicate))
    stance = _stance(predicate, said)
    verb = next((word for word in said if word not in _DENYING and word != "longer"), "")
    dropped = {"over": _OVER, "ending": _ENDING_WORDS}.get(stance, frozenset())
    carried = [word for word in said if word not in dropped]
    carrying = stems(" ".join(carried))
    quantities = {word for word in carrying if word[:1].isdigit() or word in _TIMES}
    days = {word for word in carried if word in _DAYS}
    return Sense(
        stance=stance,
        verb=_SYNONYMS.get(verb, verb),
        words=frozenset(carrying - quantities - {_stem(day) for day in days}),
        quantities=frozenset(quantities),
        days=frozenset(day.removesuffix("s") for day in days),
        lasting=_is_state(text, subject, predicate),
    )


def _predicate(text: str, subject: str) -> str:
    """What follows the subject; of "Ana's rent is 900" what follows "Ana's"."""
    words, start = _PREFERRED.sub(r"\g<kept>", normalise(text)), normalise(subject)
    return words.removeprefix(start).removeprefix("'s").strip() if start and words.startswith(start) else words


def _stance(predicate: str, said: list[str]) -> Stance:
    if _ENDING.search(predicate):
        return "ending"
    if _OVER_PHRASE.search(predicate) or any(word in _OVER_VERBS for word in said[:4]):
        return "over"
    return "denied" if any(word in _DENYING for word in said) else "holds"


def _is_state(text: str, subject: str, predicate: str) -> bool:
    if _PLAN.match(predicate):
        return False
    return normalise(text).startswith(f"{normalise(subject)}'s ") or bool(_STATES.match(predicate))


def _stem(word: str) -> str:
    known = _SYNONYMS.get(word)
    if known:
        return known
    plain = word.removesuffix("'s")
    return plain.removesuffix("s") if len(plain) > _SHORT and not plain.endswith("ss") else plain


def stems(words: str) -> frozenset[str]:
    """The words that carry a phrase, as `Sense.words` has them."""
    return frozenset({_stem(word) for word in _WORD.findall(words) if word not in _EMPTY} - _EMPTY)
