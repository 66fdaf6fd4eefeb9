"""Classifies a fact as new, duplicate, conflict or obsolete: what similarity, words, key and time alone can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Thresholds
from mnemolog.schemas.stored import ClosedValue
from mnemolog.streams.resolution.guards import StatementContext, predates
from mnemolog.streams.text.differences import subjects_differ, texts_equivalent
from mnemolog.streams.text.subjects import compare_subjects
from mnemolog.streams.text.terms import same_terms

MAX_ENDED_CANDIDATES: Final = 3
"""How many known facts below the conflict threshold a statement that ends something is compared with."""


@dataclass(frozen=True, slots=True)
class New:
    """No known fact is near: add. `guard` is the policy for which near ones are ignored."""

    matched: MatchedFact
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A known fact says the same, word for word (`by` hash) or nearly so (`by` threshold)."""

    matched: MatchedFact
    candidate: Candidate
    by: Literal["hash", "threshold"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Known facts are near, and the LLM has to decide what the new one means for them; the likeliest come first."""

    matched: MatchedFact
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Obsolete:
    """A late statement about a value that was superseded, by `newer_values` that have ended: stored as history."""

    matched: MatchedFact
    newer_values: tuple[ClosedValue, ...]


Classification = New | Duplicate | Conflict | Obsolete


def classify(
    matched: MatchedFact,
    thresholds: Thresholds,
    rules: EffectivePolicy,
    *,
    infer: bool,
    user_names: Sequence[str] = (),
) -> Classification:
    """Without `infer` there are only duplicates and new facts; under `add_only` only equal words are duplicates."""
    fact = matched.fact
    same_end = [known for known in matched.candidates if same_terms(fact, known)]  # another end is news
    known_of_it = [known for known in same_end if not subjects_differ(fact, known, user_names)]
    equal = [known for known in known_of_it if known.content_hash == fact.content_hash]
    same = min(equal, key=lambda known: known.status, default=None)  # active before pending
    if same is not None:
        return Duplicate(matched, same, "hash")
    if rules.add_only:
        return New(matched, "add_only" if matched.candidates else None)
    bound = thresholds.duplicate if infer else thresholds.raw_duplicate
    alike = (known for known in known_of_it if known.similarity > bound and texts_equivalent(fact.text, known.text))
    nearest = max(alike, key=lambda known: known.similarity, default=None)
    if nearest is not None:
        return Duplicate(matched, nearest, "threshold")
    near = conflicting_facts(matched, thresholds, rules, user_names) if infer else ()
    return Conflict(matched, near) if near else New(matched)


def classify_obsolete(
    matched: MatchedFact,
    statement_context: StatementContext,
    closed_values: Sequence[ClosedValue],
    rules: EffectivePolicy,
    user_names: Sequence[str] = (),
) -> Obsolete | None:
    """The classification of a fact older than a value that its key held when, or after, it was said; else None.

    Only values of certainly the same subject count: a doubtful one is left to the model.
    """
    fact = matched.fact
    newer = tuple(
        closed
        for closed in closed_values
        if fact.key == closed.key
        and compare_subjects(fact.subject, closed.subject, user_names) == "same"
        and statement_context.said_at < closed.true_to  # what had ended before is no newer value
        and predates(statement_context.true_from, statement_context, closed)
    )
    return Obsolete(matched, newer) if newer and fills_slot(fact, rules) else None


def fills_slot(fact: ExtractedFact, rules: EffectivePolicy) -> bool:
    """Whether a fact is the one value of its key; one that only ends something is not."""
    return fact.action_hint != "retract" and (fact.single_valued or rules.is_single_valued(fact.key))


def conflicting_facts(
    matched: MatchedFact, thresholds: Thresholds, rules: EffectivePolicy, user_names: Sequence[str] = ()
) -> tuple[Candidate, ...]:
    """The known facts that a fact may conflict with: of its slot, near it, or near enough to be ended by it."""
    fact, candidates = matched.fact, matched.candidates
    found = [known for known in candidates if may_be_same_slot(fact, known, rules, user_names)]
    found += [known for known in candidates if known.similarity >= thresholds.conflict]
    if fact.action_hint != "new":
        below = [known for known in candidates if thresholds.ending <= known.similarity < thresholds.conflict]
        found += sorted(below, key=lambda known: -known.similarity)[:MAX_ENDED_CANDIDATES]
    return tuple(dict.fromkeys(found))


def may_be_same_slot(
    fact: ExtractedFact, known: Candidate, rules: EffectivePolicy, user_names: Sequence[str] = ()
) -> bool:
    """Whether both are values of one key that holds one at a time, and not certainly of two subjects."""
    return _same_key(fact, known, rules) and compare_subjects(fact.subject, known.subject, user_names) != "other"


def same_slot(fact: ExtractedFact, known: Candidate, rules: EffectivePolicy, user_names: Sequence[str] = ()) -> bool:
    """Whether both are values of one key that holds one at a time, of certainly the same subject."""
    return _same_key(fact, known, rules) and compare_subjects(fact.subject, known.subject, user_names) == "same"


def _same_key(fact: ExtractedFact, known: Candidate, rules: EffectivePolicy) -> bool:
    if fact.key is None or fact.key != known.key:
        return False
    return fact.single_valued or known.single_valued or rules.is_single_valued(fact.key)
