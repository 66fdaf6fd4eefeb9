"""Looks up what a command names and calls the pure function of its kind; `resolve` commits the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

from mnemolog.schemas import command as orders
from mnemolog.schemas.command import MAX_ITEMS, Command, CommandPayload, named_facts
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.filters import EVERYTHING, parse_filter
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Step, Thresholds
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands import edits, status_changes, undo
from mnemolog.streams.commands.context import (
    CommandContext,
    CommandRefusedError,
    Events,
    StoredFacts,
)
from mnemolog.streams.commands.entities import ENTITY_COMMANDS, EntityChanges, EntityCommandHandler
from mnemolog.streams.commands.identity import follow_changes, heed_subjects, settle_questions
from mnemolog.streams.ends import EndRules, mark_unresolved, move_ends
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.subjects import cases_of_one_entity
from mnemolog.streams.text.differences import USER_WORDS

if TYPE_CHECKING:
    from mnemolog.projections.stores.facts import FactStore

MAX_FACTS: Final = 2000
"""How many facts or events one command may change: one commit has to hold them, and another commit their undo."""
NOTHING_SELECTED: Final = "nothing_selected"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The end of one command: `done`, also where there was nothing to do, or `rejected`, then without any event.

    `reason` is a code, and `detail` says what the caller can do; both belong to a refusal. The `detail` of a command
    that is done is a note to it. A deletion of the facts that a key, a category or a filter selects is `done` with the
    reason `NOTHING_SELECTED` where there are none.
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
    scope knows, or the first promoted fact gives; `named` are the entities of promoted facts.
    """

    result: CommandResult
    step: Step = field(default_factory=lambda: Step(stage="resolve", milliseconds=0))
    thresholds: Thresholds | None = None
    user_names: tuple[str, ...] = ()
    named: TurnEntities | None = None
    follow_up: Command | None = None
    limit: LimitHit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHandler:
    """Carries out the command of an envelope whose `source_kind` is "command"; it writes nothing itself.

    A command whose commit would take more than `max_commit_bytes` is refused.
    """

    facts: "FactStore"
    entities: EntityCommandHandler
    clock: Callable[[], datetime]
    max_commit_bytes: int

    async def __call__(self, envelope: MatchedFacts, rules: EffectivePolicy | None = None) -> CommandResult:
        """The events of the command, or why it is refused; `rules` are those of its scope.

        Waits while Postgres is unavailable.
        """
        payload = envelope.order
        if payload is None or envelope.scope is None:
            return CommandResult(outcome="rejected", reason="invalid_command", detail="the command has no payload")
        try:
            context = CommandContext(
                owner=envelope.owner,
                source_id=envelope.source_id,
                scope=envelope.scope,
                issued_at=envelope.occurred_at,
                now=self.clock(),
                actor=envelope.actor,
            )
            end_rules = EndRules(
                at=context.now,
                policy=rules or EffectivePolicy(),
                user_names=tuple(await self.facts.user_names(context.scope, USER_WORDS)),
            )
            changes: EntityChanges = ()
            if isinstance(payload, orders.Confirm | orders.Reject):
                changes, fact_ids = await self.entities.settled(context, payload)
                payload = payload.model_copy(update={"fact_ids": fact_ids})
            elif isinstance(payload, orders.Undo):
                changes = await self.entities.undone(context, payload)
            elif isinstance(payload, ENTITY_COMMANDS):
                changes = await self.entities.changes(context, payload, end_rules.user_names)
            made = await self._command_events(context, payload, envelope, end_rules, undoes=bool(changes))
            if isinstance(payload, orders.DeleteAll):
                end_rules = replace(end_rules, stays_ended=await self._is_selected(payload, made))
            elif isinstance(payload, orders.Undo):
                end_rules = replace(end_rules, stays_ended=await self._is_left_ended(context, made))
            made, end_rules = await follow_changes(
                context, changes, made, end_rules, facts=self.facts, entities=self.entities.entities
            )
            events = await mark_unresolved(await move_ends(made, self.facts, end_rules), self.facts, end_rules)
            events = await settle_questions(context, events, self.facts)
            size = len(envelope.model_dump_json(exclude={"facts"}).encode())
            size += sum(len(event.model_dump_json().encode()) + 1 for event in (*events, *changes))
            if size > self.max_commit_bytes:
                detail = f"its events take {size} bytes, and one commit {self.max_commit_bytes}"
                detail += ": give it fewer items, or a narrower selection"
                return CommandResult(outcome="rejected", reason="invalid_command", detail=detail)
        except CommandRefusedError as refusal:
            return CommandResult(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
        selects = isinstance(payload, orders.DeleteAll) and (
            payload.key or payload.category or (payload.filters or EVERYTHING) != EVERYTHING
        )
        if selects and not events:
            detail = "no fact of the scope is what the command selects: nothing was deleted"
            return CommandResult(outcome="done", reason=NOTHING_SELECTED, detail=detail)
        detail = edits.edit_notes(payload, events)
        return CommandResult(outcome="done", events=events, entity_changes=changes, detail=detail)

    async def _command_events(  # noqa: C901, PLR0912, PLR0915 - one case a command
        self,
        context: CommandContext,
        payload: CommandPayload,
        envelope: MatchedFacts,
        rules: EndRules,
        *,
        undoes: bool = False,
    ) -> Events:
        """What the command does to facts; an undo that `undoes` changes of entities need not undo any fact's event."""
        named, texts = named_facts(payload), envelope.facts
        match payload:
            case orders.Undo():
                events = await self._undo(context, payload, may_be_none=undoes)
            case orders.ForgetEntity(facts=True):  # with those that have ended
                total, fact_ids = await self.entities.entities.facts_of_entity(payload.entity_id, limit=MAX_FACTS)
                if total > MAX_FACTS:
                    detail = f"{total} facts are more than the {MAX_FACTS} that one command can delete"
                    raise CommandRefusedError("invalid_command", f"{detail}: delete some of them first")
                facts = await self.facts.facts(fact_ids) if len(fact_ids) <= MAX_ITEMS else {}
                events = status_changes.delete_all(context, fact_ids, facts)
            case orders.DeleteAll():
                events = await self._delete_all(context, payload)
            case orders.Import():
                near: dict[UUID, None] = {}
                of_key = ({"key": {"eq": payload.fact.key}},) if payload.fact.key else ()
                for wanted in ({"memory": {"eq": payload.fact.text}}, *of_key):  # apart: a key may have many facts
                    found = await self.facts.scope_facts(
                        context.scope,
                        key=None,
                        category=None,
                        wanted=parse_filter(wanted),
                        at=context.now,
                        limit=MAX_ITEMS,
                    )
                    near |= dict.fromkeys(found.fact_ids)
                known = await self.facts.facts(tuple(near))
                events = edits.import_fact(context, payload, envelope.facts[0], known, rules)
            case orders.Promote() | orders.SummariseEntity():
                raise AssertionError("promotions and summaries are decided elsewhere, with a model")
            case orders.SetPolicy():
                events = status_changes.set_policy(context, payload)
            case orders.Resolve():
                beside = () if payload.targets else await self.facts.conflicting_fact_ids(payload.fact_id)
                facts = await self.facts.facts([*named, *beside])
                events = edits.resolve(context, payload, facts, beside, texts)
            case orders.Confirm():
                cases = await cases_of_one_entity(await self.facts.pending_cases(named), self.facts.subjects_of)
                challenged = [target for case in cases.values() for target in case.targets]
                events = status_changes.confirm(context, payload, await self.facts.facts([*named, *challenged]), cases)
            case orders.Update():
                facts = await self.facts.current_facts(named)
                events = edits.update(context, payload, facts, texts, await self._former_values(facts))
            case orders.Correct():
                facts = await self.facts.current_facts(named)
                (corrected,) = edits.correct(context, payload, facts, texts, await self._former_values(facts))
                challengers = await self.facts.challenges(context.scope, [corrected.target])
                waiting = await self.facts.facts(list(challengers)) if challengers else {}
                old = facts[payload.edit.fact_id]
                events = (corrected, *edits.reject_ends(context, corrected, old, waiting))
            case orders.Delete():
                events = status_changes.delete(context, payload, await self._versions_since(named))
            case orders.Reject():
                events = status_changes.reject(context, payload, await self.facts.facts(named))
            case orders.Expire():
                events = status_changes.expire(context, payload, await self.facts.facts(named))
            case _:
                events = ()  # of entities, feedback, the end of a session: the commit says it all
        return events

    async def _former_values(self, facts: StoredFacts) -> StoredFacts:
        """What had the value of the key before those of these facts that have none, by the ids of these."""
        return await self.facts.former_values([one.fact_id for one in facts.values() if one.fact.value is None])

    async def _versions_since(self, fact_ids: Sequence[UUID]) -> StoredFacts:
        """These facts, and what took the place of each up to the current version."""
        found: dict[UUID, StoredFact] = {}
        while fact_ids:
            facts = await self.facts.facts(fact_ids)
            found |= facts
            later = {known.state.superseded_by for known in facts.values() if not known.is_open}
            fact_ids = [fact_id for fact_id in later if fact_id is not None and fact_id not in found]
        return found

    async def _delete_all(self, context: CommandContext, payload: orders.DeleteAll) -> Events:
        found = await self.facts.scope_facts(
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
        facts = await self.facts.facts(found.fact_ids) if len(found.fact_ids) <= MAX_ITEMS else {}
        return status_changes.delete_all(context, found.fact_ids, facts)

    async def _undo(self, context: CommandContext, payload: orders.Undo, *, may_be_none: bool) -> Events:
        try:
            selected = await self.facts.undo_targets(context.scope, payload, limit=MAX_FACTS + 1)
            decisions = undo.undoable_events(selected)
            latest = await self.facts.events([event.latest_id for event in decisions])
            events = undo.events_to_undo(decisions, latest)
        except CommandRefusedError:
            if may_be_none:
                return ()
            raise
        while True:
            if len(events) > MAX_FACTS:
                raise CommandRefusedError(
                    "invalid_command",
                    f"more than the {MAX_FACTS} events that one command can undo: undo a part first, or less at once",
                )
            fact_ids = dict.fromkeys(fact_id for event in events for fact_id in sorted(undo.affected_facts(event)))
            history = await self.facts.history_of(context.scope, list(fact_ids))
            later = undo.UndoPlan(history).dependent_events(events)
            # What the timer wrote follows from the end that a fact has, and goes with it.
            if not later or not (payload.cascade or all(one.decided_by == "timer" for one in later)):
                return await heed_subjects(undo.undo(context, events, history), self.facts)
            events = [*events, *later]

    async def _is_selected(self, payload: orders.DeleteAll, made: Events) -> Callable[[Candidate], bool]:
        """Whether "delete all" selects an ended fact: then its deletions do not open the fact again."""
        wanted, passed = payload.filters, frozenset[UUID]()
        if wanted is not None:
            deleted = [fact_id for event in made for fact_id in event.disbelieved_ids]
            ended = [known.fact_id for known in await self.facts.ended_facts(deleted)]
            passed = frozenset(await self.facts.passing_facts(ended, wanted))
        return lambda known: (
            payload.key in (None, known.key)
            and payload.category in (None, *known.categories)
            and (wanted is None or known.fact_id in passed)
        )

    async def _is_left_ended(self, context: CommandContext, made: Events) -> Callable[[Candidate], bool]:
        """Whether a decision that an undo puts back in effect had left an ended fact ended: so it does now."""
        again = {one.reinstated: one for one in made if isinstance(one, DecisionUndone) and one.reinstated}
        originals = await self.facts.events(list(again)) if again else ()
        since = {fact_id: one.position for one in originals for fact_id in again[one.event_id].disbelieved_ids}
        ended = {one.fact_id: one.ended_by for one in await self.facts.ended_facts(list(since))} if since else {}
        past = (await self.facts.history_of(context.scope, list(ended))).events if ended else ()
        moved = {
            fact_id
            for event in past
            for fact_id in event.affected_fact_ids & ended.keys()
            if event.position > since[ended[fact_id]]
        }
        return lambda known: known.fact_id in ended and known.fact_id not in moved
