"""From similarities to weights: which new facts are added, which are skipped, and on which somebody has to decide."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Guard, Thresholds
from mnemolog.streams.stages.guarding import Saying, older
from mnemolog.streams.stages.likeness import SPEAKERS, told_of_another, vouched
from mnemolog.streams.stages.lookups import Bygone

MAX_ENDINGS: Final = 3
"""How many known facts below the conflict threshold a statement that ends something is held against."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """No known fact is near: add. `guard` is the policy that let nothing near be looked at."""

    matched: MatchedFact
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A known fact says the same, word for word (`by` hash) or nearly so (`by` threshold): skip."""

    matched: MatchedFact
    candidate: Candidate
    by: Literal["hash", "threshold"]


@dataclass(frozen=True, slots=True)
class Contested:
    """Known facts are near, and only a reader can tell what the new one means for them; the likeliest come first."""

    matched: MatchedFact
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Its slot held newer values that have ended since: it is history, whatever is near it now."""

    matched: MatchedFact
    by: tuple[Bygone, ...]


Weight = Fresh | Duplicate | Contested | Overtaken


def weigh(matched: MatchedFact, thresholds: Thresholds, rules: Rules, *, infer: bool) -> Weight:
    """Sort a fact into its band. A raw store knows only duplicate and new, `add_only` only equal words and new."""
    fact = matched.fact
    known_of_it = [known for known in matched.candidates if not told_of_another(fact, known)]
    same = min((known for known in known_of_it if known.content_hash == fact.content_hash), key=_held, default=None)
    if same is not None:
        return Duplicate(matched, same, "hash")
    if rules.add_only:
        return Fresh(matched, "add_only" if matched.candidates else None)
    bound = thresholds.duplicate if infer else thresholds.raw_duplicate
    alike = (known for known in known_of_it if known.similarity > bound and vouched(fact.text, known.text))
    nearest = max(alike, key=lambda known: known.similarity, default=None)
    if nearest is not None:
        return Duplicate(matched, nearest, "threshold")
    near = conflicting(matched, thresholds, rules) if infer else ()
    return Contested(matched, near) if near else Fresh(matched)


def overtaken(matched: MatchedFact, saying: Saying, bygones: Sequence[Bygone], rules: Rules) -> Overtaken | None:
    """The weight of a fact that is older than a value that its slot held when, or after, it was said.

    What had ended before it was said says nothing about it.
    """
    fact = matched.fact
    newer = tuple(
        bygone
        for bygone in bygones
        if fact.key == bygone.key
        and _may_be_same(fact.subject, bygone.subject)
        and saying.said_at < bygone.true_to
        and older(saying.true_from, saying, bygone)
    )
    return Overtaken(matched, newer) if newer and fills_slot(fact, rules) else None


def fills_slot(fact: ExtractedFact, rules: Rules) -> bool:
    """Whether a fact is the one value of its key; one that only ends something fills nothing."""
    return fact.action_hint != "retract" and (fact.single_valued or rules.has_one_value(fact.key))


def conflicting(matched: MatchedFact, thresholds: Thresholds, rules: Rules) -> tuple[Candidate, ...]:
    """The known facts that a fact may conflict with: of its slot, near it, or near what it ends; in this order."""
    found = dict.fromkeys(known for known in matched.candidates if of_its_slot(matched.fact, known, rules))
    found |= dict.fromkeys(known for known in matched.candidates if known.similarity >= thresholds.conflict)
    found |= dict.fromkeys(_endings(matched, thresholds))
    return tuple(found)


def _endings(matched: MatchedFact, thresholds: Thresholds) -> Iterator[Candidate]:
    if matched.fact.action_hint == "new":
        return
    below = (known for known in matched.candidates if thresholds.ending <= known.similarity < thresholds.conflict)
    yield from sorted(below, key=lambda known: -known.similarity)[:MAX_ENDINGS]


def of_its_slot(fact: ExtractedFact, known: Candidate, rules: Rules) -> bool:
    """Whether both are values of one key that holds one at a time."""
    if fact.key is None or fact.key != known.key:
        return False
    one_value = fact.single_valued or known.single_valued or rules.has_one_value(fact.key)
    return one_value and _may_be_same(fact.subject, known.subject)


def _may_be_same(one: str | None, other: str | None) -> bool:
    """Whether two subjects can be the same: unless both are named, and differently. A wrong yes costs a question."""
    named, also = normalise(one or ""), normalise(other or "")
    return not named or not also or named in SPEAKERS or also in SPEAKERS or named == also


def _held(known: Candidate) -> bool:
    """What is active comes before what is pending."""
    return known.status != "active"
