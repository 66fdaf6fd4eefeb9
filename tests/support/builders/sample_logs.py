"""Logs that several tests use."""

from functools import partial
from uuid import UUID

from mnemolog.schemas.command import SetPolicy, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState, FactStatus, Reversal
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from tests.support.builders import commits
from tests.support.builders.commits import (
    ALICE,
    added,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    pending,
    pending_confirmed,
    pending_rejected,
    policy_set,
    related,
    replaced,
    resolved,
    retracted,
    undone,
    with_decision,
)
from tests.support.builders.entity_events import (
    alias_added,
    entity_id_at,
    linked,
    name_alias,
    registered,
    relation_ended,
    relation_stated,
    renamed,
    with_entities,
)

POLICY = Policy(add_only=True, note="for now")
ACTIVE_STATE = FactState(
    status="active",
    confidence=0.95,
    mention_count=1,
    last_confirmed_at=None,
    true_to=None,
    closed_at=None,
    believed_from=day(1),
    believed_to=None,
    superseded_by=None,
    unresolved=False,
    true_from=day(1),
)


def every_decision_log(scope: Scope = ALICE) -> list[Commit]:
    """Every event beyond adding and replacing, one after another, with an undo that is undone, and entities."""
    commit, by_command = partial(commits.commit, scope=scope), partial(commits.command_commit, scope=scope)
    first = commit("d1", *(added(f"Fact {number}.", category="identity") for number in range(8)), at=day(1))
    first = with_entities(first, registered("Fact"), linked(0, entity_id_at(first), role="subject"))
    facts, named = [fact_id_at(first, number) for number in range(8)], entity_id_at(first)
    relations = commit("d2", extended("More.", facts[0]), related("Like.", facts[0]), at=day(2))
    ends = commit(
        "d3",
        expired(facts[1], ended_at=day(1.5)),
        retracted(facts[2], ended_at=day(1.5), text="No longer."),
        corrected("Rather.", facts[3]),
        at=day(3),
    )
    pending_commit = commit("d4", pending("B.", facts[4], category="identity"), pending("C.", facts[5]), at=day(4))
    settled = commit(
        "d5",
        pending_confirmed(fact_id_at(pending_commit), facts[4], text="B again."),
        pending_rejected(fact_id_at(pending_commit, 1), confirmed=facts[5], text="5 again."),
        at=day(5),
    )
    unresolved = commit("d6", added("Or so.", unresolved=True), at=day(6))
    twin = entity_id_at(unresolved)
    unresolved = with_entities(
        unresolved,
        registered("Fact Two", twins=(named,)),
        alias_added(named, name_alias("Facts", commits.vector(1.0, 0.0))),
        linked(0, named),
        linked(facts[1], named),
        renamed(named, "Facts of all"),
        relation_stated(0, named, "friend", twin),
        relation_stated(facts[1], twin, "friend", named, strength="medium"),
        relation_ended(facts[2], named, "friend", twin, at=day(5)),
    )
    resolution = commit("d7", resolved(fact_id_at(unresolved), facts[6]), at=day(7))
    replacing = commit(
        "d8", with_decision(replaced("New.", facts[7]), by="model", model="m", prompt_version="p"), at=day(8)
    )
    undone_states = [reversal(facts[7], "superseded", ACTIVE_STATE), reversal(fact_id_at(replacing), "active", None)]
    redone_states = [
        reversal(
            facts[7], "active", ACTIVE_STATE.model_copy(update={"status": "superseded", "superseded_by": facts[0]})
        ),
        reversal(fact_id_at(replacing), "undone", ACTIVE_STATE),
    ]
    undo = by_command("c1", Undo(source_id="d8"), undone(event_id_at(replacing), *undone_states), at=day(9))
    redo = undone(event_id_at(undo), *redone_states, undone_event="decision_undone", reinstated=event_id_at(replacing))
    policy = by_command("c3", SetPolicy(level="scope", policy=POLICY), policy_set(POLICY), at=day(11), actor="ops")
    redone = by_command("c2", Undo(source_id="c1"), redo, at=day(10))
    return [first, relations, ends, pending_commit, settled, unresolved, resolution, replacing, undo, redone, policy]


def reversal(fact_id: UUID, now: FactStatus, before: FactState | None) -> Reversal:
    return Reversal(fact_id=fact_id, now=now, before=before)
