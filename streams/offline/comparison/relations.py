"""How one new fact stands to one known fact. In doubt both stay."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.offline.comparison.opposites import ended, opposed
from mnemolog.streams.offline.comparison.pairs import OF_HAVING, Pair, Relation
from mnemolog.streams.offline.comparison.senses import sense, stems
from mnemolog.streams.offline.comparison.values import beside, corrected, counted, richer, same, slot, switched
from mnemolog.streams.text.subjects import compare_subjects

_READINGS: Final[tuple[Callable[[Pair], Relation | None], ...]] = (
    same,
    ended,
    opposed,
    corrected,
    switched,
    slot,
    counted,
    richer,
    beside,
)
"""The first that has something to say decides."""


def relations(fact: ExtractedFact, known: Candidate, user_names: Sequence[str] = ()) -> Iterator[Relation]:
    """What the new fact does to the known one, at most one thing; nothing where they do not concern one another."""
    if not same_subject(fact, known, user_names):
        if relation := _of_what_is_named(fact, known):
            yield relation
        return
    subject = fact.subject or ""
    new, old = sense(fact.text, subject), sense(known.text, known.subject or subject)
    for read in _READINGS:
        if relation := read(Pair(fact=fact, known=known, new=new, old=old)):
            yield relation
            return


def same_subject(fact: ExtractedFact, known: Candidate, user_names: Sequence[str] = ()) -> bool:
    """Whether both are of one person or thing; "Ana's brother" may be "Ana's brother Tom"."""
    if known.subject and compare_subjects(fact.subject, known.subject, user_names) == "same":
        return True
    ours, theirs = normalise(fact.subject or ""), normalise(known.subject or "")
    if not theirs and normalise(known.text).startswith((f"{ours} ", f"{ours}'s ")):
        theirs = ours
    if not ours or not theirs:
        return False
    return ours == theirs or ours.startswith(f"{theirs} ") or theirs.startswith(f"{ours} ")


def _of_what_is_named(fact: ExtractedFact, known: Candidate) -> Relation | None:
    """As "Ana's dog Rex loves bones", or "Rex loves bones", stands to "Ana has a dog called Rex"."""
    owner, _, owned = normalise(fact.subject or "").rpartition("'s ")
    theirs = normalise(known.subject or owner)
    if (owner and owner != theirs) or not normalise(known.text).startswith(theirs or "\n"):
        return None
    new, old = sense(fact.text, fact.subject or ""), sense(known.text, known.subject or owner)
    words = stems(owned)
    if not words or not (words <= old.words or (words & old.words and not old.words & {"called", "name"})):
        return None
    if new.stance == "over" and not new.words and old.affirms and old.lasting and old.verb not in ("like", "name"):
        possessive = normalise(known.text).startswith(f"{theirs}'s ")
        return None if possessive else Relation("RETRACT", "what it was about is no more")
    if old.verb in OF_HAVING and old.affirms:
        return Relation("EXTEND", "tells more of what the known fact names")
    return Relation("SIMILAR", "is about what the known fact names")
