"""What ends or denies a known fact: it is over, its end is announced, it never was so."""

# ruff: noqa: SIM905 -- a list of words is best read as words

import re
from typing import Final

from mnemolog.streams.offline.comparison.pairs import OF_HAVING, Pair, Relation
from mnemolog.streams.offline.comparison.senses import Sense

_NEVER_WAS: Final = re.compile(r"\b(?:was|were|has|have) never\b|\bnever (?:\w+ed|had|was|went|spoke|drove|took)\b")
_TASTES: Final = frozenset({"soft_preference", "hard_preference"})
_OF_WORK: Final = frozenset({"work", "study", "teaches"})
_AGREEMENTS: Final = frozenset(
    "contract lease tenancy membership subscription internship insurance warranty trial visa licence license permit"
    " pass ticket rental apprenticeship course placement work".split()
)
_LASTING_ON: Final = frozenset({"called", "name", "born", "from", "birthday"})
"""What stays true of the dead."""
_OF_AGREEMENT: Final = {"contract": "work", "internship": "work", "apprenticeship": "work", "placement": "work"}


def ended(pair: Pair) -> Relation | None:
    if not (pair.old.affirms and pair.old.lasting):
        return None
    return _announced(pair) if pair.new.stance == "ending" else _over(pair)


def _announced(pair: Pair) -> Relation | None:
    until = pair.fact.valid_until
    if until is not None and until > pair.known.true_from and _is_of_agreement(pair.new, pair.old):
        return Relation("EXPIRE", "its end is announced")
    return None


def _over(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if pair.fact.key == "employment_status" and old.verb == "work":
        return Relation("RETRACT", "the work has ended")
    if new.stance != "over":
        return None
    if not new.words and old.verb not in _LASTING_ON and not old.words & _LASTING_ON:
        return Relation("RETRACT", "the one it was about is no more")
    return Relation("RETRACT", "it was so and has ended") if _ends(new, old) else None


def _ends(end: Sense, state: Sense) -> bool:
    """Whether what is over is this state. "Left Acme" ends the work there, "sold the car" the having of it."""
    if not end.words or not end.words <= state.words or not end.days <= state.days:
        return False
    if end.verb in ("left", "resigned"):
        return state.verb in _OF_WORK
    if end.verb in ("sold", "lost", "cancelled", "canceled", "gave", "got", "died", "ran"):
        return state.verb in OF_HAVING or (end.verb == "lost" and state.verb in _OF_WORK)
    return state.verb != "like" or end.verb == "like"


def _is_of_agreement(end: Sense, state: Sense) -> bool:
    """Whether "the contract at Acme ends" is of it: of "works at Acme", not of "likes Acme"."""
    kinds = end.words & _AGREEMENTS
    rest = end.words - _AGREEMENTS
    if not kinds and end.words:
        return end.words <= state.words and state.verb in _OF_WORK
    if not rest <= state.words:
        return False
    return bool(kinds & state.words) or (
        bool(rest) and any(_OF_AGREEMENT.get(kind, kind) == state.verb for kind in kinds)
    )


def opposed(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if pair.agree or "ending" in (new.stance, old.stance):
        return None
    return _affirmed(pair) if new.affirms else _denied(pair)


def _affirmed(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if not old.words or not old.words <= new.words or (old.stance == "over" and not _ends(old, new)):
        return None
    return Relation("CONTRADICT", "the denial was wrong") if pair.mistaken else Relation("REPLACE", "it is so now")


def _denied(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if new.stance == "over" or not new.words or pair.passing:
        return None
    if not new.words | new.days <= old.words | old.days:
        return None
    taste = new.verb == "like" or pair.fact.category in _TASTES
    if taste and not pair.mistaken and not _NEVER_WAS.search(pair.fact.text):
        return Relation("REPLACE", "the taste has changed")
    return Relation("CONTRADICT", "the known fact is denied")
