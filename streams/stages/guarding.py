"""When a verdict is not carried out as it stands: what is ended has to be worth the word that ends it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from mnemolog.schemas.events import Overwrite
from mnemolog.schemas.facts import CAUTIOUS, CONFIDENCE, Candidate, ExtractedFact
from mnemolog.schemas.policy import Rules
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
class Saying:
    """How sure a statement is, from when on it holds, when it was said, and whether it tells a change or an end."""

    confidence: float
    true_from: datetime
    said_at: datetime
    revises: bool = False


class Dated(Protocol):
    """A known fact by its times: since when it is true, when it was said last, and the time that it names itself."""

    @property
    def fact_id(self) -> UUID: ...
    @property
    def true_from(self) -> datetime: ...
    @property
    def said_at(self) -> datetime | None: ...
    @property
    def event_time(self) -> datetime | None: ...


def confidence_of(fact: ExtractedFact, rules: Rules) -> float:
    """The first confidence of a fact: by how it was stated, or the same for all under the preset `cautious`."""
    return CAUTIOUS if rules.confidence == "cautious" else CONFIDENCE[fact.certainty]


def guard_of(verdict: Verdict, targets: Sequence[Candidate], saying: Saying, rules: Rules) -> Guard | None:
    """The policy that stands between a verdict and `targets`, the first of those that do; None lets it through.

    What is pending is not held yet, so nothing guards it.
    """
    return next(_guards(verdict, [known for known in targets if known.status == "active"], saying, rules), None)


def _guards(verdict: Verdict, held: Sequence[Candidate], saying: Saying, rules: Rules) -> Iterator[Guard]:
    if rules.add_only:
        yield "add_only"
    if verdict not in OVERWRITES:
        return
    if is_late(verdict, held, saying):
        yield "late_news"
    if any(known.authority == "human" for known in held):
        yield "human_word"
    if verdict == "CONTRADICT" and any(known.confidence >= rules.confirm_below for known in held):
        yield "high_confidence"
    unsure = saying.confidence < rules.confirm_below
    if unsure and any(rules.is_high_risk(known.category, known.key) for known in held):
        yield "high_risk"


def is_late(verdict: Verdict, held: Sequence[Candidate], saying: Saying) -> bool:
    """Whether the statement is older than a fact that it would end.

    A merge ends no truth: both are in the richer fact. A denial is as old as the time at which it was said: "I was
    born on the 1st, not on the 3rd" comes no earlier for being about the 1st.
    """
    if verdict == "MERGE":
        return False
    if verdict != "CONTRADICT":
        return any(older(saying.true_from, saying, known) for known in held)
    told = max(saying.true_from, saying.said_at)
    return any(older(told, saying, known) for known in held if not planned(known, saying))


def older(told: datetime, saying: Saying, known: Dated) -> bool:
    """Whether a statement about a time comes before a known fact.

    Said before the known fact was said last, it is older if it began before that as well.

    Said later, "I moved last weekend" is news even for one who said on that Sunday that he lives elsewhere: that was
    not the day on which he began to. But nothing told of 2019 ends what is told to have begun in 2021. What is to
    begin can be called off until then.
    """
    last_said = known.said_at or saying.said_at
    if saying.said_at < last_said:
        return told < last_said
    if saying.revises and (known.event_time is None or planned(known, saying)):
        return False
    return told < known.true_from


def planned(known: Dated, saying: Saying) -> bool:
    """Whether a known fact, said before, is told to begin only after a statement was made."""
    said_before = known.said_at is not None and known.said_at <= saying.said_at
    return said_before and known.event_time is not None and known.true_from > saying.said_at


def parted(saying: Saying, known: Dated, chains: Mapping[UUID, Sequence[datetime]]) -> bool:
    """Whether something else was so between a statement and a known fact that was not yet so when it was said.

    Then it says nothing about that fact, in however equal words: "I live in Rome" of before the year in Oslo.
    """
    between = (began for began in chains.get(known.fact_id, ()) if saying.true_from < began < known.true_from)
    return saying.said_at < known.true_from and any(between)


def ended_by(
    held: Sequence[Dated], true_from: datetime, chains: Mapping[UUID, Sequence[datetime]]
) -> tuple[datetime, UUID]:
    """When what is true from `true_from` on ended, and the fact that tells: the next newer one that is known.

    `chains` has, for a fact, the beginnings of the versions that it superseded; one of `held` began, or was said again,
    later than `true_from`.
    """
    beginnings = (
        (began, known.true_from, known.fact_id)
        for known in held
        for began in (known.true_from, known.said_at or known.true_from, *chains.get(known.fact_id, ()))
        if began > true_from
    )
    began, _, fact_id = min(beginnings)
    return began, fact_id
