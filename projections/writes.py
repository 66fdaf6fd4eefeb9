"""What a commit did, told as the result of a write."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from projections.results import Memory, MemoryEventName, Tokens, WriteResult
from schemas.commit import Commit
from schemas.events import FactConfirmed, FactSkipped, MemoryEvent
from schemas.provenance import Step

NAMES: Final[dict[str, MemoryEventName]] = {
    "fact_added": "ADD",
    "fact_skipped": "SKIP",
    "fact_confirmed": "KEEP",
    "facts_merged": "MERGE",
    "fact_replaced": "REPLACE",
    "fact_contradicted": "CONTRADICT",
}
_WEIGHED_BY: Final = ("model", "fallback")
_SUCCESS: Final = ("facts", "no_facts")


def write_result(commit: Commit) -> WriteResult:
    """Read off a commit what its turn did and cost. Pure."""
    memories = tuple(_memory(event) for event in commit.events)
    counts = Counter(memory.event for memory in memories)
    ended = {name: _targets(memories, name) for name in NAMES.values()}
    steps = commit.provenance.steps
    return WriteResult(
        turn_id=commit.source_id,
        status=commit.outcome,
        success=commit.outcome in _SUCCESS,
        error=None if commit.outcome in _SUCCESS else _error(commit),
        memories=memories,
        skipped=counts["SKIP"],
        conflicts=sum(event.decision.by in _WEIGHED_BY for event in commit.events),
        facts_added=sum(counts[name] for name in ("ADD", "MERGE", "REPLACE", "CONTRADICT")),
        facts_updated=len(ended["MERGE"] | ended["REPLACE"]),
        facts_unchanged=len(ended["SKIP"] | ended["KEEP"]),
        facts_deleted=len(ended["CONTRADICT"]),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=Tokens(input=sum(step.input_tokens for step in steps), output=sum(step.output_tokens for step in steps)),
        milliseconds=_milliseconds(steps),
        duration_ms=(commit.decided_at - commit.published_at).total_seconds() * 1000,
    )


def _memory(event: MemoryEvent) -> Memory:
    name, reason = NAMES[event.event], event.decision.reason
    if isinstance(event, FactSkipped | FactConfirmed):
        return Memory(
            fact_id=event.target, text=event.statement.text, event=name, targets=(event.target,), reason=reason
        )
    targets = () if event.event == "fact_added" else event.targets
    return Memory(fact_id=event.fact.fact_id, text=event.fact.text, event=name, targets=targets, reason=reason)


def _targets(memories: Iterable[Memory], name: MemoryEventName) -> set[object]:
    return {target for memory in memories if memory.event == name for target in memory.targets}


def _error(commit: Commit) -> str:
    return ": ".join(part for part in (commit.reason, commit.detail) if part) or commit.outcome


def _milliseconds(steps: Iterable[Step]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for step in steps:
        spent[step.stage] = spent.get(step.stage, 0.0) + step.milliseconds
    return spent
