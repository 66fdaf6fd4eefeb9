"""The state of the tables that a fold reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from mnemolog.projections.write.rows import Changes, KnownFact
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import scope_columns

SourceKey = tuple[str, str]
"""Owner and source id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAttempt:
    """The last commit of a source: how often it was tried, and whether it may be tried again."""

    number: int
    retryable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldState:
    """The last attempts of the sources at hand, and the facts that their events name."""

    applied: dict[SourceKey, LastAttempt] = field(default_factory=dict)
    facts: dict[UUID, KnownFact] = field(default_factory=dict)

    def apply(self, changes: Changes) -> Self:
        """The state in which the next commit is folded; this one is not modified."""
        after = type(self)(applied=dict(self.applied), facts=dict(self.facts))
        after.advance(changes)
        return after

    def advance(self, changes: Changes) -> None:
        """Become the state in which the next commit is folded: for who holds the only reference."""
        for row in changes.commits:
            self.applied[source_of(row.commit)] = attempt_of(row.commit)
        for new in changes.facts:
            fact_id = new.fact.fact_id
            self.facts[fact_id] = KnownFact(fact_id=fact_id, scope=scope_columns(new.commit.scope), state=new.state)
        for known in changes.updates:
            self.facts[known.fact_id] = known


def source_of(commit: Commit) -> SourceKey:
    return (commit.owner, commit.source_id)


def attempt_of(commit: Commit) -> LastAttempt:
    return LastAttempt(number=commit.attempt, retryable=commit.retryable)


def fact_ids_of_commits(commits: Iterable[Commit]) -> list[UUID]:
    """Every known fact that the commits' events name, or whose ends they move."""
    events = [event for commit in commits for event in commit.events]
    named = [target for event in events for target in event.named_ids]
    moved = [one.fact_id for event in events for one in event.moved_ends]
    return list(dict.fromkeys((*named, *moved)))
