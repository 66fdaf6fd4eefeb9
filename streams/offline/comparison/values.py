"""Two facts that agree in kind: the same, another value, another number, more of it, or beside it."""

import re
from typing import Final

from mnemolog.schemas.base import normalise
from mnemolog.streams.offline.comparison.pairs import GENERAL, OF_HAVING, Pair, Relation
from mnemolog.streams.offline.comparison.senses import Sense
from mnemolog.streams.offline.marks import marks
from mnemolog.streams.text.differences import differences, missing_details

_FOR_EVER: Final = frozenset(
    {"birthday", "birth_date", "birth_place", "native_language", "blood_type", "mother", "father", "home_town"}
)
_CHANGED: Final = re.compile(
    r"\b(?:switched|swapped|traded|changed|replaced|instead of|rather than|moved from|went from)\b", re.IGNORECASE
)
_FROM: Final = re.compile(r"\b(?:moved|relocated|switched|went) from (?P<old>.+?) to\b", re.IGNORECASE)
_NOW: Final = re.compile(
    r"\b(?:now|starting|as of|from now on|these days|nowadays|moved?|rescheduled|postponed|extended|changed|new"
    r"|again|since)\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"\d{4}(?:-\d\d-\d\d)?")


def same(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if new.stance == "ending" or new.stance != old.stance or not new.words:
        return None
    if new.all <= old.all and (pair.fact.key == pair.known.key or len(new.words) > 1):
        return Relation("KEEP", "the known fact says it already")
    return None


def corrected(pair: Pair) -> Relation | None:
    """As in "Milan, not Rome", or "two sisters, I was wrong" of three: what is put right says what it puts right."""
    value = pair.known.value
    if pair.mistaken and pair.agree and _counted_otherwise(pair):
        return Relation("CONTRADICT", "the known number was wrong")
    if not pair.agree or not value or not (pair.one_key or pair.new.verb == pair.old.verb):
        return None
    wrong = rf"\bnot (?:[\w'-]+ ){{0,3}}?{re.escape(normalise(value))}\b"
    if normalise(pair.fact.value or "") != normalise(value) and re.search(wrong, normalise(pair.fact.excerpt)):
        return Relation("CONTRADICT", "the new fact says that the known one was wrong")
    return None


def _counted_otherwise(pair: Pair) -> bool:
    ours, theirs = _counts(pair.new), _counts(pair.old)
    alike = pair.new.verb == pair.old.verb and bool((pair.new.words & pair.old.words) - GENERAL)
    return alike and bool(ours and theirs) and not ours & theirs


def switched(pair: Pair) -> Relation | None:
    said, value = normalise(pair.fact.excerpt), normalise(pair.known.value or "")
    preferred = rf" prefers .+ (?:to|over|than) {re.escape(value)}\b"
    if pair.agree and value and re.search(preferred, normalise(pair.fact.text)):
        return Relation("REPLACE", "the preference is the other way round")
    if not (pair.agree and value and _CHANGED.search(said)) or normalise(pair.fact.value or "") == value:
        return None
    if re.search(rf"\b{re.escape(value)}\b", said):
        return Relation("REPLACE", "the new fact says what it took the place of")
    return None


def slot(pair: Pair) -> Relation | None:
    """Two values of a key that holds one."""
    if not (pair.agree and pair.one_slot) or "ending" in (pair.new.stance, pair.old.stance):
        return None
    fact, slot = pair.fact, (pair.fact.key or "").replace("_", " ")
    same = normalise(fact.value or "") == normalise(pair.known.value or "")
    if same or (fact.action_hint != "update" and pair.old.all < pair.new.all):
        return None
    if pair.passing or _is_doubtful(pair):
        return Relation("SIMILAR", "it may hold beside the known one, or for a while")
    if fact.key in _FOR_EVER or pair.mistaken:
        return Relation("CONTRADICT", f"{slot} has one value, and the known one was wrong")
    return Relation("REPLACE", f"{slot} has one value, and it has changed")


def _is_doubtful(pair: Pair) -> bool:
    """Whether another value may be a detail of the known one, or stand beside it."""
    fact = pair.fact
    if "unit" in differences(fact.text, pair.known.text):
        return True
    moved = _FROM.search(fact.excerpt)
    if moved and normalise(pair.known.value or "") not in normalise(moved["old"]):
        return True
    if fact.action_hint == "update" or pair.mistaken:
        return False
    title = (fact.key or "").endswith(("job_title", "profession")) and not _NOW.search(fact.excerpt)
    return title or "beside" in marks(fact.excerpt)


def counted(pair: Pair) -> Relation | None:
    """The same words with another number, at the same days. Another date is another event, unless it was moved."""
    new, old, fact = pair.new, pair.old, pair.fact
    if not pair.agree or new.words != old.words or not new.words or pair.passing:
        return None
    counts = _counts(new) != _counts(old) and bool(_counts(new) and _counts(old))
    dates = new.quantities - _counts(new) != old.quantities - _counts(old)
    if not (counts or dates or new.days != old.days) or "unit" in differences(fact.text, pair.known.text):
        return None
    told = bool(_NOW.search(fact.excerpt)) or pair.mistaken
    event = not new.lasting or fact.importance_category == "specific_event"
    if not told and (event or dates or new.days != old.days):
        return None
    if not (new.quantities | new.days) or not (old.quantities | old.days):
        return None
    return Relation("CONTRADICT", "the known one was wrong") if pair.mistaken else Relation("REPLACE", "it has changed")


def _counts(read: Sense) -> frozenset[str]:
    """The plain numbers, without dates and the names of months."""
    return frozenset(word for word in read.quantities if word[:1].isdigit() and not _DATE.fullmatch(word))


def richer(pair: Pair) -> Relation | None:
    new, old, fact = pair.new, pair.old, pair.fact
    if not pair.agree or not old.words or not old.all < new.all or "ending" in (new.stance, old.stance):
        return None
    if pair.passing or fact.key != pair.known.key or missing_details([pair.known.text], fact.text):
        return Relation("EXTEND", "the new fact says more of the same")
    return Relation("MERGE", "the new fact says the known one and more")


def beside(pair: Pair) -> Relation | None:
    new, old = pair.new, pair.old
    if new.verb in old.words and new.verb not in GENERAL and pair.agree and old.verb in OF_HAVING:
        return Relation("EXTEND", "tells more of what the known fact names")
    if pair.one_key or (new.words & old.words) - GENERAL:
        return Relation("SIMILAR", "it is about the same and says something else")
    return None
