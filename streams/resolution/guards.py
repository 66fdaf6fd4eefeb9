"""Guards that block or defer a decision that would end a known fact, and the comparisons of times that they need."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

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
GUARD_REASONS: Final[Mapping[Guard, str]] = {
    "late_news": "older than the known fact: kept as history",
    "human_word": "the known fact is a human's word or immutable; only a human can end it",
    "high_confidence": "the known fact is too certain to be denied by one statement",
    "high_risk": "a high-risk fact needs a more certain statement",
    "low_confidence": "the statement is too uncertain to end a certain fact",
    "add_only": "the policy is add-only",
    "other_subject": "the known fact is about somebody or something else, or may be: both are kept",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """How certain a statement is, since when it holds, when it was said, and whether it is about a change or an end."""

    confidence: float
    true_from: datetime
    said_at: datetime
    tells_change_or_end: bool = False

    @property
    def is_plan(self) -> bool:
        """Whether it is about what is still to begin."""
        return self.said_at < self.true_from

    @property
    def is_doubtful(self) -> bool:
        """Whether it is more likely wrong than right."""
        return self.confidence < DOUBTFUL_BELOW


class TimedFact(Protocol):
    """A known fact by its times: since when it is true, when it was last said, and the time that it names itself."""

    @property
    def fact_id(self) -> UUID: ...
    @property
    def true_from(self) -> datetime: ...
    @property
    def said_at(self) -> datetime | None: ...
    @property
    def event_time(self) -> datetime | None: ...


def confidence_of(fact: ExtractedFact, rules: EffectivePolicy) -> float:
    """The first confidence of a fact: by how it was stated, or the same for all under the preset `cautious`."""
    return CAUTIOUS_CONFIDENCE if rules.confidence == "cautious" else CONFIDENCE_OF_CERTAINTY[fact.certainty]


def statement_confidence(matched: MatchedFact, rules: EffectivePolicy) -> float:
    """That of a new fact, or what it has become of a promoted one in the scope that it comes from."""
    return confidence_of(matched.fact, rules) if matched.original is None else matched.original.confidence


def find_guard(
    verdict: Verdict,
    targets: Sequence[Candidate],
    statement_context: StatementContext,
    rules: EffectivePolicy,
    own_ids: Collection[UUID] = (),
    *,
    ended_at: datetime | None = None,
) -> Guard | None:
    """The first guard that applies to a verdict on `targets`, or None; `ended_at` is the end that an EXPIRE tells.

    Of pending targets only a human's word is guarded, and of what its own turn said (`own_ids`) a statement can only be
    older.
    """
    return next(_applicable_guards(verdict, targets, statement_context, rules, own_ids, ended_at=ended_at), None)


def _applicable_guards(
    verdict: Verdict,
    targets: Sequence[Candidate],
    statement_context: StatementContext,
    rules: EffectivePolicy,
    own_ids: Collection[UUID],
    *,
    ended_at: datetime | None,
) -> Iterator[Guard]:
    active = [known for known in targets if known.status == "active"]
    if rules.add_only:
        yield "add_only"
    if verdict not in OVERWRITE_OF_VERDICT:
        return
    if is_late_news(verdict, active, statement_context, ended_at):
        yield "late_news"
    if any(known.authority == "human" for known in targets if known.fact_id not in own_ids):
        yield "human_word"
    known_facts = [known for known in active if known.fact_id not in own_ids]
    if verdict == "CONTRADICT" and any(known.confidence >= rules.confirm_below for known in known_facts):
        yield "high_confidence"
    if statement_context.confidence >= rules.confirm_below:
        return
    if any(rules.is_high_risk(known.category, known.key) for known in known_facts):
        yield "high_risk"
    contradicts = verdict != "MERGE" and statement_context.is_doubtful
    if contradicts and any(known.confidence >= rules.confirm_below for known in known_facts):
        yield "low_confidence"


def may_end(confidence: float, known: StoredFact, rules: EffectivePolicy) -> bool:
    """Whether no guard keeps a statement of this confidence, which says what was so later, from ending a known fact."""
    if known.authority == "human":
        return False
    if confidence >= rules.confirm_below:
        return True
    is_sure = known.state.confidence >= rules.confirm_below
    return not (rules.is_high_risk(known.fact.category, known.fact.key) or (confidence < DOUBTFUL_BELOW and is_sure))


def is_late_news(
    verdict: Verdict,
    known_facts: Sequence[Candidate],
    statement_context: StatementContext,
    ended_at: datetime | None = None,
) -> bool:
    """Whether the statement is older than a fact that it would end."""
    if verdict == "MERGE":  # both stay true in the merged fact
        return False
    if verdict != "CONTRADICT":
        # "I'll leave Rome on 20 March" is not refuted by who says before that day that they live there.
        announced = ended_at if verdict == "EXPIRE" else None
        held_then = (known for known in known_facts if announced is None or announced <= _last_held(known))
        return any(
            predates(_told_for(verdict, statement_context, known), statement_context, known) for known in held_then
        )
    # A denial is as old as its words: "I was born on the 1st, not on the 3rd" is no older for being about the 1st.
    denied_at = max(statement_context.true_from, statement_context.said_at)
    begun = (known for known in known_facts if not is_planned(known, statement_context))
    return any(predates(denied_at, statement_context, known) for known in begun)


def _told_for(verdict: Verdict, statement_context: StatementContext, known: Candidate) -> datetime:
    """The time that counts for the age of a statement: beside a plan it is as old as its words, and not as its plan."""
    of_plan = verdict in ("RETRACT", "REPLACE") and is_plan(known) and statement_context.said_at < known.true_from
    return min(statement_context.true_from, statement_context.said_at) if of_plan else statement_context.true_from


def is_plan(known: TimedFact) -> bool:
    """Whether a known fact was still to begin when it was last said."""
    return known.event_time is not None and known.said_at is not None and known.said_at < known.true_from


def predates(effective_from: datetime, statement_context: StatementContext, known: TimedFact) -> bool:
    """Whether a statement that holds since `effective_from` is older than a known fact.

    One that was said before the known fact was last said is older if it also holds since before that.
    """
    last_said = known.said_at or statement_context.said_at
    if statement_context.said_at < last_said:
        return effective_from < last_said
    # "I moved last weekend" is newer than "I live in Rome", said on that Sunday without a time of its own. But what is
    # said about 2019 does not end what is said to have begun in 2021. A plan can be called off until it begins.
    if statement_context.tells_change_or_end and (known.event_time is None or is_planned(known, statement_context)):
        return False
    return effective_from < known.true_from


def is_planned(known: TimedFact, statement_context: StatementContext) -> bool:
    """Whether a known fact, said before a statement, begins only after it."""
    said_before = known.said_at is not None and known.said_at <= statement_context.said_at
    return said_before and known.event_time is not None and known.true_from > statement_context.said_at


def has_intervening_version(
    statement_context: StatementContext, known: TimedFact, version_starts: Mapping[UUID, Sequence[datetime]]
) -> bool:
    """Whether another version held between a statement and a known fact that began after the statement was said.

    Then the statement is not about that fact, even in equal words: "I live in Rome", said before the year in Oslo.
    """
    between = (
        began
        for began in version_starts.get(known.fact_id, ())
        if statement_context.true_from < began < known.true_from
    )
    return statement_context.said_at < known.true_from and any(between)


def next_version_start(
    known_facts: Sequence[TimedFact], true_from: datetime, version_starts: Mapping[UUID, Sequence[datetime]]
) -> tuple[datetime, UUID] | None:
    """When what holds since `true_from` ended, and the fact that says so: the start of the next version.

    `version_starts` has, for a fact, the starts of the versions that it superseded. None where no version began, or was
    said again, later than `true_from`: what is said to begin after all of them.
    """
    beginnings = (
        (began, known.true_from, known.fact_id)
        for known in known_facts
        for began in (known.true_from, _last_held(known), *version_starts.get(known.fact_id, ()))
        if began > true_from
    )
    first = min(beginnings, default=None)
    return None if first is None else (first[0], first[2])


def _last_held(known: TimedFact) -> datetime:
    """When a known fact was last said to hold: a plan not before it begins."""
    return max(known.true_from, known.said_at or known.true_from)
