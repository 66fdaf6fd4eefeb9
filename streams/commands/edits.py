"""Commands with a new text, or a choice between texts: update, correct and resolve, from facts to events."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import Correct, Edit, Resolve, Update
from mnemolog.schemas.events import ConflictResolved, FactContradicted, FactCorrected, FactReplaced, FactsMerged
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact, NewFact, Statement
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.context import CommandContext, Events, StoredFacts
from mnemolog.streams.commands.refusals import (
    CommandRefusedError,
    edit_fault,
    is_open,
    open_fault,
    raise_for_faults,
    unresolved_fault,
)
from mnemolog.streams.commands.values import adds_denial, beginning_after_edit, value_after_edit


def update(
    context: CommandContext, payload: Update, facts: StoredFacts, embedded_texts: Sequence[EmbeddedFact]
) -> Events:
    """Each text takes the place of a fact from the time of the command on."""
    edits = _distinct_edits(payload.edits, embedded_texts)
    raise_for_faults(edit_fault(context, edit, facts, by_human=False) for edit, _ in edits)
    events: list[FactReplaced | FactContradicted] = []
    for ordinal, edit in enumerate(edits):
        old = facts[edit[0].fact_id]
        _check_beginning(edit[0].true_from, old)
        fields = context.event_fields(ordinal, context.decision("application", "updated it", [old]))
        if old.true_from > context.now:  # what has not begun yet never was true
            fact = _new_version(context, ordinal, old, edit)
            events.append(FactContradicted(**fields, targets=(old.fact_id,), fact=fact))
        else:
            issued_at = min(context.issued_at, context.now)  # the client's clock may be fast
            ended_at = max(edit[0].true_from or issued_at, old.true_from)
            fact = _new_version(context, ordinal, old, edit, ended_at)
            events.append(FactReplaced(**fields, targets=(old.fact_id,), ended_at=ended_at, fact=fact))
    return tuple(events)


def correct(
    context: CommandContext, payload: Correct, facts: StoredFacts, embedded_texts: Sequence[EmbeddedFact]
) -> Events:
    """A human's text takes the place of a fact that never was true, or was true until `ended_at`."""
    raise_for_faults([edit_fault(context, payload.edit, facts, by_human=True)])
    old = facts[payload.edit.fact_id]
    if payload.ended_at is not None and payload.ended_at < old.true_from:
        detail = f"{old.fact_id} is true since {old.true_from.isoformat()}: give an ended_at that is not before that"
        raise CommandRefusedError("invalid_command", detail)
    fact = _new_version(context, 0, old, (payload.edit, embedded_texts[0]), payload.ended_at)
    human = fact.model_copy(update={"authority": "human", "confidence": 1.0, "certainty": "explicit"})
    decision = context.decision("human", "corrected it", [old])
    return (
        FactCorrected(**context.event_fields(0, decision), target=old.fact_id, ended_at=payload.ended_at, fact=human),
    )


def resolve(
    context: CommandContext,
    payload: Resolve,
    facts: StoredFacts,
    default_targets: Sequence[UUID],
    embedded_texts: Sequence[EmbeddedFact],
) -> Events:
    """Settle an unresolved fact against the given targets, or those of `default_targets` that are still open.

    The default are the facts that the question about it was about, not all that were near.
    """
    raise_for_faults([unresolved_fault(context, payload.fact_id, facts)])
    raise_for_faults(open_fault(context, fact_id, facts) for fact_id in payload.targets)
    wanted = dict.fromkeys(
        payload.targets or (fact_id for fact_id in default_targets if is_open(context, fact_id, facts))
    )
    wanted.pop(payload.fact_id, None)
    targets = tuple(facts[fact_id] for fact_id in wanted)
    if not targets and payload.action != "keep_both":
        detail = f"no fact that {payload.fact_id} is known to stand beside is open: name targets, or use keep_both"
        raise CommandRefusedError("invalid_command", detail)
    if payload.action == "merge":
        _check_terms((facts[payload.fact_id], *targets))
        return (_facts_merged(context, facts[payload.fact_id], targets, embedded_texts[0]),)
    parents = (facts[payload.fact_id], *targets)
    ended_at = max(stored.true_from for stored in parents) if payload.action == "replace" else None
    event = ConflictResolved(
        **context.event_fields(0, context.decision("human", f"resolved it: {payload.action}", parents)),
        target=payload.fact_id,
        targets=tuple(wanted),
        action=payload.action,
        ended_at=ended_at,
    )
    return (event,)


def _check_terms(parents: Sequence[StoredFact]) -> None:
    """Raise `CommandRefusedError` where facts that hold until different times would become one."""
    if len({parent.fact.valid_until for parent in parents}) > 1:
        terms = ", ".join(f"{parent.fact_id} {parent.fact.valid_until or 'without an end'}" for parent in parents)
        detail = f"they hold until different times ({terms}): use replace, contradict or keep_both"
        raise CommandRefusedError("invalid_command", detail)


def _check_beginning(true_from: datetime | None, old: StoredFact) -> None:
    """Raise `CommandRefusedError` where a text would replace a fact before that began."""
    if true_from is not None and true_from < old.true_from:
        detail = f"{old.fact_id} is true since {old.true_from.isoformat()}: give a true_from that is not before that"
        raise CommandRefusedError("invalid_command", f"{detail}, or correct the fact")


def _distinct_edits(edits: Sequence[Edit], embedded_texts: Sequence[EmbeddedFact]) -> list[tuple[Edit, EmbeddedFact]]:
    """Each fact's edit with its embedded text, once. Raises `CommandRefusedError` where a fact has two."""
    distinct: dict[UUID, tuple[Edit, EmbeddedFact]] = {}
    for edit, text in zip(edits, embedded_texts, strict=True):
        if distinct.setdefault(edit.fact_id, (edit, text))[0] != edit:
            detail = f"{edit.fact_id} is edited twice and differently: give each fact one edit"
            raise CommandRefusedError("invalid_command", detail)
    return list(distinct.values())


def _new_version(
    context: CommandContext,
    ordinal: int,
    old: StoredFact,
    edit_with_text: tuple[Edit, EmbeddedFact],
    since: datetime | None = None,
) -> NewFact:
    """A fact with a new text; true `since` then, since what the edit or its text says, or since the old one was.

    It has the old one's term, if that is still to come. A text that denies what the old one said
    is no value of its key.
    """
    edit, text = edit_with_text
    begins = edit.true_from or (beginning_after_edit(old, edit.text, context.issued_at) if since is None else None)
    stated = {name: getattr(old.fact, name) for name in ExtractedFact.model_fields}
    changed = {"text": edit.text, "excerpt": edit.text, "search_text": text.fact.search_text}
    slot = {"key": edit.key or old.fact.key, "value": _new_value(edit, old.fact)}
    true_from = begins or since or old.true_from
    term = old.fact.valid_until
    until = term if term is None or true_from < term else None
    timed: dict[str, Any] = {"valid_until": until}
    timed |= {"event_time": begins} if since or begins else {}
    denial = {"action_hint": "retract"} if adds_denial(old.fact.text, edit.text) else {}
    return NewFact(
        **stated | changed | slot | timed | denial,
        fact_id=ids.fact_id(context.owner, context.source_id, ordinal),
        confidence=old.state.confidence,
        true_from=true_from,
        speaker=old.speaker,
        authority=old.authority,
        vector=text.vector,
    )


def _new_value(edit: Edit, old: ExtractedFact) -> str | None:
    """The given value, none where that is empty; without one the value that the new text shows."""
    return value_after_edit(old.text, old.value, edit.text) if edit.value is None else edit.value or None


def _facts_merged(
    context: CommandContext, stored: StoredFact, targets: tuple[StoredFact, ...], embedded_text: EmbeddedFact
) -> FactsMerged:
    """One fact of all: true since the first of them was, as certain as the most certain, human if one of them is."""
    parents = (stored, *targets)
    edit = Edit(fact_id=stored.fact_id, text=embedded_text.fact.text, value=stored.fact.value or "")
    fact = _new_version(context, 0, stored, (edit, embedded_text))
    common = {
        "true_from": min(parent.true_from for parent in parents),
        "confidence": max(parent.state.confidence for parent in parents),
        "authority": "human" if any(parent.authority == "human" for parent in parents) else "extracted",
    }
    return FactsMerged(
        **context.event_fields(0, context.decision("human", "resolved it: merge", parents)),
        targets=tuple(parent.fact_id for parent in parents),
        statement=Statement(text=fact.text, excerpt=fact.text),
        fact=fact.model_copy(update=common),
    )
