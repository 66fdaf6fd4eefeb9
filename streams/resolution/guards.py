"""When a verdict is not carried out as it stands: what is ended has to be worth the word that ends it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from mnemolog.schemas.events import Overwrite
from mnemolog.schemas.facts import CAUTIOUS_CONFIDENCE, CONFIDENCE_OF_CERTAINTY, Candidate, ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Verdict

OVERWRITES: Final[Mapping[Verdict, Overwrite]] = {
    "MERGE": "merge",
    "REPLACE": "replace",
    "CONTRADICT": "contradict",
    "RETRACT": "retract",
    "EXPIRE": "expire",
}
"""The verdicts that end what they aim at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """How sure a statement is, from when on it holds, when it was said, and whether it tells a change or an end."""

    confidence: float
    true_from: datetime
    said_at: datetime
    tells_change_or_end: bool = False


class TimedFact(Protocol):
    """A known fact by its times: since when it is true, when it was said last, and the time that it names itself."""

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


def find_guard(
    verdict: Verdict, targets: Sequence[Candidate], statement_context: StatementContext, rules: EffectivePolicy
) -> Guard | None:
    """The policy that stands between a verdict and `targets`, the first of those that do; None lets it through.

    What is pending is not held yet, so nothing guards it.
    """
    return next(
        _applicable_guards(verdict, [known for known in targets if known.status == "active"], statement_context, rules),
        None,
    )


def _applicable_guards(
    verdict: Verdict, known_facts: Sequence[Candidate], statement_context: StatementContext, rules: EffectivePolicy
) -> Iterator[Guard]:
    if rules.add_only:
        yield "add_only"
    if verdict not in OVERWRITES:
        return
    if is_late_news(verdict, known_facts, statement_context):
        yield "late_news"
    if any(known.authority == "human" for known in known_facts):
        yield "human_word"
    if verdict == "CONTRADICT" and any(known.confidence >= rules.confirm_below for known in known_facts):
        yield "high_confidence"
    unsure = statement_context.confidence < rules.confirm_below
    if unsure and any(rules.is_high_risk(known.category, known.key) for known in known_facts):
        yield "high_risk"


def is_late_news(verdict: Verdict, known_facts: Sequence[Candidate], statement_context: StatementContext) -> bool:
    """Whether the statement is older than a fact that it would end.

    A merge ends no truth: both are in the richer fact. A denial is as old as the time at which it was said: "I was
    born on the 1st, not on the 3rd" comes no earlier for being about the 1st.
    """
    if verdict == "MERGE":
        return False
    if verdict != "CONTRADICT":
        return any(predates(statement_context.true_from, statement_context, known) for known in known_facts)
    told = max(statement_context.true_from, statement_context.said_at)
    return any(
        predates(told, statement_context, known) for known in known_facts if not is_planned(known, statement_context)
    )


def predates(effective_from: datetime, statement_context: StatementContext, known: TimedFact) -> bool:
    """Whether a statement about a time comes before a known fact.

    Said before the known fact was said last, it is older if it began before that as well.

    Said later, "I moved last weekend" is news even for one who said on that Sunday that he lives elsewhere: that was
    not the day on which he began to. But nothing told of 2019 ends what is told to have begun in 2021. What is to
    begin can be called off until then.
    """
    last_said = known.said_at or statement_context.said_at
    if statement_context.said_at < last_said:
        return effective_from < last_said
    if statement_context.tells_change_or_end and (known.event_time is None or is_planned(known, statement_context)):
        return False
    return effective_from < known.true_from


def is_planned(known: TimedFact, statement_context: StatementContext) -> bool:
    """Whether a known fact, said before, is told to begin only after a statement was made."""
    said_before = known.said_at is not None and known.said_at <= statement_context.said_at
    return said_before and known.event_time is not None and known.true_from > statement_context.said_at


def has_intervening_version(
    statement_context: StatementContext, known: TimedFact, version_starts: Mapping[UUID, Sequence[datetime]]
) -> bool:
    """Whether something else was so between a statement and a known fact that was not yet so when it was said.

    Then it says nothing about that fact, in however equal words: "I live in Rome" of before the year in Oslo.
    """
    between = (
        began
        for began in version_starts.get(known.fact_id, ())
        if statement_context.true_from < began < known.true_from
    )
    return statement_context.said_at < known.true_from and any(between)


def next_version_start(
    known_facts: Sequence[TimedFact], true_from: datetime, version_starts: Mapping[UUID, Sequence[datetime]]
) -> tuple[datetime, UUID]:
    """When what is true from `true_from` on ended, and the fact that tells: the next newer one that is known.

    `version_starts` has, for a fact, the beginnings of the versions that it superseded; one of `known_facts` began, or
    was said again, later than `true_from`.
    """
    beginnings = (
        (began, known.true_from, known.fact_id)
        for known in known_facts
        for began in (known.true_from, known.said_at or known.true_from, *version_starts.get(known.fact_id, ()))
        if began > true_from
    )
    began, _, fact_id = min(beginnings)
    return began, fact_id
