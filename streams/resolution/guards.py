"""Guards that block or defer a decision that would end a known fact, and the comparisons of times that they need."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas.base import normalise
from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import (
    CAUTIOUS_CONFIDENCE,
    CONFIDENCE_OF_CERTAINTY,
    Candidate,
    ExtractedFact,
    MatchedFact,
)
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Verdict
from mnemolog.schemas.stored import StoredFact

DOUBTFUL_BELOW: Final = 0.50
"""Confidence below which a statement cannot end a certain fact, and a merged fact is not more certain (Mem Skill)."""
KEPT_BESIDE: Final[frozenset[Guard]] = frozenset({"add_only", "lasting_value", "lost_slot"})
"""Guards by which a statement is added beside the known facts, and waits for no confirmation."""
GUARD_REASONS: Final[Mapping[Guard, str]] = {
    "late_news": "older than the known fact: kept as history",
    "human_word": "the known fact is a human's word or immutable; only a human can end it",
    "high_confidence": "the known fact is too certain to be denied by one statement",
    "high_risk": "a high-risk fact needs a more certain statement",
    "low_confidence": "the statement is too uncertain to end a certain fact",
    "add_only": "the policy is add-only",
    "lasting_value": "a statement for a term ends no lasting value: both are kept",
    "lost_slot": "the merged fact would lose the key or the value of a fact that it is made of: both are kept",
    "other_subject": "the known fact is about somebody or something else, or may be: both are kept",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """How certain a statement is, since when it holds, when it was said, and whether it states a change or an end.

    `has_term`: it names until when it holds. `key` and `value` are those of its slot.
    """

    confidence: float
    true_from: datetime
    said_at: datetime
    tells_change_or_end: bool = False
    has_term: bool = False
    key: str | None = None
    value: str | None = None

    @property
    def is_plan(self) -> bool:
        """Whether it states what is still to begin."""
        return self.said_at < self.true_from

    @property
    def is_doubtful(self) -> bool:
        """Whether it is more likely wrong than right."""
        return self.confidence < DOUBTFUL_BELOW


def confidence_of(fact: ExtractedFact, rules: EffectivePolicy) -> float:
    """The first confidence of a fact: by how it was stated, or the same for all under the preset `cautious`."""
    return CAUTIOUS_CONFIDENCE if rules.confidence == "cautious" else CONFIDENCE_OF_CERTAINTY[fact.certainty]


def statement_confidence(matched: MatchedFact, rules: EffectivePolicy) -> float:
    """The first confidence of a new fact; of a promoted fact its confidence in the scope that it comes from."""
    return confidence_of(matched.fact, rules) if matched.original is None else matched.original.confidence


def find_guard(  # noqa: C901, PLR0911 - one return a guard
    verdict: Verdict,
    targets: Sequence[Candidate],
    statement_context: StatementContext,
    rules: EffectivePolicy,
    own_ids: Collection[UUID] = (),
    *,
    ended_at: datetime | None = None,
) -> Guard | None:
    """The first guard that applies to a verdict on `targets`, or None; `ended_at` is the end that an EXPIRE gives.

    Pending targets are guarded only where they are a human's word; facts that the turn itself said (`own_ids`) only
    against a statement that is older.
    """
    if rules.add_only:
        return "add_only"
    if verdict not in OVERWRITE_OF_VERDICT:
        return None
    if verdict == "MERGE" and _loses_slot(statement_context, targets):
        return "lost_slot"
    active = [known for known in targets if known.status == "active"]
    if is_late_news(verdict, active, statement_context, ended_at):
        return "late_news"
    is_stay = statement_context.has_term and verdict in ("REPLACE", "CONTRADICT")
    if is_stay and any(known.valid_until is None for known in active):
        return "lasting_value"
    if any(known.authority == "human" for known in targets if known.fact_id not in own_ids):
        return "human_word"
    active = [known for known in active if known.fact_id not in own_ids]
    has_certain = any(known.confidence >= rules.confirm_below for known in active)
    is_risky = any(rules.is_high_risk(known.categories, known.key) for known in active)
    is_sure = statement_context.confidence >= rules.confirm_below
    if verdict == "CONTRADICT" and has_certain and (is_risky or not is_sure):
        return "high_confidence"
    if is_sure:
        return None
    if is_risky:
        return "high_risk"
    if verdict != "MERGE" and statement_context.is_doubtful and has_certain:
        return "low_confidence"
    return None


def _loses_slot(statement_context: StatementContext, targets: Sequence[Candidate]) -> bool:
    """Whether the facts of a merge fill more than one slot, or a slot with more than one value: a fact has one."""
    slots = {(known.key, normalise(known.value or "")) for known in targets if known.key is not None}
    if statement_context.key is not None:
        slots.add((statement_context.key, normalise(statement_context.value or "")))
    return len(slots) > 1


def may_end(confidence: float, known: StoredFact, rules: EffectivePolicy) -> bool:
    """Whether no guard keeps a later statement of this confidence from ending a known fact."""
    if known.authority == "human":
        return False
    if confidence >= rules.confirm_below:
        return True
    is_sure = known.state.confidence >= rules.confirm_below
    return not (rules.is_high_risk(known.fact.categories, known.fact.key) or (confidence < DOUBTFUL_BELOW and is_sure))


def is_late_news(
    verdict: Verdict,
    known_facts: Sequence[Candidate],
    statement_context: StatementContext,
    ended_at: datetime | None = None,
) -> bool:
    """Whether the statement is older than a fact that it would end."""
    true_from, said_at = statement_context.true_from, statement_context.said_at
    if verdict == "MERGE":  # both stay true in the merged fact
        return False
    if verdict == "CONTRADICT":
        # A denial is as old as its words: "I was born on the 1st, not on the 3rd" is no older for being about the 1st.
        begun = (known for known in known_facts if not is_planned(known, statement_context))
        return any(predates(max(true_from, said_at), statement_context, known) for known in begun)
    for known in known_facts:
        # "I'll leave Rome on 20 March" is not refuted by who says before that day that they live there.
        if verdict == "EXPIRE" and ended_at is not None and ended_at > _last_held(known):
            continue
        # A statement that changes a plan is as old as its words, and not as its own plan.
        changes_plan = verdict in ("RETRACT", "REPLACE") and is_plan(known) and said_at < known.true_from
        if predates(min(true_from, said_at) if changes_plan else true_from, statement_context, known):
            return True
    return False


def is_plan(known: Candidate) -> bool:
    """Whether a known fact was still to begin when it was last said."""
    return known.event_time is not None and known.said_at is not None and known.said_at < known.true_from


def predates(effective_from: datetime, statement_context: StatementContext, known: Candidate) -> bool:
    """Whether a statement that holds since `effective_from` is older than a known fact.

    A statement that was said before the known fact was last said is older if it also holds since before that.
    """
    last_said = known.said_at or statement_context.said_at
    if statement_context.said_at < last_said:
        return effective_from < last_said
    # "I moved last weekend" is newer than "I live in Rome", said on that Sunday without a time of its own. But what is
    # said about 2019 does not end what is said to have begun in 2021. A plan can be called off until it begins.
    if statement_context.tells_change_or_end and (known.event_time is None or is_planned(known, statement_context)):
        return False
    return effective_from < known.true_from


def is_planned(known: Candidate, statement_context: StatementContext) -> bool:
    """Whether a known fact, said before a statement, begins only after it."""
    said_before = known.said_at is not None and known.said_at <= statement_context.said_at
    return said_before and known.event_time is not None and known.true_from > statement_context.said_at


def next_version_start(
    known_facts: Sequence[Candidate], true_from: datetime, version_starts: Mapping[UUID, Sequence[datetime]]
) -> tuple[datetime, UUID] | None:
    """The end of a value that holds since `true_from`, and the fact that says so: the start of the next version.

    `version_starts` has, for a fact, the starts of the versions that it superseded. None where no version began, or was
    said again, after `true_from`.
    """
    beginnings = (
        (began, known.true_from, known.fact_id)
        for known in known_facts
        for began in (known.true_from, _last_held(known), *version_starts.get(known.fact_id, ()))
        if began > true_from
    )
    first = min(beginnings, default=None)
    return None if first is None else (first[0], first[2])


def _last_held(known: Candidate) -> datetime:
    """When a known fact was last said to hold: a plan not before it begins."""
    return max(known.true_from, known.said_at or known.true_from)
