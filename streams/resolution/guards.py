"""Guards that block or defer a decision that would end a known fact, and the comparisons of times that they need.

Whoever ends known facts needs a `Cleared` for them, and only the guards make one. `TurnRules` decide a turn besides its
facts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
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
from mnemolog.schemas.provenance import Guard, Thresholds, Verdict
from mnemolog.schemas.stored import PendingCase, StoredFact
from mnemolog.streams.ends import GUARDS_OF_CONFIDENCE, SlotRules, guard_against, last_held
from mnemolog.streams.merges import fill_one_slot
from mnemolog.streams.text.assertions import tells_past
from mnemolog.streams.text.differences import compare_subjects
from mnemolog.streams.text.tokens import words_of

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
class TurnRules(SlotRules):
    """The rules of slots, and the thresholds of the embedding model; without `infer` a turn is raw."""

    thresholds: Thresholds
    infer: bool = True

    @property
    def uses_llm(self) -> bool:
        """Whether near facts are decided on: not in a raw turn, and not where the policy only adds."""
        return self.infer and not self.policy.add_only

    def fills_slot(self, fact: ExtractedFact) -> bool:
        """Whether a fact is the one value of its key; the statement of an end, or a fact with a term, is not."""
        return fact.action_hint != "retract" and fact.valid_until is None and self.holds_one(fact)


_KEY: Final = object()


class Cleared:
    """Known facts that a decision may end: no guard holds it back. Events that end facts are made of it alone."""

    __slots__ = ("fact_ids",)

    def __init__(self, fact_ids: Iterable[UUID], *, key: object) -> None:
        if key is not _KEY:
            raise TypeError("only a guard clears facts for an end")
        self.fact_ids = tuple(fact_ids)

    def part(self, fact_ids: Iterable[UUID]) -> "Cleared":
        """Those of `fact_ids` that are cleared."""
        return Cleared((fact_id for fact_id in fact_ids if fact_id in self.fact_ids), key=_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """A statement, or a known fact as one: how certain it is, since when it holds, and when it was said."""

    fact: ExtractedFact
    confidence: float
    true_from: datetime
    said_at: datetime

    @property
    def tells_change_or_end(self) -> bool:
        return self.fact.action_hint != "new"

    @property
    def is_plan(self) -> bool:
        """Whether it states what is still to begin."""
        return self.said_at < self.true_from


def statement_confidence(matched: MatchedFact, rules: EffectivePolicy) -> float:
    """The first confidence of a fact: by how it was stated, or the same for all under the preset `cautious`.

    Of a promoted fact its confidence in the scope that it comes from.
    """
    if matched.original is not None:
        return matched.original.confidence
    return CAUTIOUS_CONFIDENCE if rules.confidence == "cautious" else CONFIDENCE_OF_CERTAINTY[matched.fact.certainty]


def clear(  # noqa: PLR0911, PLR0917 - one return a guard
    verdict: Verdict,
    targets: Sequence[Candidate],
    statement: StatementContext,
    policy: EffectivePolicy,
    own_ids: Collection[UUID] = (),
    version_starts: Mapping[UUID, Sequence[datetime]] = MappingProxyType({}),
    *,
    ended_at: datetime | None = None,
) -> Cleared | Guard:
    """The targets of a verdict, or the first guard that applies to it; `ended_at` is the end that an EXPIRE gives.

    Pending targets are guarded only where they are a human's word; facts that the turn itself said (`own_ids`) only
    against a statement that is older. `version_starts` has the starts of the versions that a fact superseded.
    """
    if policy.add_only:
        return "add_only"
    cleared = Cleared((known.fact_id for known in targets), key=_KEY)
    ends = verdict in OVERWRITE_OF_VERDICT
    if (ends or verdict == "KEEP") and any(known.is_of_other_entity for known in targets):
        return "other_subject"
    if verdict in ("KEEP", "MERGE") and any(is_outdated(statement, known, version_starts) for known in targets):
        return "late_news"
    if not ends:
        return cleared
    if verdict == "MERGE" and not fill_one_slot((statement.fact, *targets)):
        return "lost_slot"
    active = [known for known in targets if known.status == "active"]
    if is_late_news(verdict, active, statement, ended_at):
        return "late_news"
    until = statement.fact.valid_until if verdict in ("REPLACE", "CONTRADICT") else None
    lasting = [known for known in active if known.valid_until is None]
    if until and statement.tells_change_or_end:  # "my exam on 20 March is cancelled" calls off a plan for that day
        lasting = [one for one in lasting if not is_planned(one, statement) or one.true_from.date() > until.date()]
    if until and lasting:
        return "lasting_value"
    own = [known for known in targets if known.fact_id in own_ids]
    found = [guard_against(verdict, statement.confidence, known, policy) for known in targets if known not in own]
    return next((guard for guard in GUARDS_OF_CONFIDENCE if guard in found), cleared)


def clear_repeated(known: Candidate, policy: EffectivePolicy) -> Cleared | None:
    """A fact that goes on with what a repetition adds to it; None for a human's word and under `add_only`."""
    return None if policy.add_only or known.authority == "human" else Cleared([known.fact_id], key=_KEY)


def clear_own(fact_id: UUID, others: Cleared | None = None) -> Cleared:
    """The fact of a statement, which may always end itself, and what it is cleared to end with it."""
    return Cleared((fact_id, *(others.fact_ids if others else ())), key=_KEY)


def clear_raw(raw: Iterable[StoredFact], *, is_immutable: bool) -> Cleared:
    """The raw facts of a turn that end once it has been read.

    One that was said again stays, for others rest on it, and so does a human's word, unless the whole turn
    `is_immutable`.
    """
    replaced = (one for one in raw if one.is_open and one.state.mention_count == 1)
    return Cleared((one.fact_id for one in replaced if is_immutable or one.authority != "human"), key=_KEY)


def clear_held(
    case: PendingCase, known: Candidate, statement: StatementContext, speaker: str | None, rules: TurnRules
) -> Cleared | Guard | None:
    """The targets of the held overwrite that `known` is, which a statement repeats.

    "human_word" where only a person may confirm it. None where the statement confirms nothing: it was said before it,
    is a resend of it, or a speculation.
    """
    is_same_speaker = compare_subjects(speaker, case.speaker, rules.user_names) == "same"
    if statement.said_at < case.said_at or statement.fact.certainty == "speculation":
        return None
    if is_same_speaker and is_resend(known, statement, rules):
        return None
    return "human_word" if case.needs_human else Cleared(case.targets, key=_KEY)


def is_resend(known: Candidate, statement: StatementContext, rules: TurnRules) -> bool:
    """Whether a turn says the words of a known fact once more within the `resend_window`, and no more certainly."""
    since = statement.said_at - (known.said_at or known.true_from)
    if since > timedelta(seconds=rules.policy.resend_window):
        return False
    same_words = words_of(statement.fact.excerpt) == words_of(known.excerpt)  # typed again, it may lack its full stop
    return same_words and statement.confidence <= known.confidence


def is_late_news(
    verdict: Verdict,
    known_facts: Sequence[Candidate],
    statement: StatementContext,
    ended_at: datetime | None = None,
) -> bool:
    """Whether the statement is older than a fact that it would end."""
    true_from, said_at = statement.true_from, statement.said_at
    if verdict == "MERGE":  # both stay true in the merged fact
        return False
    if verdict == "CONTRADICT":
        # A denial is as old as its words: "I was born on the 1st, not on the 3rd" is no older for being about the 1st.
        begun = (known for known in known_facts if not is_planned(known, statement))
        return any(predates(max(true_from, said_at), statement, known) for known in begun)
    for known in known_facts:
        # "I'll leave Rome on 20 March" is not refuted by who says before that day that they live there.
        if verdict == "EXPIRE" and ended_at is not None and ended_at > last_held(known):
            continue
        # A statement that changes a plan is as old as its words, and not as its own plan.
        changes_plan = verdict in ("RETRACT", "REPLACE") and is_plan(known) and said_at < known.true_from
        if predates(min(true_from, said_at) if changes_plan else true_from, statement, known):
            return True
    return False


def goes_on(statement: StatementContext, known: Candidate) -> bool:
    """Whether a state holds beside a known fact by its words, however much earlier it began: it is no history.

    "I've lived in Kiel since 2010", said after "I've lived in Ulm since 2015". Who tells a change ("moved to Kiel in
    2010"), what was ("lived in Kiel in 2010") or an end of it tells the time before.
    """
    if known.status == "ended" or max(known.true_from, known.said_at or known.true_from) > statement.said_at:
        return False
    is_state = statement.fact.action_hint == "new" and statement.fact.valid_until is None
    return is_state and not tells_past(statement.fact.text)


def is_outdated(
    statement: StatementContext, known: Candidate, version_starts: Mapping[UUID, Sequence[datetime]]
) -> bool:
    """Whether another version held between a statement and a known fact that began after the statement was said.

    Then the statement is not about that fact, even in equal words: "I live in Rome", said before the year in Oslo.
    """
    return statement.said_at < known.true_from and any(
        statement.true_from < began < known.true_from for began in version_starts.get(known.fact_id, ())
    )


def is_plan(known: Candidate) -> bool:
    """Whether a known fact was still to begin when it was last said."""
    return known.event_time is not None and known.said_at is not None and known.said_at < known.true_from


def predates(effective_from: datetime, statement: StatementContext, known: Candidate) -> bool:
    """Whether a statement that holds since `effective_from` is older than a known fact.

    A statement that was said before the known fact was last said is older if it also holds since before that.
    """
    last_said = known.said_at or statement.said_at
    if statement.said_at < last_said:
        return effective_from < last_said
    # "I moved last weekend" is newer than "I live in Rome", said on that Sunday without a time of its own. But what is
    # said about 2019 does not end what is said to have begun in 2021. A plan can be called off until it begins.
    if statement.tells_change_or_end and (known.event_time is None or is_planned(known, statement)):
        return False
    return effective_from < known.true_from


def is_planned(known: Candidate, statement: StatementContext) -> bool:
    """Whether a known fact, said before a statement, begins only after it."""
    said_before = known.said_at is not None and known.said_at <= statement.said_at
    return said_before and known.event_time is not None and known.true_from > statement.said_at


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
        for began in (known.true_from, last_held(known), *version_starts.get(known.fact_id, ()))
        if began > true_from
    )
    first = min(beginnings, default=None)
    return None if first is None else (first[0], first[2])
