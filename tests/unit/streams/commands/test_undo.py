"""What taking events back comes to: put to the law that the log then tells the same as without them."""

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError
from mnemolog.streams.commands.undo import UndoPlan, events_to_undo, undo
from mnemolog.testing import InMemoryClient
from tests.support.builders.commits import (
    ALICE,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
)
from tests.support.harnesses.memory_projection import MemoryProjection


def take_back(projection: MemoryProjection, *event_ids: UUID, cascade: bool = False) -> Commit:
    """As the command does it: with `cascade` all that builds on it as well."""
    aimed = projection.events_by_id(*event_ids)
    taken = events_to_undo(aimed, projection.events_by_id(*(event.latest_id for event in aimed)))
    past = projection.event_history()
    while cascade and (later := UndoPlan(past).dependent_events(taken)):
        taken += later
    number = len(projection.log)
    made = commit(f"undo{number}", at=day(number), outcome="done", source_kind="command")
    asked = CommandContext(
        owner=made.owner,
        source_id=made.source_id,
        scope=ALICE,
        issued_at=made.occurred_at,
        now=made.decided_at,
        actor=None,
    )
    made = made.model_copy(update={"events": undo(asked, taken, past)})
    projection.append(made)
    return made


def refused_because_built_on(projection: MemoryProjection, *event_ids: UUID) -> str:
    with pytest.raises(CommandRefusedError) as refused:
        take_back(projection, *event_ids)
    assert refused.value.reason == "built_upon"
    return refused.value.detail


def test_what_the_timer_wrote_is_undone_with_what_it_rests_on_and_a_mention_refuses() -> None:
    now = day(1)
    with InMemoryClient(now=lambda: now) as client:
        memory = client.scope(user_id="alice")
        told = memory.add("I have a visa until Friday.", wait=True)
        fact_id = told.added[0].fact_id
        now += 30 * (day(1) - day(0))
        other = memory.add("I like tea.", wait=True)
        undone = memory.undo(turn_id=told.turn_id, wait=True)
        assert undone.status == "done"
        assert [one.event for one in memory.history(fact_id).events][1:] == ["fact_expired", *["decision_undone"] * 2]
        assert memory.undo(turn_id=undone.turn_id, wait=True).status == "done"
        assert memory.get(fact_id).status == "expired"
        memory.add("I like tea.", wait=True)
        assert memory.undo(turn_id=other.turn_id, wait=True).status == "rejected"


def test_what_was_confirmed_since_is_built_upon() -> None:
    projection = MemoryProjection()
    first = projection.add(added("Old."))
    later = projection.add(confirmed(fact_id_at(first), "Just so."), source_id="later")
    refusal = refused_because_built_on(projection, event_id_at(first))
    assert all(part in refusal for part in (str(event_id_at(later)), "fact_confirmed", "later", "cascade"))
    made = take_back(projection, event_id_at(first), cascade=True)
    assert [event.undone for event in made.events if event.event == "decision_undone"] == [
        event_id_at(later),
        event_id_at(first),
    ]
    assert projection.state_of(fact_id_at(first)).status == "undone"


Building = Callable[[UUID], Draft]
BUILDING: list[Building] = [
    lambda fact_id: replaced("New.", fact_id),
    lambda fact_id: extended("More.", fact_id),
    lambda fact_id: related("Other.", fact_id),
    lambda fact_id: pending("Challenger.", fact_id),
    retracted,
    skipped,
]


@pytest.mark.parametrize("building", BUILDING)
def test_what_builds_on_a_new_fact_is_in_the_way(building: Building) -> None:
    projection = MemoryProjection()
    old = fact_id_at(projection.add(added("Old.")))
    second = projection.add(replaced("Newer.", old))
    third = projection.add(building(fact_id_at(second)))
    assert str(event_id_at(third)) in refused_because_built_on(projection, event_id_at(second))
    take_back(projection, event_id_at(third))
    take_back(projection, event_id_at(second))
    assert projection.state_of(old).status == "active"


def test_an_undo_is_built_upon_by_what_came_of_its_facts_since() -> None:
    projection = MemoryProjection()
    first = projection.add(added("Old."))
    second = projection.add(replaced("New.", fact_id_at(first)))
    undo_of_second = take_back(projection, event_id_at(second))
    third = projection.add(replaced("Newest.", fact_id_at(first)))
    assert str(event_id_at(third)) in refused_because_built_on(projection, event_id_at(undo_of_second))
    take_back(projection, event_id_at(third))
    undo_of_first = take_back(projection, event_id_at(first))  # the undone ones are no longer in the way
    assert projection.state_of(fact_id_at(first)).status == "undone"
    assert str(event_id_at(undo_of_first)) in refused_because_built_on(projection, event_id_at(undo_of_second))


Step = tuple[int, int, int]
TAKE_BACK = 19


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, TAKE_BACK + 3), st.integers(0, 99), st.integers(0, 99)), max_size=20))
def test_the_log_tells_the_same_as_one_of_the_events_in_effect_alone(steps: Sequence[Step]) -> None:
    _check_log_in_effect(steps)


def test_a_confirmation_may_be_undone_twice() -> None:
    mention, undo = (1, 0, 0), (TAKE_BACK, 1, 0)
    _check_log_in_effect([mention, mention, undo, mention, undo, undo, undo])


def _check_log_in_effect(steps: Sequence[Step]) -> None:
    projection = MemoryProjection()
    projection.add(added("Fact 0.", confidence=0.5))
    for kind, one, other in steps:
        holding = [event for event in projection.event_history().events if event.is_latest]
        if kind < TAKE_BACK:
            projection.add(_draft(projection, kind, one, other))
        else:
            take_back(projection, holding[one % len(holding)].event_id, cascade=True)
    assert_equals_log_without_undone(projection)


def assert_equals_log_without_undone(projection: MemoryProjection) -> None:
    alone = MemoryProjection()
    for made in projection.log:
        kept = (one for one in made.events if not projection.is_undone(one.event_id) and one.event != "decision_undone")
        alone.append(made.model_copy(update={"events": tuple(kept)}))
    assert not any(row.stale for row in (*projection.rows.events, *alone.rows.events))
    for fact_id in projection.facts:
        if fact_id in alone.facts:
            assert_alike(projection.state_of(fact_id), alone.state_of(fact_id))
        else:
            assert projection.state_of(fact_id).status == "undone"


def _draft(projection: MemoryProjection, kind: int, one: int, other: int) -> Draft:
    """An event that the facts, in their present state, allow; `one` and `other` choose among them."""
    facts = [(fact_id, known.state) for fact_id, known in projection.state.facts.items()]
    active = [fact_id for fact_id, state in facts if state.status == "active"]
    waiting = [fact_id for fact_id, state in facts if state.status == "pending_confirmation"]
    doubtful = [fact_id for fact_id, state in facts if state.unresolved and state.status == "active"]
    text = f"Fact {len(projection.log)}."
    if not active or kind == 0:
        return added(text, confidence=0.4 + other / 200, unresolved=bool(other % 2))
    target, another = active[one % len(active)], active[other % len(active)]
    if kind == 1 and waiting:
        return pending_confirmed(waiting[one % len(waiting)], another, text=text)
    if kind == 2 and waiting:
        return pending_rejected(waiting[one % len(waiting)], confirmed=another, text=text)
    if kind == 3 and doubtful:
        doubt = doubtful[one % len(doubtful)]
        rivals = [another] if another != doubt else []
        return resolved(doubt, *rivals, action=("keep_both", "keep_old", "contradict")[other % 3])
    return _SIMPLE[kind % len(_SIMPLE)](text, target, another)


_SIMPLE: list[Callable[[str, UUID, UUID], Draft]] = [
    lambda text, target, _: skipped(target, text),
    lambda text, target, _: confirmed(target, text),
    lambda text, target, _: replaced(text, target, ended_at=day(1)),
    lambda text, target, _: replaced(text, target, ended_at=day(999)),
    lambda _, target, __: expired(target, ended_at=day(0.5)),
    lambda text, target, _: corrected(text, target, ended_at=day(0.5)),
    lambda text, target, other: merged(text, *dict.fromkeys((target, other))),
    lambda text, target, _: contradicted(text, target),
    lambda text, target, _: extended(text, target),
    lambda _, target, __: retracted(target),
    lambda text, target, _: retracted(target, ended_at=day(999), text=text),
    lambda text, target, _: pending(text, target, confidence=0.5),
    lambda text, target, _: corrected(text, target),
]


def assert_alike(one: FactState, other: FactState) -> None:
    """The same but for what rounding does to a confidence."""
    assert one.confidence == pytest.approx(other.confidence)
    assert one.model_copy(update={"confidence": 0.0}) == other.model_copy(update={"confidence": 0.0})


def test_an_undo_that_was_taken_back_is_not_taken_back_with_a_later_one() -> None:
    projection = MemoryProjection()
    first = event_id_at(projection.add(added("Old.")))
    undone = event_id_at(take_back(projection, first))
    take_back(projection, undone)
    take_back(projection, first)
    with pytest.raises(CommandRefusedError) as refused:
        take_back(projection, undone)
    assert refused.value.reason == "already_undone"
    assert {state.status for state in map(projection.state_of, projection.facts)} == {"undone"}
