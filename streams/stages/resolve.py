"""`resolve`: the only writer of the log. It has each source decided, once, and commits what comes of it.

It waits until all earlier commits of the owner are projected, commits no source twice, and looks for candidates again
where the scope has changed since `match` looked.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.stores.facts import CandidateFinder, SourceStatus
from mnemolog.schemas.admission import REFUSAL_REASONS
from mnemolog.schemas.command import Promote, SummariseEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MAX_DETAIL, End, MatchedFacts
from mnemolog.schemas.events import FactAdded, MemoryEvent
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Origin, Provenance, Step, Thresholds
from mnemolog.streams import metrics
from mnemolog.streams.commands.context import PublishCommand
from mnemolog.streams.commands.entities import numbered
from mnemolog.streams.commands.handler import CommandOutcome, CommandResult
from mnemolog.streams.entities.linker import EntityLinker, unlinked_names
from mnemolog.streams.entities.subjects import EntityCandidates, with_subject_relations
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.resolution.classify import without_candidates
from mnemolog.streams.resolution.limits import LimitEnforcer, added_facts
from mnemolog.streams.resolution.turn import TurnDecider
from mnemolog.streams.resolution.verdicts import HeldOverwriteCloser, with_raw_facts
from mnemolog.streams.stages.effective_settings import EffectiveSettings
from mnemolog.streams.stages.match import MatchStage
from mnemolog.streams.stages.processor import ReceivedEnvelope, WaitUntilProjected, limit_end
from mnemolog.streams.stages.promote import Promoter
from mnemolog.streams.summaries import DueSummaries, EntitySummariser

MAX_REMEMBERED_ATTEMPTS: Final = 1000  # more than are ever under way
_FROM_ENVELOPE: Final = (
    *("source_id", "source_kind", "scope", "origin", "occurred_at", "published_at", "order", "actor", "speaker"),
    *("metadata", "attempt"),
)
_ANY_TIME: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """What decides turns. With `asks_about_names` a model is asked whom doubtful names mean."""

    match_stage: MatchStage
    decider: TurnDecider
    linker: EntityLinker
    candidates: EntityCandidates
    asks_about_names: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandParts:
    """What carries commands out, by their kind, and publishes the commands that follow from a source."""

    handle: Callable[[MatchedFacts, EffectivePolicy], Awaitable[CommandResult]]
    promote: Promoter
    summarise: EntitySummariser
    publish: PublishCommand
    due_summaries: DueSummaries


@dataclass(slots=True, kw_only=True)
class ResolveStage:
    """Works on one source's matched facts, or on a command; gives its commit, or None where it has one already."""

    finder: CandidateFinder
    turns: TurnParts
    commands: CommandParts
    close_lapsed: HeldOverwriteCloser
    limits: LimitEnforcer
    settings: EffectiveSettings
    embedding_model: str
    wait_until_projected: WaitUntilProjected
    forget_replies: Callable[[str, str], Awaitable[None]]
    clock: Callable[[], datetime]
    _attempts: dict[str, int] = field(default_factory=dict, init=False)

    async def __call__(self, received: ReceivedEnvelope[MatchedFacts], record: KafkaRecord) -> Commit | None:
        envelope = received.envelope
        await self.wait_until_projected(envelope.owner, record.partition)
        status = await self.finder.source_status(envelope.owner, envelope.source_id, envelope.scope)
        if status.committed and not _may_retry(status, envelope.origin):
            metrics.ALREADY_COMMITTED.inc()
            return None
        if status.committed:
            self._attempts[envelope.origin.position] = status.attempt + 1
            if len(self._attempts) > MAX_REMEMBERED_ATTEMPTS:
                del self._attempts[next(iter(self._attempts))]
        envelope, version = received.require_valid(), status.scope_version
        rules = self.settings.rules_from(status.policies, envelope.overrides)
        if envelope.facts and envelope.source_kind == "turn" and envelope.scope_version != version:
            envelope = await self.turns.match_stage.with_candidates(envelope, rules)
            version = envelope.scope_version
        envelope = envelope.model_copy(update={"scope_version": version, "attempt": status.attempt + 1})
        commit = await self._decide(envelope, rules, latest_end=status.latest_end, stored=status.fact_ids)
        await self.commands.due_summaries(commit, rules)
        # Another attempt has to ask the models anew.
        if commit.retryable and commit.outcome == "failed" and commit.reason not in REFUSAL_REASONS:
            await self.forget_replies(envelope.owner, envelope.source_id)
        return commit

    async def decide(self, envelope: MatchedFacts) -> Commit:
        """What would be committed, by the candidates that `envelope` brings; nothing is waited for or sent."""
        rules = EffectivePolicy()
        if envelope.scope is not None:
            rules = await self.settings.rules_for(envelope.scope, envelope.overrides)
        return await self._decide(envelope, rules, latest_end=_ANY_TIME)

    def finish(self, received: ReceivedEnvelope[MatchedFacts], error: SourceEndedError) -> Commit:
        """The commit of a source that failed here, as the attempt that it was."""
        attempt = self._attempts.pop(received.envelope.origin.position, 1)
        return self._end_commit(received.envelope.model_copy(update={"attempt": attempt}), error.end, error.step)

    async def _decide(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        *,
        latest_end: datetime | None,
        stored: Sequence[UUID] = (),
    ) -> Commit:
        """The commit of a source, of which an earlier attempt has `stored` raw facts."""
        end = envelope.end if envelope.scope else envelope.end or End(outcome="failed", reason="no_scope")
        # The raw facts of a turn that no model could read are stored once, and taken back once it is read.
        is_of_raw_facts = end is not None and (end.outcome == "nothing_stored" if stored else bool(envelope.facts))
        if end is not None and (envelope.scope is None or not is_of_raw_facts):
            if end.outcome == "nothing_stored":  # such a turn counts toward turns_per_minute
                hit = await self._exceeded_limit(envelope, rules, (), envelope.steps)
                end = limit_end(hit) if hit else end
            return self._end_commit(envelope, end)
        if envelope.source_kind == "command":
            return await self._command_commit(envelope, rules, latest_end)
        return await self._turn_commit(envelope, rules, latest_end, stored)

    async def _turn_commit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, latest_end: datetime | None, stored: Sequence[UUID]
    ) -> Commit:
        named = await self.turns.linker.find(envelope, [matched.fact for matched in envelope.facts])
        asks = self.turns.asks_about_names and envelope.infer and not rules.add_only
        names = await self.turns.linker.names_to_ask(named) if named and asks else None
        raw = await self.turns.decider.lookups.facts(stored) if stored else {}
        envelope = without_candidates(await self.turns.candidates.add(envelope, named, rules), raw)
        envelope = with_subject_relations(envelope, named) if named else envelope
        thresholds, now = self.settings.thresholds_for(self.embedding_model, envelope.overrides), self.clock()
        events, step = await self.turns.decider.decide(
            envelope,
            rules,
            thresholds,
            is_late=latest_end is not None and envelope.occurred_at < latest_end,
            now=now,
            named=named,
            names=names,
        )
        metrics.FACTS_DROPPED.labels(reason="below_importance").inc(len(step.dropped))
        metrics.REPROMPTS.labels(purpose="resolve").inc(step.reprompts)
        metrics.UNRESOLVED.inc(sum(isinstance(event, FactAdded) and event.unresolved for event in events))
        named = named and named.answered(step.answered_names)
        events = await self.close_lapsed(envelope, with_raw_facts(envelope, events, raw), now)
        named_events = await self.turns.linker.events_of(envelope, events, named)
        step = step.model_copy(update={"unlinked": unlinked_names(named, named_events)})
        if hit := await self._exceeded_limit(envelope, rules, events, (*envelope.steps, step)):
            return self._end_commit(envelope, limit_end(hit), step)
        end = {"outcome": "stored"} if events else {"outcome": "nothing_stored", "reason": "nothing_kept"}
        return commit_of(
            envelope,
            decided_at=self.clock(),
            step=step,
            thresholds=thresholds,
            **(dict(envelope.end) if envelope.end is not None else end),
            events=events,
            entity_events=named_events,
        )

    async def _command_commit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, latest_end: datetime | None
    ) -> Commit:
        started = perf_counter()
        order, now = envelope.order, self.clock()
        if isinstance(order, Promote):
            thresholds = self.settings.thresholds_for(self.embedding_model, envelope.overrides)
            done = await self.commands.promote(envelope, rules, thresholds, latest_end=latest_end, now=now)
        elif isinstance(order, SummariseEntity):
            done = await self.commands.summarise(envelope, order, rules, now)
            metrics.REPROMPTS.labels(purpose="summarise").inc(done.step.reprompts)
        else:
            done = CommandOutcome(result=await self.commands.handle(envelope, rules))
        if done.user_names:
            envelope = envelope.model_copy(update={"user_names": done.user_names})
        result = done.result
        events = await self.close_lapsed(envelope, result.events, self.clock())
        step = done.step.model_copy(update={"milliseconds": round((perf_counter() - started) * 1000, 3)})
        if hit := done.limit or await self._exceeded_limit(envelope, rules, events, (step,)):
            return self._end_commit(envelope, limit_end(hit), step)
        if done.follow_up is not None:
            await self.commands.publish(done.follow_up)  # before the commit that names it: no crash loses it
        named = await self.turns.linker.events_of(envelope, events, done.named)
        changes = numbered(result.entity_changes, envelope, first=len(events) + len(named))
        return commit_of(
            envelope,
            decided_at=self.clock(),
            step=step,
            thresholds=done.thresholds,
            outcome=result.outcome,
            reason=result.reason,
            detail=result.detail,
            events=events,
            entity_events=(*named, *changes),
        )

    async def _exceeded_limit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, events: Sequence[MemoryEvent], steps: Sequence[Step]
    ) -> LimitHit | None:
        facts, tokens = added_facts(events, self.clock()), sum(step.input_tokens + step.output_tokens for step in steps)
        return await self.limits.exceeded_limit(envelope, rules, facts=facts, tokens=tokens)

    def _end_commit(self, envelope: MatchedFacts, end: End, step: Step | None = None) -> Commit:
        """The commit of a source that came to its end without a decision."""
        return commit_of(envelope, decided_at=self.clock(), step=step, **dict(end))


def commit_of(
    envelope: MatchedFacts,
    *,
    decided_at: datetime,
    step: Step | None = None,
    thresholds: Thresholds | None = None,
    detail: str = "",
    **end: Any,
) -> Commit:
    """The commit of a source that ended as the fields of `end` say; `step` is what its decision cost."""
    return Commit(
        **{name: getattr(envelope, name) for name in _FROM_ENVELOPE},
        decided_at=decided_at,
        based_on=envelope.scope_version,
        provenance=Provenance(steps=(*envelope.steps, *([step] if step else [])), thresholds=thresholds),
        detail=detail[:MAX_DETAIL],
        **end,
    )


def _may_retry(status: SourceStatus, here: Origin) -> bool:
    """Whether the source failed, or was rejected for a limit, and this is a later record of it, not a redelivery."""
    last = status.origin
    is_of_log = last is not None and (last.topic, last.partition) == (here.topic, here.partition)
    return status.retryable and not (last and is_of_log and here.offset <= last.offset)
