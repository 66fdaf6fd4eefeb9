"""Orders that bring a new wording, or settle which one stands: pure functions from facts to events, or a refusal."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from mnemolog.projections.known import StoredFact
from mnemolog.schemas import ids
from mnemolog.schemas.command import Correct, Edit, Resolve, Update
from mnemolog.schemas.events import ConflictResolved, FactContradicted, FactCorrected, FactReplaced, FactsMerged
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact, NewFact, Statement
from mnemolog.streams.stages.given import Events, Facts, Given
from mnemolog.streams.stages.refusals import (
    CommandRefusedError,
    edit_fault,
    is_open,
    open_fault,
    refuse_faults,
    unresolved_fault,
)


def update(given: Given, order: Update, facts: Facts, worded: Sequence[EmbeddedFact]) -> Events:
    """Each text takes the place of a fact from the time of the command on."""
    edits = _distinct(order.edits, worded)
    refuse_faults(edit_fault(given, edit, facts, by_human=False) for edit, _ in edits)
    return tuple(_updated(given, ordinal, facts[edited[0].fact_id], edited) for ordinal, edited in enumerate(edits))


def correct(given: Given, order: Correct, facts: Facts, worded: Sequence[EmbeddedFact]) -> Events:
    """A human's word takes the place of a fact that never was true, or was true until `ended_at`."""
    refuse_faults([edit_fault(given, order.edit, facts, by_human=True)])
    old = facts[order.edit.fact_id]
    if order.ended_at is not None and order.ended_at < old.true_from:
        begun = f"{old.fact_id} is true from {old.true_from.isoformat()}"
        raise CommandRefusedError("invalid_command", f"{begun}: it cannot have ended before, give a later ended_at")
    fact = _version(given, 0, old, (order.edit, worded[0]), order.ended_at)
    human = fact.model_copy(update={"authority": "human", "confidence": 1.0, "certainty": "explicit"})
    decision = given.decision("human", "corrected it", [old])
    return (FactCorrected(**given.head(0, decision), target=old.fact_id, ended_at=order.ended_at, fact=human),)


def resolve(
    given: Given, order: Resolve, facts: Facts, beside: Sequence[UUID], worded: Sequence[EmbeddedFact]
) -> Events:
    """Settle an unresolved fact against the given targets, or those of `beside` that are still open."""
    refuse_faults([unresolved_fault(given, order.fact_id, facts)])
    refuse_faults(open_fault(given, fact_id, facts) for fact_id in order.targets)
    wanted = dict.fromkeys(order.targets or (fact_id for fact_id in beside if is_open(given, fact_id, facts)))
    wanted.pop(order.fact_id, None)
    targets = tuple(facts[fact_id] for fact_id in wanted)
    if not targets and order.action != "keep_both":
        detail = f"nothing that {order.fact_id} was added beside is open any more: name targets, or keep_both"
        raise CommandRefusedError("invalid_command", detail)
    if order.action == "merge":
        return (_merged(given, facts[order.fact_id], targets, worded[0]),)
    return (_settled(given, order, facts[order.fact_id], targets),)


def _distinct(edits: Sequence[Edit], worded: Sequence[EmbeddedFact]) -> list[tuple[Edit, EmbeddedFact]]:
    """Each fact's edit with its wording, once; two different ones for one fact contradict each other."""
    distinct: dict[UUID, tuple[Edit, EmbeddedFact]] = {}
    for edit, wording in zip(edits, worded, strict=True):
        if distinct.setdefault(edit.fact_id, (edit, wording))[0] != edit:
            detail = f"{edit.fact_id} is edited twice and differently: give each fact one edit"
            raise CommandRefusedError("invalid_command", detail)
    return list(distinct.values())


def _updated(
    given: Given, ordinal: int, old: StoredFact, edited: tuple[Edit, EmbeddedFact]
) -> FactReplaced | FactContradicted:
    """The old one ends when the command was issued, by a clock that may be fast. One yet to begin never was true."""
    head = given.head(ordinal, given.decision("application", "updated it", [old]))
    if old.true_from > given.now:
        return FactContradicted(**head, targets=(old.fact_id,), fact=_version(given, ordinal, old, edited))
    ended_at = max(min(given.issued_at, given.now), old.true_from)
    fact = _version(given, ordinal, old, edited, ended_at)
    return FactReplaced(**head, targets=(old.fact_id,), ended_at=ended_at, fact=fact)


def _version(
    given: Given, ordinal: int, old: StoredFact, edited: tuple[Edit, EmbeddedFact], since: datetime | None = None
) -> NewFact:
    """A fact as before, in other words; true `since` then, or for as long as the old one is said to have been.

    An end that is still to come is the end of the new one as well, also one that was only announced.
    """
    edit, wording = edited
    stated = {name: getattr(old.fact, name) for name in ExtractedFact.model_fields}
    changed = {"text": edit.text, "excerpt": edit.text, "search_text": wording.fact.search_text}
    slot = {name: value for name, value in (("key", edit.key), ("value", edit.value)) if value is not None}
    until = old.ends_at if old.ends_at is None or since is None or since < old.ends_at else None
    timed = {"valid_until": until} | ({} if since is None else {"event_time": None})
    return NewFact(
        **stated | changed | slot | timed,
        fact_id=ids.fact_id(given.owner, given.source_id, ordinal),
        confidence=old.standing.confidence,
        true_from=since or old.true_from,
        speaker=old.speaker,
        authority=old.authority,
        vector=wording.vector,
    )


def _settled(given: Given, order: Resolve, stored: StoredFact, targets: tuple[StoredFact, ...]) -> ConflictResolved:
    ended_at = max([stored.true_from, *(known.true_from for known in targets)])
    return ConflictResolved(
        **given.head(0, given.decision("human", f"resolved it: {order.action}", [stored, *targets])),
        target=stored.fact_id,
        targets=tuple(known.fact_id for known in targets),
        action=order.action,  # type: ignore[arg-type]  # a merge is none of these, and never comes here
        ended_at=ended_at if order.action == "replace" else None,
    )


def _merged(given: Given, stored: StoredFact, targets: tuple[StoredFact, ...], wording: EmbeddedFact) -> FactsMerged:
    """One fact of all: true since the first of them was, as sure as the surest, and a human's word if one was."""
    parents = (stored, *targets)
    edit = Edit(fact_id=stored.fact_id, text=wording.fact.text)
    fact = _version(given, 0, stored, (edit, wording))
    common = {
        "true_from": min(parent.true_from for parent in parents),
        "confidence": max(parent.standing.confidence for parent in parents),
        "authority": "human" if any(parent.authority == "human" for parent in parents) else "extracted",
    }
    return FactsMerged(
        **given.head(0, given.decision("human", "resolved it: merge", parents)),
        targets=tuple(parent.fact_id for parent in parents),
        statement=Statement(text=fact.text, excerpt=fact.text),
        fact=fact.model_copy(update=common),
    )
