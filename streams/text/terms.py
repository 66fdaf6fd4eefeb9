"""Whether a statement and a known fact hold for the same time: a term belongs to its statement and to no other."""

from datetime import datetime

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.text.times import find_times


def same_terms(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether both name the same end, or none.

    An announced end of the known fact is no term of it, but the statement may name it.
    """
    if fact.valid_until is None:
        return known.valid_until is None
    return fact.valid_until in (known.valid_until, known.true_to)


def changes_term(fact: ExtractedFact, known: Candidate, at: datetime) -> bool:
    """Whether an end other than the known one counts from now on: it is in the words of the statement, said at `at`.

    Otherwise it is that of a whole turn, which ends nothing that has no end.
    """
    return known.valid_until is not None or any(when.role == "until" for when in find_times(fact.excerpt, at))
