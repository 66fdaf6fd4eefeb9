"""Looks up what a command names and calls the pure function of its kind; `resolve` commits the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from mnemolog.schemas.command import (
    MAX_ITEMS,
    AliasEntity,
    Command,
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    EndSession,
    Expire,
    Feedback,
    ForgetEntity,
    Import,
    MergeEntities,
    Promote,
    Reject,
    RenameEntity,
    Resolve,
    SetPolicy,
    SplitEntity,
    SummariseEntity,
    Undo,
    Update,
    named_facts,
)
from mnemolog.schemas.entity_events import EntityChange
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import EmbeddedFact
from mnemolog.schemas.filters import EVERYTHING
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Step, Thresholds
from mnemolog.schemas.stored import LoggedEvent
from mnemolog.streams.commands import edits, status_changes, undo
from mnemolog.streams.commands.context import (
    CommandContext,
    CommandRefusedError,
    EventReader,
    Events,
    FactReader,
    StoredFacts,
)
from mnemolog.streams.commands.edits import facts_to_compare, import_fact
from mnemolog.streams.commands.entities import ENTITY_COMMANDS, EntityChanges, EntityCommandHandler
from mnemolog.streams.ends import EndRules, Value, mark_unresolved, move_ends
from mnemolog.streams.text.differences import USER_WORDS

MAX_FACTS: Final = 2000
NOTHING_SELECTED: Final = "nothing_selected"
"""How many facts or events one command may change: one commit has to hold them, and another one their undo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The end of one command: `done`, also where there was nothing to do, or `rejected`, then without any event.

    `reason` is a code, and `detail` says what the caller can do; both belong to a refusal. A deletion of the facts that
    a key, a category or a filter selects is `done` with the reason `NOTHING_SELECTED` where there are none.
    """

    outcome: Literal["done", "rejected"]
    events: Events = ()
    entity_changes: EntityChanges = ()
    reason: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What a command does, and what that cost; `limit` is the budget that was spent before it was carried out.

    `follow_up` is the command for what did not go into this commit. `user_names` are the names of the user that the
    scope knows, or the first promoted fact gives.
    """

    result: CommandResult
    step: Step = field(default_factory=lambda: Step(stage="resolve", milliseconds=0))
    thresholds: Thresholds | None = None
    user_names: tuple[str, ...] = ()
    follow_up: Command | None = None
    limit: LimitHit | None = None


class CommandHandler:
    """Carries out the command of an envelope whose `source_kind` is "command"; it writes nothing itself.

    A command whose commit would take more than `max_commit_bytes` is refused.
    """

    def __init__(
        self,
        *,
        facts: FactReader,
        events: EventReader,
        entities: EntityCommandHandler,
        clock: Callable[[], datetime],
        max_commit_bytes: int,
    ) -> None:
        self._facts = facts
        self._events = events
        self._entities = entities
        self._clock = clock
        self._max_commit_bytes = max_commit_bytes

    async def __call__(self, envelope: MatchedFacts, rules: EffectivePolicy | None = None) -> CommandResult:
        """The events of the command, or why it is refused; `rules` are those of its scope.

        Waits while Postgres is unavailable.
        """
        if envelope.order is None or envelope.scope is None:
            return CommandResult(outcome="rejected", reason="invalid_command", detail="the command has no payload")
        try:
            context = CommandContext(
                owner=envelope.owner,
                source_id=envelope.source_id,
                scope=envelope.scope,
                issued_at=envelope.occurred_at,
                now=self._clock(),
                actor=envelope.actor,
            )
            end_rules = EndRules(
                at=context.now,
                policy=rules or EffectivePolicy(),
                user_names=tuple(await self._facts.user_names(context.scope, USER_WORDS)),
            )
            order = envelope.order
            if isinstance(order, Confirm | Reject):
                changes, fact_ids = await self._entities.settled(context, order)
                order = order.model_copy(update={"fact_ids": fact_ids})
            else:
                changes = await self._entity_changes(context, order, end_rules.user_names)
            made = await self._command_events(context, order, envelope, end_rules, undoes=bool(changes))
            end_rules = replace(end_rules, stays_ended=await self._selected_facts(envelope.order, made))
            events = await mark_unresolved(await move_ends(made, self._facts, end_rules), self._facts, end_rules)
            self._check_size(envelope, (*events, *changes))
        except CommandRefusedError as refusal:
            return CommandResult(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
        if _selects(envelope.order) and not events:
            detail = "no fact of the scope is what the command selects: nothing was deleted"
            return CommandResult(outcome="done", reason=NOTHING_SELECTED, detail=detail)
        return CommandResult(outcome="done", events=events, entity_changes=changes)

    async def _entity_changes(
        self, context: CommandContext, payload: CommandPayload, user_names: Sequence[str]
    ) -> EntityChanges:
        """What the command changes of entities."""
        if isinstance(payload, Undo):
            return await self._entities.undone(context, payload)
        if isinstance(payload, ENTITY_COMMANDS):
            return await self._entities.changes(context, payload, user_names)
        return ()

    async def _command_events(
        self,
        context: CommandContext,
        payload: CommandPayload,
        envelope: MatchedFacts,
        rules: EndRules,
        *,
        undoes: bool = False,
    ) -> Events:
        """What the command does to facts; one that `undoes` changes of entities need not undo any fact's event."""
        named = named_facts(payload)
        match payload:
            case Undo():
                events = await self._undo(context, payload, may_be_none=undoes)
            case RenameEntity() | AliasEntity() | MergeEntities() | SplitEntity() | ForgetEntity():
                fact_ids = await self._entities.facts_to_delete(payload, limit=MAX_FACTS)
                facts = await self._facts.facts(fact_ids) if len(fact_ids) <= MAX_ITEMS else {}
                events = status_changes.delete_all(context, fact_ids, facts)
            case DeleteAll():
                events = await self._delete_all(context, payload)
            case Import():
                events = await self._import(context, payload, envelope.facts[0], rules)
            case Promote() | SummariseEntity():
                raise AssertionError("promotions and summaries are decided elsewhere, with a model")
            case Feedback() | EndSession():
                events = ()  # the commit says it all
            case SetPolicy():
                events = status_changes.set_policy(context, payload)
            case Resolve():
                beside = () if payload.targets else await self._facts.conflicting_fact_ids(payload.fact_id)
                facts = await self._facts.facts([*named, *beside])
                events = edits.resolve(context, payload, facts, beside, envelope.facts)
            case Confirm():
                cases = await self._facts.pending_cases(named)
                challenged = [target for case in cases.values() for target in case.targets]
                events = status_changes.confirm(context, payload, await self._facts.facts([*named, *challenged]), cases)
            case _:
                events = _events_on_facts(context, payload, await self._facts.facts(named), envelope.facts)
        return events

    async def _delete_all(self, context: CommandContext, payload: DeleteAll) -> Events:
        found = await self._facts.scope_facts(
            context.scope,
            key=payload.key,
            category=payload.category,
            wanted=payload.filters or EVERYTHING,
            at=context.now,
            limit=MAX_FACTS,
        )
        if found.total > MAX_FACTS:
            detail = f"{found.total} facts are more than the {MAX_FACTS} that one command can delete"
            raise CommandRefusedError(
                "invalid_command", f"{detail}: give a key, a category or a filter, such as a time of created_at"
            )
        facts = await self._facts.facts(found.fact_ids) if len(found.fact_ids) <= MAX_ITEMS else {}
        return status_changes.delete_all(context, found.fact_ids, facts)

    async def _import(
        self, context: CommandContext, payload: Import, embedded: EmbeddedFact, rules: EndRules
    ) -> Events:
        known: dict[UUID, None] = {}
        for wanted in facts_to_compare(payload):  # one after the other: those of a key may be many
            found = await self._facts.scope_facts(
                context.scope, key=None, category=None, wanted=wanted, at=context.now, limit=MAX_ITEMS
            )
            known |= dict.fromkeys(found.fact_ids)
        return import_fact(context, payload, embedded, await self._facts.facts(tuple(known)), rules)

    async def _undo(self, context: CommandContext, payload: Undo, *, may_be_none: bool) -> Events:
        try:
            selected = await self._events.undo_targets(context.scope, payload, limit=MAX_FACTS + 1)
            decisions = undo.undoable_events(selected)
            latest = await self._events.events([event.latest_id for event in decisions])
            events = undo.events_to_undo(decisions, latest)
        except CommandRefusedError:
            if may_be_none:
                return ()
            raise
        while True:
            _check_count(events)
            fact_ids = dict.fromkeys(fact_id for event in events for fact_id in sorted(undo.affected_facts(event)))
            history = await self._events.history_of(context.scope, list(fact_ids))
            later = undo.UndoPlan(history).dependent_events(events)
            if not later or not payload.cascade:
                return undo.undo(context, events, history)
            events = [*events, *later]

    async def _selected_facts(self, payload: CommandPayload, made: Events) -> Callable[[Value], bool]:
        """The facts that stay ended: what "delete all" selects is not reopened by it."""
        if not isinstance(payload, DeleteAll):
            return lambda _: False
        wanted, passed = payload.filters, frozenset[UUID]()
        if wanted is not None:
            deleted = [fact_id for event in made for fact_id in event.disbelieved_ids]
            ended = [one.fact_id for one in await self._facts.ended_facts(deleted)]
            passed = frozenset(await self._facts.passing_facts(ended, wanted))
        return lambda value: (
            payload.key in (None, value.fact.key)
            and payload.category in (None, value.fact.category)
            and (wanted is None or value.fact_id in passed)
        )

    def _check_size(self, envelope: MatchedFacts, events: Sequence[MemoryEvent | EntityChange]) -> None:
        """Raise `CommandRefusedError` for a command whose commit the log would not take."""
        size = len(envelope.model_dump_json(exclude={"facts"}).encode())
        size += sum(len(event.model_dump_json().encode()) + 1 for event in events)
        if size > self._max_commit_bytes:
            detail = f"its events take {size} bytes, and one commit {self._max_commit_bytes}"
            raise CommandRefusedError("invalid_command", f"{detail}: give it fewer items, or a narrower selection")


def _events_on_facts(
    context: CommandContext,
    payload: Update | Correct | Delete | Reject | Expire,
    facts: StoredFacts,
    embedded_texts: Sequence[EmbeddedFact],
) -> Events:
    match payload:
        case Update():
            return edits.update(context, payload, facts, embedded_texts)
        case Correct():
            return edits.correct(context, payload, facts, embedded_texts)
        case Delete():
            return status_changes.delete(context, payload, facts)
        case Reject():
            return status_changes.reject(context, payload, facts)
        case Expire():
            return status_changes.expire(context, payload, facts)


def _selects(payload: CommandPayload) -> bool:
    """Whether the command is a deletion of some facts of its scope."""
    if not isinstance(payload, DeleteAll):
        return False
    return bool(payload.key or payload.category or (payload.filters or EVERYTHING) != EVERYTHING)


def _check_count(events: Sequence[LoggedEvent]) -> None:
    if len(events) > MAX_FACTS:
        detail = f"more than the {MAX_FACTS} events that one command can undo: undo a part first, or less at once"
        raise CommandRefusedError("invalid_command", detail)
