"""What follows for facts where entities become one, or become two again: ends, contradictions and open questions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final
from uuid import UUID

from mnemolog.schemas.base import normalise
from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.entity_events import AnyEntityChange, EntityDecisionUndone, EntitySplit
from mnemolog.schemas.entity_state import ConnectedEntities, CurrentState, RegisteredEntity, StoredChange
from mnemolog.schemas.events import ConflictResolved, DecisionUndone, MemoryEvent, SubjectsChanged
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, FactState, MovedEnd, Reversal
from mnemolog.schemas.provenance import Decision
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.context import CommandContext
from mnemolog.streams.ends import EndRules, tells_end_of
from mnemolog.streams.entities.subjects import subjects_by_fact

if TYPE_CHECKING:
    from mnemolog.projections.stores.entities import EntityStore
    from mnemolog.projections.stores.facts import FactStore

IDENTITY_EVENTS: Final = ("entities_merged", "entity_split", "entity_forgotten", "entity_decision_undone")
"""The changes of entities by which facts may be about another entity than before, and an undo of their undo."""
MENTIONED: Final = ("mention_count", "last_confirmed_at", "confidence", "true_from")
"""What repetitions change of a state: it stays as it is where the rest of an earlier state comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectChange:
    """Facts, and the entities that they are about `before` and `after` a change; None where the entity is forgotten.

    `earlier` are the states in which a fact had another ender, each with the event that came then; `beside` are the
    facts that an unresolved fact stands beside.
    """

    facts: Mapping[UUID, StoredFact]
    before: Mapping[UUID, UUID | None]
    after: Mapping[UUID, UUID | None]
    earlier: Mapping[UUID, Sequence[tuple[str, FactState]]] = field(default_factory=dict)
    beside: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict)

    def are_two(self, one: UUID, other: UUID) -> bool:
        """Whether both facts are about two entities now, as far as is known."""
        after = {self.after.get(one), self.after.get(other)}
        return None not in after and len(after) > 1

    def parts(self, one: UUID, other: UUID) -> bool:
        """Whether both facts are about two entities now, and were not known to be so."""
        before = {self.before.get(one), self.before.get(other)}
        return self.are_two(one, other) and (None in before or len(before) == 1)

    def joins(self, one: UUID, other: UUID) -> bool:
        """Whether both facts are about one entity now, and were about two."""
        before = {self.before.get(one), self.before.get(other)}
        after = {self.after.get(one), self.after.get(other)}
        return None not in before | after and len(before) > 1 and len(after) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """What follows for facts: new states, open questions (`marks`), and `parted`: facts that their enders end no more.

    When parted facts end instead is decided with the other ends of their slot (`mnemolog.streams.ends`).
    """

    parted: Mapping[UUID, UUID] = field(default_factory=dict)
    states: Mapping[UUID, FactState] = field(default_factory=dict)
    marks: Sequence[MovedEnd] = ()


def consequences(change: SubjectChange, rules: EndRules) -> Consequences:
    """What follows from a change of identity for the facts of the entities concerned.

    What ended, or was denied or merged, in favour of a fact about another entity is as it was before that. What such a
    change had opened again ends as before where both facts are about one entity again, unless it was said since. Two
    lasting values of one slot of one entity are a question: the later one is unresolved beside the earlier ones. An
    unresolved fact is none any more where all that it stood beside is about another entity.
    """
    parted = {
        fact_id: ender
        for fact_id, known in change.facts.items()
        if (ender := known.state.superseded_by) is not None and change.parts(fact_id, ender)
    }
    ended = {
        fact_id: ender
        for fact_id, ender in parted.items()
        if (was := change.facts[fact_id].state).believed_to is None
        and was.true_to is not None
        and was.status in {*ENDED_STATUSES, "active"}
    }
    states = {
        fact_id: state
        for fact_id in change.facts
        if fact_id not in ended and (state := _state_before(fact_id, change, is_parted=fact_id in parted)) is not None
    }
    now = {fact_id: states.get(fact_id, known.state) for fact_id, known in change.facts.items()}
    rivals = dict(_rivals(change, now, rules))
    for fact_id, ender in parted.items():  # a merged fact says of its entity what was said of the other one
        if fact_id in states and change.facts[fact_id].state.status == "superseded" and now[ender].status == "active":
            rivals.setdefault(ender, []).append(fact_id)
    for fact_id, beside in change.beside.items():
        left = [one for one in beside if not change.are_two(fact_id, one)]
        if fact_id in rivals:
            rivals[fact_id] += left
        elif any(change.parts(fact_id, one) or one in states for one in beside) and not any(
            one not in now or now[one].status in OPEN_STATUSES for one in left
        ):
            states[fact_id] = now[fact_id].model_copy(update={"unresolved": False})
    for fact_id in rivals:
        states[fact_id] = now[fact_id].model_copy(update={"unresolved": True})
    marks = [
        MovedEnd(fact_id=fact_id, ender=fact_id, unresolved=True, beside=tuple(dict.fromkeys(beside)))
        for fact_id, beside in rivals.items()
    ]
    return Consequences(parted=ended, states=states, marks=marks)


def _state_before(fact_id: UUID, change: SubjectChange, *, is_parted: bool) -> FactState | None:
    """The state without the ender that is about another entity now, or with the ender that is of its entity again."""
    now, earlier = change.facts[fact_id].state, change.earlier.get(fact_id, ())
    if is_parted:  # it was denied, or merged
        found = [state for _, state in earlier] if now.believed_from is not None else []
    else:
        is_open = now.status in OPEN_STATUSES and now.superseded_by is None
        found = [
            state
            for event, state in earlier
            if event == "subjects_changed"
            and (ender := change.facts.get(state.superseded_by or fact_id)) is not None
            and ender.state.believed_to is None
            and change.joins(fact_id, ender.fact_id)
            and state.mention_count == now.mention_count
            and (is_open or (now.true_to is not None and state.true_to is not None and state.true_to < now.true_to))
        ]
    return found[-1].model_copy(update={name: getattr(now, name) for name in MENTIONED}) if found else None


def _rivals(change: SubjectChange, now: Mapping[UUID, FactState], rules: EndRules) -> Iterator[tuple[UUID, list[UUID]]]:
    """The lasting facts that have become values of a slot with an earlier value, each with these."""

    def slot(known: StoredFact) -> tuple[str, str]:
        return str(change.after[known.fact_id]), known.fact.key or ""

    lasting = [
        known
        for known in change.facts.values()
        if known.fact.key and known.fact.valid_until is None and change.after.get(known.fact_id) is not None
        if now[known.fact_id].status == "active" and now[known.fact_id].true_to is None
    ]
    for _, found in groupby(sorted(lasting, key=slot), key=slot):
        values = sorted(found, key=lambda known: (known.true_from, known.fact_id))
        # The only value of its key, or an end; a key of many values has thousands that are neither.
        decisive = {
            known.fact_id
            for known in values
            if known.fact.single_valued
            or known.fact.action_hint == "retract"
            or rules.policy.is_single_valued(known.fact.key)
        }
        for place, later in enumerate(values) if decisive else ():
            rivals = [
                known.fact_id
                for known in values[:place]
                if not decisive.isdisjoint((later.fact_id, known.fact_id))
                and change.joins(later.fact_id, known.fact_id)
                and _differ(later, known, rules)
            ]
            if rivals:
                yield later.fact_id, rivals


def _differ(later: StoredFact, earlier: StoredFact, rules: EndRules) -> bool:
    """Whether two facts of one key and entity are different values of a slot, or the later one ends the earlier one."""
    if later.fact.action_hint == "retract" or earlier.fact.action_hint == "retract":
        return tells_end_of(later.fact, earlier.fact)
    values = {
        normalise(known.fact.value) if known.fact.value else known.fact.content_hash for known in (later, earlier)
    }
    return len(values) > 1 and rules.slot_relation(later.fact, earlier.fact, "same") == "same"


async def follow_changes(
    command: CommandContext,
    changes: Sequence[AnyEntityChange],
    made: Sequence[MemoryEvent],
    rules: EndRules,
    *,
    facts: "FactStore",
    entities: "EntityStore",
) -> tuple[tuple[MemoryEvent, ...], EndRules]:
    """The events `made` by a command, with what follows for facts from its `changes`; and the rules for their ends."""
    kinds = {one.undone_event if isinstance(one, EntityDecisionUndone) else one.event for one in changes}
    if kinds.isdisjoint(IDENTITY_EVENTS):
        return tuple(made), rules
    entity_ids = list(dict.fromkeys(entity_id for one in changes for entity_id in one.entity_ids))
    known = await entities.connected_entities(entity_ids)
    touched = {fact_id for event in made for fact_id in event.named_ids}
    before, after = _subjects(known, ()), _subjects(known, changes)
    stored = await facts.facts([fact_id for fact_id in before if fact_id not in touched])
    change = SubjectChange(facts=stored, before=before, after=after)
    joined = {after[one] for one in stored if before[one] != after[one]}
    asked = [
        one.fact_id
        for one in stored.values()
        if after[one.fact_id] in joined
        or (one.state.superseded_by is not None and change.parts(one.fact_id, one.state.superseded_by))
    ]
    unresolved = [one.fact_id for one in stored.values() if one.state.unresolved and one.is_open]
    change = replace(
        change,
        earlier=await entities.earlier_states(asked),
        beside={fact_id: await facts.conflicting_fact_ids(fact_id) for fact_id in unresolved},
    )
    found = consequences(change, rules)
    examples = {entity_id: fact_id for fact_id, entity_id in before.items()}
    shown = {one.entity_id: one for one in await facts.subjects_of(list(examples.values()))}
    for one in _entities(known, changes):
        shown.setdefault(one.entity_id, KnownEntity(entity_id=one.entity_id, name=one.name, type=one.type, aliases=()))
    subjects = {fact_id: shown.get(entity_id) if entity_id else None for fact_id, entity_id in after.items()}
    rules = replace(rules, subjects=subjects, parted=found.parted)
    if not (found.parted or found.states):
        return tuple(made), rules
    event = SubjectsChanged(
        **command.event_fields(len(made), changes[0].decision),
        entities=tuple(entity_ids),
        reversals=tuple(
            Reversal(fact_id=fact_id, now=stored[fact_id].state.status, before=state)
            for fact_id, state in sorted(found.states.items())
        ),
        moved_ends=tuple(found.marks),
    )
    return (*made, event), rules


async def settle_questions(
    command: CommandContext, events: Sequence[MemoryEvent], facts: "FactStore"
) -> tuple[MemoryEvent, ...]:
    """The events of a command, and the end of each open question in which only one value is left after them."""
    gone = {fact_id for event in events for fact_id in event.disbelieved_ids}
    touched = {one.fact_id for event in events for one in event.moved_ends if one.unresolved}
    settled: list[MemoryEvent] = []
    for fact_id in await facts.unresolved_beside(list(gone)) if gone else ():
        beside = await facts.conflicting_fact_ids(fact_id)
        known = await facts.facts([fact_id, *beside])
        is_asked = any(one in known and known[one].is_open for one in {*beside} - gone)
        if is_asked or gone.isdisjoint(beside) or fact_id in touched:
            continue
        decision = Decision(by="rule", reason="nothing that it stood beside is left", before=(known[fact_id].snapshot,))
        fields = command.event_fields(len(events) + len(settled), decision)
        settled.append(ConflictResolved(**fields, target=fact_id, action="keep_both"))
    return (*events, *settled)


_END: Final = {"status", "true_to", "closed_at", "believed_from", "believed_to", "superseded_by"}


async def heed_subjects(events: Sequence[DecisionUndone], facts: "FactStore") -> tuple[DecisionUndone, ...]:
    """The undo of decisions, where entities have changed since.

    No fact ends again in favour of a fact about another entity, and no question about two entities is asked again.
    """
    restored = {one.fact_id: one.before for event in events for one in event.reversals if one.before is not None}
    questions = [fact_id for fact_id, state in restored.items() if state.unresolved]
    beside = {fact_id: await facts.conflicting_fact_ids(fact_id) for fact_id in questions}
    enders = {state.superseded_by for state in restored.values() if state.superseded_by is not None}
    needed = list({*restored, *enders, *(one for ids in beside.values() for one in ids)} if enders or beside else ())
    subjects = subjects_by_fact(await facts.subjects_of(needed)) if needed else {}
    change = SubjectChange(facts={}, before={}, after={one: entity.entity_id for one, entity in subjects.items()})
    by_other = [
        one for one, state in restored.items() if state.superseded_by and change.are_two(one, state.superseded_by)
    ]
    now = await facts.facts(by_other) if by_other else {}
    states: dict[UUID, FactState] = {}
    for fact_id, known in now.items():
        if known.is_open:
            states[fact_id] = restored[fact_id].model_copy(update=known.state.model_dump(include=_END))
    for fact_id, others in beside.items():
        if others and all(change.are_two(fact_id, one) for one in others):
            states[fact_id] = states.get(fact_id, restored[fact_id]).model_copy(update={"unresolved": False})
    return tuple(
        event.model_copy(
            update={
                "reversals": tuple(
                    one.model_copy(update={"before": states.get(one.fact_id, one.before)}) for one in event.reversals
                )
            }
        )
        for event in events
    )


def _entities(known: ConnectedEntities, changes: Sequence[AnyEntityChange]) -> Sequence[RegisteredEntity]:
    """The connected entities, and those that `changes` split off."""
    split_off = (
        RegisteredEntity(one.new_id, one.event_id, one.name, one.type, is_user=False, is_named=True)
        for one in changes
        if isinstance(one, EntitySplit)
    )
    return [*known.entities, *split_off]


def _subjects(known: ConnectedEntities, changes: Sequence[AnyEntityChange]) -> dict[UUID, UUID | None]:
    """Per fact the entity that it is about after `changes`; None where that is forgotten."""
    turned = {one.original_id: one.reinstated is not None for one in changes if isinstance(one, EntityDecisionUndone)}
    new = [StoredChange(one, 0, in_effect=True) for one in changes if not isinstance(one, EntityDecisionUndone)]
    old = (one._replace(in_effect=turned.get(one.event.event_id, one.in_effect)) for one in known.changes)
    state = CurrentState.of(_entities(known, changes), (), known.links, [*old, *new])
    current = state.current()
    found: dict[UUID, UUID | None] = {}
    for (fact_id, _), entity_id in state.moved.items():
        entity = current.get(entity_id)
        if entity is None:  # of others, whom the changes do not concern
            found[fact_id] = entity_id
        else:
            found[fact_id] = None if entity.status == "forgotten" else entity.merged_into or entity_id
    return found
