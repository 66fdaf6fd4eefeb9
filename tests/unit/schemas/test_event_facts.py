"""Which facts an event is about, names, ends and confirms."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.events import (
    ConflictResolved,
    DecisionUndone,
    Event,
    FactAdded,
    FactCorrected,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    PendingConfirmed,
    PendingRejected,
    PolicySet,
)
from mnemolog.schemas.facts import NewFact, Reversal, Statement
from mnemolog.schemas.provenance import Decision

NEW, A, B = (UUID(int=number) for number in (9, 1, 2))
FACT = NewFact.model_construct(fact_id=NEW, text="new", excerpt="new")
WORDS = Statement(text="so it is", excerpt="so")
BY_MODEL = Decision(by="model", reason="the same", verdict="KEEP")
EQUAL_WORDS = Decision(by="rule", reason="same words")
REPEATED = {"target": A, "confirmed": B, "statement": WORDS}


@pytest.mark.parametrize(
    ("event", "fields", "expected"),
    [
        (FactAdded, {"fact": FACT}, (NEW, (), (), (), None)),
        (FactAdded, {"fact": FACT, "ended_at": "then", "ended_by": A}, (NEW, (), (A,), (NEW,), None)),
        (FactSkipped, {"target": A, "statement": WORDS}, (A, (A,), (A,), (), None)),
        (FactReplaced, {"targets": (A, B, A), "fact": FACT}, (NEW, (A, B), (A, B, A), (A, B, A), None)),
        (FactRetracted, {"targets": (A, B)}, (A, (A, B), (A, B), (A, B), None)),
        (FactRetracted, {"targets": (A,), "fact": FACT}, (NEW, (A,), (A,), (A,), None)),
        (FactCorrected, {"target": A, "fact": FACT}, (NEW, (A,), (A,), (A,), None)),
        (
            PendingConfirmed,
            {"target": A, "targets": (B,), "action": "merge", "decision": EQUAL_WORDS, "statement": WORDS},
            (A, (A, B), (B,), (B,), A),
        ),
        (
            PendingConfirmed,
            {"target": A, "targets": (), "action": "replace", "decision": EQUAL_WORDS},
            (A, (A,), (), (), None),
        ),
        (PendingRejected, REPEATED | {"decision": BY_MODEL}, (A, (A, B), (B,), (A,), B)),
        (PendingRejected, REPEATED | {"decision": EQUAL_WORDS}, (A, (A, B), (B,), (A,), None)),
        (PendingRejected, {"target": A, "confirmed": B}, (A, (A, B), (B,), (A,), None)),
        (PendingRejected, {"target": A}, (A, (A,), (), (A,), None)),
        (ConflictResolved, {"target": A, "targets": (B,), "action": "keep_both"}, (A, (A, B), (B,), (), None)),
        (ConflictResolved, {"target": A, "targets": (B,), "action": "keep_old"}, (A, (A, B), (B,), (A,), None)),
        (ConflictResolved, {"target": A, "targets": (B,), "action": "replace"}, (A, (A, B), (B,), (B,), None)),
        (
            DecisionUndone,
            {"reversals": (Reversal(fact_id=A, now="active", before=None),)},
            (None, (A,), (A,), (), None),
        ),
        (PolicySet, {}, (None, (), (), (), None)),
    ],
)
def test_an_event_knows_its_facts(event: type[Event], fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """`expected` are the subject, the named, affected and ended facts, and the confirmed one."""
    made = event.model_construct(**fields)
    found = (made.subject_id, made.named_ids, made.affected_ids, made.ended_ids, made.confirmed_id)
    assert found == expected
