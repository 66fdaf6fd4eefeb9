"""Publishes the commands that a policy has follow from a source whose facts name entities."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.commands import SummariseEntity
from mnemolog.schemas.entities.events import FactLinked
from mnemolog.schemas.ids import summary_command_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.summaries.summariser import SummaryReader

MAX_DUE: Final = 5
"""How many entities one source has summarised: a turn may name many."""


class DueSummaries:
    """Publishes a command for each entity whose changed facts reach or pass a multiple of `summary_changes`.

    Facts that the commit ends count as those that it adds: else one that does both would step over a multiple.
    So an attempt that failed is made again only after as many changes more. The command is
    published before the commit, and published twice it takes effect once.
    """

    def __init__(self, facts: SummaryReader, publish: Callable[[Command], Awaitable[object]]) -> None:
        self._facts = facts
        self._publish = publish

    async def __call__(self, commit: Commit, rules: EffectivePolicy) -> None:
        """`rules` are those of the scope of the commit, which is not in the tables yet."""
        if rules.entity_summary != "after_changes" or commit.scope is None:
            return
        changed = _new_facts(commit)
        if ended := {fact_id for event in commit.events for fact_id in event.ended_ids}:
            changed += Counter(await self._facts.named_by(list(ended)))
        before = await self._facts.changed_facts(list(changed)) if changed else {}
        every = rules.summary_changes
        due = [one for one, count in changed.items() if (before[one] + count) // every > before[one] // every]
        for place, entity_id in enumerate(due[:MAX_DUE]):
            await self._publish(
                Command(
                    command_id=summary_command_id(commit.owner, commit.source_id, place),
                    scope=commit.scope,
                    issued_at=commit.published_at,
                    order=SummariseEntity(entity_id=entity_id, by_policy=True),
                    actor="the policy entity_summary=after_changes",
                )
            )


def _new_facts(commit: Commit) -> Counter[UUID]:
    """How many facts of a commit name each entity."""
    linked = (event for event in commit.entity_events if isinstance(event, FactLinked))
    return Counter(entity_id for event in linked for entity_id in {link.entity_id for link in event.links})
