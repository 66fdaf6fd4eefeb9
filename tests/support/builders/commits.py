"""Real records in few words, for tests: `commit("t1", added("Alice lives in Bern."), at=day(1))`.

An event is drafted without ids; `commit` gives it its place, and the ids follow from owner, source and ordinal.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mnemolog.schemas.command import CommandPayload
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import Outcome
from mnemolog.schemas.ids import event_id, fact_id
from mnemolog.schemas.provenance import Origin, Provenance, Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.event_drafts import (
    Draft,
    added,
    confirmed,
    contradicted,
    corrected,
    expired,
    extended,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    policy_set,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
    undone,
    with_decision,
)
from tests.support.builders.values import (
    MODEL,
    START_TIME,
    EventPlace,
    day,
    decision,
    new_fact,
    pseudo_random_vector,
    vector,
    vector_with_similarity,
    weighed_candidate,
)

__all__ = [
    "ALICE",
    "BOB",
    "MODEL",
    "START_TIME",
    "Draft",
    "EventPlace",
    "added",
    "command_commit",
    "commit",
    "confirmed",
    "contradicted",
    "corrected",
    "day",
    "decision",
    "event_id_at",
    "expired",
    "extended",
    "fact_id_at",
    "merged",
    "new_fact",
    "pending",
    "pending_confirmed",
    "pending_rejected",
    "policy_set",
    "pseudo_random_vector",
    "related",
    "replaced",
    "resolved",
    "retracted",
    "skipped",
    "undone",
    "vector",
    "vector_with_similarity",
    "weighed_candidate",
    "with_decision",
]

ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")


def commit(
    source_id: str,
    *drafts: Draft,
    scope: Scope | None = ALICE,
    at: datetime = START_TIME,
    outcome: Outcome | None = None,
    steps: Sequence[Step] = (),
    **fields: Any,
) -> Commit:
    """A commit decided three seconds after its turn occurred, published one second after."""
    owner = scope.owner if scope else source_id
    places = [EventPlace(owner=owner, source_id=source_id, ordinal=ordinal, at=at) for ordinal in range(len(drafts))]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": scope,
        "origin": Origin(topic="conversation_turns", partition=0, offset=0),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "decided_at": at + timedelta(seconds=3),
        "outcome": outcome or ("facts" if drafts else "no_facts"),
        "events": tuple(draft(place) for draft, place in zip(drafts, places, strict=True)),
        "provenance": Provenance(steps=tuple(steps)),
    }
    return Commit(**defaults | fields)


def command_commit(source_id: str, payload: CommandPayload, *drafts: Draft, **fields: Any) -> Commit:
    """The commit of a command that was carried out; `fields` as for `commit`, `by` among them for its events."""
    by = fields.pop("by", "application")
    return commit(
        source_id,
        *(with_decision(draft, by=by) for draft in drafts),
        **{
            "outcome": "done",
            "source_kind": "command",
            "order": payload,
            "origin": Origin(topic="conversation_turns", partition=0, offset=0),
        }
        | fields,
    )


def event_id_at(committed: Commit, ordinal: int = 0) -> UUID:
    """The id of event `ordinal` of the commit."""
    return event_id(committed.owner, committed.source_id, ordinal)


def fact_id_at(committed: Commit, ordinal: int = 0) -> UUID:
    """The id of the fact that event `ordinal` of the commit brings."""
    return fact_id(committed.owner, committed.source_id, ordinal)
