"""Classifies a fact as new, duplicate, conflict or obsolete: what similarity, words, key and time alone can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from mnemolog.schemas.facts import Candidate, EmbeddedFact, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Thresholds
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.streams.ends.end_rules import same_value
from mnemolog.streams.resolution.guards import StatementContext, predates
from mnemolog.streams.text.differences import subjects_differ, texts_equivalent
from mnemolog.streams.text.subjects import relate_subjects
from mnemolog.streams.text.terms import same_terms

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
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
    newer_values: tuple[Candidate, ...]


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
    candidates = (known for known in matched.candidates if known.status != "ended" and same_terms(fact, known))
    known_of_it = [known for known in candidates if not subjects_differ(fact, known, user_names)]
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


def classify_late(
    matched: MatchedFact,
    statement_context: StatementContext,
    thresholds: Thresholds,
    rules: EffectivePolicy,
    user_names: Sequence[str] = (),
) -> Duplicate | Obsolete | Conflict | None:
    """What facts that have ended since a statement was said tell of it without a model, or None.

    An end that was told again since is a question too, where what held then ended later: it may have ended then.

    It repeats one of them, or is older than another value that its key held then or later. Only values of certainly the
    same subject count: a doubtful one is left to the model, and so is what holds for a term, beside its key's value.
    """
    fact = matched.fact
    ended = [known for known in _ended_candidates(matched) if statement_context.said_at < (known.true_to or _NEVER)]
    if repeated := _repeated_ended_fact(matched, ended, statement_context, thresholds, user_names):
        return Duplicate(matched, repeated, "hash" if repeated.content_hash == fact.content_hash else "threshold")
    since = statement_context.true_from
    if fact.action_hint == "retract":
        held = any(known.true_from <= since < (known.true_to or _NEVER) for known in ended)
        told_again = any(
            known.content_hash == fact.content_hash and known.true_from > since for known in matched.candidates
        )
        near = conflicting_facts(matched, thresholds, rules, user_names) if held and told_again else ()
        return Conflict(matched, near) if near else None
    of_slot = [known for known in ended if known.valid_until is None and same_slot(fact, known, rules, user_names)]
    if any(same_value(fact, known) and known.true_from <= since < (known.true_to or _NEVER) for known in of_slot):
        return None
    newer = tuple(known for known in of_slot if predates(since, statement_context, known))
    return Obsolete(matched, newer) if newer and fills_slot(fact, rules) else None


def _repeated_ended_fact(
    matched: MatchedFact,
    ended: Sequence[Candidate],
    statement_context: StatementContext,
    thresholds: Thresholds,
    user_names: Sequence[str],
) -> Candidate | None:
    """The ended fact that a statement repeats: the one that held then, or the next one; none where an open one did."""
    fact, since = matched.fact, statement_context.true_from
    of_it = [known for known in ended if not subjects_differ(fact, known, user_names)]
    equal = [known for known in of_it if known.content_hash == fact.content_hash]
    alike = equal or [
        known for known in of_it if known.similarity > thresholds.duplicate and texts_equivalent(fact.text, known.text)
    ]
    open_facts = (known for known in matched.candidates if known.status != "ended")
    if any(known.content_hash == fact.content_hash and known.true_from <= since for known in open_facts):
        return None
    held = (known for known in alike if since < (known.true_to or _NEVER))
    return min(held, key=lambda known: (known.true_from > since, known.true_from), default=None)


def _ended_candidates(matched: MatchedFact) -> list[Candidate]:
    return [known for known in matched.candidates if known.status == "ended"]


def candidate_query(embedded: EmbeddedFact, thresholds: Thresholds, rules: EffectivePolicy) -> CandidateQuery:
    """What a fact is compared with; one that ends something with less similar facts too."""
    fact = embedded.fact
    floor = min(thresholds.conflict, thresholds.raw_duplicate, thresholds.duplicate)
    return CandidateQuery(
        vector=embedded.vector,
        content_hash=fact.content_hash,
        min_similarity=floor if fact.action_hint == "new" else min(floor, thresholds.ending),
        key=fact.key if fact.single_valued or rules.is_single_valued(fact.key) else None,
        subject=fact.subject,
    )


def fills_slot(fact: ExtractedFact, rules: EffectivePolicy) -> bool:
    """Whether a fact is the one value of its key; one that only ends something, or holds for a term, is not."""
    if fact.action_hint == "retract" or fact.valid_until is not None:
        return False
    return fact.single_valued or rules.is_single_valued(fact.key)


def conflicting_facts(
    matched: MatchedFact, thresholds: Thresholds, rules: EffectivePolicy, user_names: Sequence[str] = ()
) -> tuple[Candidate, ...]:
    """The known facts that a fact may conflict with: of its slot, near it, or near enough to be ended by it.

    Those of certainly its subject come first, so that a bounded list has them; ended ones come last. Those of its slot
    held when it was said: what is older than one is `Obsolete`.
    """
    fact, candidates = matched.fact, matched.candidates
    of_slot = [known for known in candidates if may_be_same_slot(fact, known, rules, user_names)]
    found = sorted(of_slot, key=lambda known: not same_slot(fact, known, rules, user_names))
    found += [known for known in candidates if known.similarity >= thresholds.conflict]
    if fact.action_hint != "new":
        below = [known for known in candidates if thresholds.ending <= known.similarity < thresholds.conflict]
        found += sorted(below, key=lambda known: -known.similarity)[:MAX_ENDED_CANDIDATES]
    return tuple(sorted(dict.fromkeys(found), key=lambda known: known.status == "ended"))


def may_be_same_slot(
    fact: ExtractedFact, known: Candidate, rules: EffectivePolicy, user_names: Sequence[str] = ()
) -> bool:
    """Whether both are values of one key that holds one at a time, and not certainly of two subjects."""
    return _same_key(fact, known, rules) and relate_subjects(fact, known, user_names) != "other"


def same_slot(fact: ExtractedFact, known: Candidate, rules: EffectivePolicy, user_names: Sequence[str] = ()) -> bool:
    """Whether both are values of one key that holds one at a time, of certainly the same subject."""
    return _same_key(fact, known, rules) and relate_subjects(fact, known, user_names) == "same"


def _same_key(fact: ExtractedFact, known: Candidate, rules: EffectivePolicy) -> bool:
    if fact.key is None or fact.key != known.key:
        return False
    return fact.single_valued or known.single_valued or rules.is_single_valued(fact.key)
