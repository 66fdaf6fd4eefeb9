"""Which facts a promote command takes, each as a statement for the decision in its scope."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final
from uuid import UUID

from mnemolog.schemas.command import Promote
from mnemolog.schemas.facts import MatchedFact, Original, PromotedFrom
from mnemolog.schemas.ids import follow_up_id, is_follow_up_id
from mnemolog.schemas.stored import PromotableFact, PromotableFacts
from mnemolog.streams.commands.context import CommandContext, Fault, raise_for_faults

MAX_PROMOTED: Final = 50
"""How many facts one command promotes: one question to the model holds their conflicts, and one commit their events."""
MAX_PROMOTED_BYTES: Final = 256 * 1024
"""Of their texts and vectors, which an event holds with what it ends; a fact alone may take more."""


def promoted_statements(context: CommandContext, payload: Promote, found: PromotableFacts) -> tuple[MatchedFact, ...]:
    """The facts that are active and were not promoted yet, as many as one command takes, the first said first.

    A command for the rest of another command leaves out facts that have ended since. Any other command raises
    `CommandRefusedError` where it names a fact that is unknown, of another scope, closed, or pending.
    """
    if payload.fact_ids and not is_follow_up_id(context.source_id):
        raise_for_faults(_named_faults(context, payload, found.facts))
    selected = {promotable.stored.fact_id for promotable in found.facts[: found.free]}
    statements: list[MatchedFact] = []
    size = 0
    for promotable in found.facts[: min(found.free, MAX_PROMOTED)]:
        fact = promotable.stored.fact
        size += len(f"{fact.text}{fact.search_text}{fact.excerpt}{fact.value or ''}".encode())
        size += 2 * len(promotable.vector.data)
        if statements and size > MAX_PROMOTED_BYTES:
            break
        statements.append(_statement(promotable, selected))
    return tuple(statements)


def _named_faults(context: CommandContext, payload: Promote, facts: Sequence[PromotableFact]) -> Iterator[Fault | None]:
    known = {promotable.stored.fact_id: promotable.stored for promotable in facts}
    for fact_id in payload.fact_ids:
        stored = known.get(fact_id)
        if stored is None:
            yield "unknown_fact", f"{fact_id} is not known: check the id"
        elif stored.scope != payload.source:
            yield "foreign_fact", f"{fact_id} belongs to another scope: name that scope as the source"
        elif stored.state.status == "pending_confirmation":
            yield "closed_fact", f"{fact_id} waits for a confirmation: confirm or reject it first"
        elif not stored.is_open or (stored.ends_at is not None and stored.ends_at <= context.now):
            yield "closed_fact", f"{fact_id} has ended or is {stored.state.status}: see its history for what holds"


def _statement(found: PromotableFact, selected: Collection[UUID]) -> MatchedFact:
    """The fact as it was said, with its beginning, its end and its confidence of today.

    An end that a `selected` fact has announced is left to the decision on that fact.
    """
    stored, said_at = found.stored, found.said_at
    is_plain = stored.fact.event_time is None and stored.true_from == said_at
    valid_until = stored.fact.valid_until if stored.state.superseded_by in selected else stored.ends_at
    return MatchedFact(
        fact=stored.fact.model_copy(
            update={"event_time": None if is_plain else stored.true_from, "valid_until": valid_until}
        ),
        vector=found.vector,
        original=Original(
            promoted_from=PromotedFrom(fact_id=stored.fact_id, source_id=found.source_id, said_at=said_at),
            confidence=stored.state.confidence,
            speaker=stored.speaker,
            authority=stored.authority,
        ),
    )


def promotion_detail(context: CommandContext, found: PromotableFacts, taken: int, payload: Promote) -> str:
    """What a command that promotes `taken` facts leaves out, in words; empty for nothing.

    The command for the rest is named: it is waited for, and undone, by its own id.
    """
    others = found.total - found.free - found.known
    parts = [
        f"{found.known} {'was' if found.known == 1 else 'were'} promoted before" if found.known else "",
        f"{others} left out: not active, or below min_importance" if others else "",
        f"{found.free - taken} follow in the command {follow_up_id(context.source_id)}" if found.free > taken else "",
    ]
    detail = "; ".join(filter(None, parts))
    if taken:
        return detail
    source = " ".join(f"{name}={value}" for name, value in payload.source.columns.items() if value)
    return f"nothing is promoted: {detail or f'nothing that it selects is active in {source}'}"
