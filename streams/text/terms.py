"""Whether a statement and a known fact hold for the same time: a term belongs to its statement and to no other."""

from mnemolog.schemas.facts import Candidate, ExtractedFact


def same_terms(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether both name the same end, or none.

    An announced end of the known fact is no term of it, but the statement may name it.
    """
    if fact.valid_until is None:
        return known.valid_until is None
    return fact.valid_until in (known.valid_until, known.true_to)
