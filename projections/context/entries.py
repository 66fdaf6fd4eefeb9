"""Which facts a context may hold, in which section, and which of them are doubtful."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from mnemolog.projections.queries.results import Fact
from mnemolog.schemas.facts import ImportanceCategory

Section = Literal["constraints", "task", "relevant", "preferences"]
Doubt = Literal["pending", "unresolved", "low_confidence", "old"]
SECTIONS: Final[tuple[Section, ...]] = ("constraints", "task", "relevant", "preferences")
"""By priority, the first the highest (Mem Skill, stage 6, with what is relevant before soft preferences)."""
SECTION_OF_CATEGORY: Final[Mapping[str, Section]] = {
    "hard_preference": "constraints",
    "health": "constraints",
    "task_context": "task",
    "soft_preference": "preferences",
}
"""What is in a context whatever the question is; all else only where the search finds it."""
EVENT_KINDS: Final[tuple[ImportanceCategory, ...]] = ("specific_event", "routine_activity", "conversational")
"""With a time of its own, health of these kinds has happened and is no constraint: a visit to the dentist is none."""
OLD_AFTER: Final = timedelta(days=365)
"""A fact that nobody has mentioned for so long is old: a convention, not measured."""
OLD_TASK_AFTER: Final = timedelta(days=30)
LASTING_CATEGORIES: Final = frozenset({"identity", "hard_preference", "health", "relationship"})
"""Facts of these are never old: an allergy that is not mentioned for a year is one."""
MIN_CONFIDENCE: Final = 0.5
"""Below it a fact is doubtful: what was said as speculation has 0.40, what was said weakly 0.60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntry:
    """A fact that a context may hold. `rank` is its place in its section, from 0."""

    fact: Fact
    section: Section
    rank: int
    doubts: tuple[Doubt, ...]


def context_entries(
    profile_facts: Iterable[Fact], hits: Iterable[Fact], *, at: datetime, min_confidence: float = MIN_CONFIDENCE
) -> list[ContextEntry]:
    """Each fact once, in the order in which they get room: by section and rank, those that are doubtful last.

    Hits keep their order; behind them, facts of the profile go by importance, confidence and the last mention. A soft
    preference that is a hit is relevant, and so is health that is no fact of the profile.
    """
    places: dict[UUID, tuple[Section, Fact]] = {}
    for section, fact in _placed(profile_facts, hits):
        places.setdefault(fact.fact_id, (section, fact))
    by_section = {section: [fact for place, fact in places.values() if place == section] for section in SECTIONS}
    found = [
        ContextEntry(fact=fact, section=section, rank=rank, doubts=doubts_of(fact, at, min_confidence))
        for section, facts in by_section.items()
        for rank, fact in enumerate(facts)
    ]
    return sorted(found, key=lambda one: bool(one.doubts))


def _placed(profile_facts: Iterable[Fact], hits: Iterable[Fact]) -> Iterator[tuple[Section, Fact]]:
    """Hits first: within a section what the question is about has its place before the rest."""
    lasting = {fact.fact_id: fact for fact in profile_facts}
    for fact in hits:
        section = SECTION_OF_CATEGORY.get(fact.category, "relevant")
        passes = section == "preferences" or (fact.category == "health" and fact.fact_id not in lasting)
        yield ("relevant" if passes else section), fact
    for fact in sorted(lasting.values(), key=_profile_place):
        yield SECTION_OF_CATEGORY.get(fact.category, "relevant"), fact


def _profile_place(fact: Fact) -> tuple[float, float, float, str]:
    return -fact.importance, -fact.confidence, -last_mention(fact).timestamp(), str(fact.fact_id)


def doubts_of(fact: Fact, at: datetime, min_confidence: float) -> tuple[Doubt, ...]:
    """Why a fact gets room last; empty for one that is certain."""
    lifetime = OLD_TASK_AFTER if fact.category == "task_context" else OLD_AFTER
    doubts: dict[Doubt, bool] = {
        "pending": fact.status == "pending_confirmation",
        "unresolved": fact.unresolved or fact.stale,
        "low_confidence": fact.confidence < min_confidence,
        "old": fact.category not in LASTING_CATEGORIES and at - last_mention(fact) > lifetime,
    }
    return tuple(doubt for doubt, holds in doubts.items() if holds)


def doubtful_ids(facts: Iterable[Fact], *, at: datetime, min_confidence: float) -> set[UUID]:
    return {fact.fact_id for fact in facts if doubts_of(fact, at, min_confidence)}


def last_mention(fact: Fact) -> datetime:
    """When it was last said. What is told with a date was said at the earliest when it was recorded."""
    said = fact.true_from if fact.event_time is None else fact.recorded_at
    return max(filter(None, (said, fact.last_confirmed_at)))
