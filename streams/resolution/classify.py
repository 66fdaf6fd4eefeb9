"""From similarities to weights: which new facts are added, which are skipped, and on which somebody has to decide."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Thresholds
from mnemolog.schemas.stored import ClosedValue
from mnemolog.streams.resolution.guards import StatementContext, predates
from mnemolog.streams.text.differences import SPEAKER_SUBJECTS, subjects_differ, texts_equivalent

MAX_ENDED_CANDIDATES: Final = 3
"""How many known facts below the conflict threshold a statement that ends something is held against."""


@dataclass(frozen=True, slots=True)
class New:
    """No known fact is near: add. `guard` is the policy that let nothing near be looked at."""

    matched: MatchedFact
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A known fact says the same, word for word (`newer_values` hash) or nearly so (`newer_values` threshold): skip."""

    matched: MatchedFact
    candidate: Candidate
    by: Literal["hash", "threshold"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Known facts are near, and only a reader can tell what the new one means for them; the likeliest come first."""

    matched: MatchedFact
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Obsolete:
    """Its slot held newer values that have ended since: it is history, whatever is near it now."""

    matched: MatchedFact
    newer_values: tuple[ClosedValue, ...]


Classification = New | Duplicate | Conflict | Obsolete


def classify(matched: MatchedFact, thresholds: Thresholds, rules: EffectivePolicy, *, infer: bool) -> Classification:
    """Sort a fact into its band. A raw store knows only duplicate and new, `add_only` only equal words and new."""
    fact = matched.fact
    known_of_it = [known for known in matched.candidates if not subjects_differ(fact, known)]
    same = min(
        (known for known in known_of_it if known.content_hash == fact.content_hash), key=_is_pending, default=None
    )
    if same is not None:
        return Duplicate(matched, same, "hash")
    if rules.add_only:
        return New(matched, "add_only" if matched.candidates else None)
    bound = thresholds.duplicate if infer else thresholds.raw_duplicate
    alike = (known for known in known_of_it if known.similarity > bound and texts_equivalent(fact.text, known.text))
    nearest = max(alike, key=lambda known: known.similarity, default=None)
    if nearest is not None:
        return Duplicate(matched, nearest, "threshold")
    near = conflicting_facts(matched, thresholds, rules) if infer else ()
    return Conflict(matched, near) if near else New(matched)


def classify_obsolete(
    matched: MatchedFact,
    statement_context: StatementContext,
    closed_values: Sequence[ClosedValue],
    rules: EffectivePolicy,
) -> Obsolete | None:
    """The weight of a fact that is older than a value that its slot held when, or after, it was said.

    What had ended before it was said says nothing about it.
    """
    fact = matched.fact
    newer = tuple(
        bygone
        for bygone in closed_values
        if fact.key == bygone.key
        and _may_be_same_subject(fact.subject, bygone.subject)
        and statement_context.said_at < bygone.true_to
        and predates(statement_context.true_from, statement_context, bygone)
    )
    return Obsolete(matched, newer) if newer and fills_slot(fact, rules) else None


def fills_slot(fact: ExtractedFact, rules: EffectivePolicy) -> bool:
    """Whether a fact is the one value of its key; one that only ends something fills nothing."""
    return fact.action_hint != "retract" and (fact.single_valued or rules.is_single_valued(fact.key))


def conflicting_facts(matched: MatchedFact, thresholds: Thresholds, rules: EffectivePolicy) -> tuple[Candidate, ...]:
    """The known facts that a fact may conflict with: of its slot, near it, or near what it ends; in this order."""
    found = dict.fromkeys(known for known in matched.candidates if same_slot(matched.fact, known, rules))
    found |= dict.fromkeys(known for known in matched.candidates if known.similarity >= thresholds.conflict)
    found |= dict.fromkeys(_possibly_ended(matched, thresholds))
    return tuple(found)


def _possibly_ended(matched: MatchedFact, thresholds: Thresholds) -> Iterator[Candidate]:
    if matched.fact.action_hint == "new":
        return
    below = (known for known in matched.candidates if thresholds.ending <= known.similarity < thresholds.conflict)
    yield from sorted(below, key=lambda known: -known.similarity)[:MAX_ENDED_CANDIDATES]


def same_slot(fact: ExtractedFact, known: Candidate, rules: EffectivePolicy) -> bool:
    """Whether both are values of one key that holds one at a time."""
    if fact.key is None or fact.key != known.key:
        return False
    one_value = fact.single_valued or known.single_valued or rules.is_single_valued(fact.key)
    return one_value and _may_be_same_subject(fact.subject, known.subject)


def _may_be_same_subject(one: str | None, other: str | None) -> bool:
    """Whether two subjects can be the same: unless both are named, and differently. A wrong yes costs a question."""
    named, also = normalise(one or ""), normalise(other or "")
    return not named or not also or named in SPEAKER_SUBJECTS or also in SPEAKER_SUBJECTS or named == also


def _is_pending(known: Candidate) -> bool:
    """What is active comes before what is pending."""
    return known.status != "active"
