"""`resolve`: the only writer of the log. It decides what a source means for the known facts and commits it.

It waits until all earlier commits of the owner are projected, commits no source twice, and looks again where the scope
has moved since `match` looked.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.stores.candidates import CandidateFinder, SourceStatus
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End, MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import DroppedStatement, Provenance, Step, Thresholds
from mnemolog.schemas.stored import ClosedValue
from mnemolog.streams import metrics
from mnemolog.streams.commands.result import HandleCommand
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.resolution.classify import classify, classify_obsolete, fills_slot
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.event_builder import DecisionContext, statement_context
from mnemolog.streams.resolution.event_counts import count_added, count_ended, count_tokens
from mnemolog.streams.resolution.llm_decisions import LlmDecider
from mnemolog.streams.resolution.ports import LimitCheck, Lookups
from mnemolog.streams.resolution.retry_conflicts import conflicts_to_retry
from mnemolog.streams.resolution.turn_state import with_earlier_facts
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.stages.embed import ThresholdsFor
from mnemolog.streams.stages.envelope import MAX_DETAIL, limit_end
from mnemolog.streams.stages.match import MatchStage, RulesFor
from mnemolog.streams.stages.received import ReceivedEnvelope

Clock = Callable[[], datetime]
_MAX_REMEMBERED_ATTEMPTS: Final = 1000  # more than are ever under way
_ASSUME_LATE: Final = datetime.max.replace(tzinfo=UTC)
_NO_SCOPE: Final = End(outcome="failed", reason="no_scope")


class ResolveStage:
    """Works on one source's matched facts, or on a command; gives its commit, or None where it has one already.

    `default_rules` are the rules where no policy says otherwise; `rules_for` looks policies up.
    """

    def __init__(
        self,
        *,
        matcher: CandidateFinder,
        match_stage: MatchStage,
        model: CachedChatModel,
        embedder: CachedEmbedder,
        read_your_writes: ReadYourWrites,
        thresholds_for: ThresholdsFor,
        default_rules: EffectivePolicy,
        rules_for: RulesFor,
        limits: LimitCheck,
        handle_command: HandleCommand,
        lookups: Lookups,
        clock: Clock,
    ) -> None:
        self._matcher = matcher
        self._match_stage = match_stage
        self._llm_decider = LlmDecider(model, embedder)
        self._embedding_model = embedder.model
        self._read_your_writes = read_your_writes
        self._thresholds_for = thresholds_for
        self._default_rules = default_rules
        self._rules_for = rules_for
        self._limits = limits
        self._handle_command = handle_command
        self._lookups = lookups
        self._clock = clock
        self._attempts: dict[str, int] = {}

    async def __call__(self, received: ReceivedEnvelope[MatchedFacts], record: KafkaRecord) -> Commit | None:
        envelope = received.envelope
        await self._read_your_writes.wait_until_projected(envelope.owner, record.partition)
        standing = await self._matcher.source_status(envelope.owner, envelope.source_id, envelope.scope)
        if standing.committed and not _may_retry(standing, envelope):
            metrics.ALREADY_COMMITTED.inc()
            return None
        if standing.committed:
            self._remember_attempt(envelope.origin.position, standing.attempt + 1)
        return await self._commit_source(received.require_valid(), standing)

    async def _commit_source(self, envelope: MatchedFacts, source_status: SourceStatus) -> Commit:
        attempt = source_status.attempt + 1
        if envelope.scope is None:
            return self.end_commit(envelope, envelope.end or _NO_SCOPE, attempt=attempt)
        rules = source_status.policies.overlay(self._default_rules).with_overrides(envelope.overrides)
        facts, version = envelope.facts, source_status.scope_version
        if facts and envelope.source_kind == "turn" and version != envelope.scope_version:
            facts, version = await self._match_stage.find_candidates(envelope, envelope.scope, facts, rules)
        current = envelope.model_copy(update={"facts": facts, "scope_version": version})
        return await self._decide(current, rules, attempt, last_end=source_status.latest_key_end)

    async def decide(self, envelope: MatchedFacts, *, attempt: int = 1) -> Commit:
        """What would be committed, by the candidates that `envelope` brings; nothing is waited for or sent."""
        if envelope.scope is None:
            return self.end_commit(envelope, envelope.end or _NO_SCOPE, attempt=attempt)
        return await self._decide(
            envelope, await self._rules_for(envelope.scope, envelope.overrides), attempt, last_end=_ASSUME_LATE
        )

    def end_commit(self, envelope: MatchedFacts, end: End, step: Step | None = None, *, attempt: int = 1) -> Commit:
        """The commit of a source that has come to its end without a decision."""
        steps = envelope.steps if step is None else (*envelope.steps, step)
        return self._commit(
            envelope,
            attempt=attempt,
            outcome=end.outcome,
            reason=end.reason,
            detail=end.detail[:MAX_DETAIL],
            limit=end.limit,
            provenance=Provenance(steps=steps),
        )

    def finish(self, received: ReceivedEnvelope[MatchedFacts], end: End, step: Step | None) -> Commit:
        """The commit of a source that failed here, as the attempt that it was."""
        attempt = self._attempts.pop(received.origin.position, 1)
        return self.end_commit(received.envelope, end, step, attempt=attempt)

    def _remember_attempt(self, position: str, attempt: int) -> None:
        self._attempts[position] = attempt
        if len(self._attempts) > _MAX_REMEMBERED_ATTEMPTS:
            del self._attempts[next(iter(self._attempts))]

    async def _decide(
        self, envelope: MatchedFacts, rules: EffectivePolicy, attempt: int, *, last_end: datetime | None
    ) -> Commit:
        if envelope.end is not None:
            return self.end_commit(
                envelope, await self._end_within_limits(envelope, envelope.end, rules), attempt=attempt
            )
        if envelope.source_kind == "command":
            return await self._command_commit(envelope, attempt)
        thresholds = self._thresholds_for(self._embedding_model, envelope.overrides)
        is_late = last_end is not None and envelope.occurred_at < last_end
        made, step = await self._turn_events(envelope, rules, thresholds, is_late=is_late)
        steps = (*envelope.steps, step)
        spent = {"added": count_added(made), "ended": count_ended(made, self._clock()), "tokens": count_tokens(steps)}
        if hit := await self._limits.exceeded_limit(envelope, rules, **spent):
            return self.end_commit(envelope, limit_end(hit), step, attempt=attempt)
        return self._commit(
            envelope,
            attempt=attempt,
            outcome="facts" if made else "no_facts",
            reason=None if made else "nothing_kept",
            events=made,
            provenance=Provenance(steps=steps, thresholds=thresholds),
        )

    async def _end_within_limits(self, envelope: MatchedFacts, end: End, rules: EffectivePolicy) -> End:
        """The end that was found before; a turn in which nothing was found is a turn of its minute all the same."""
        if end.outcome != "no_facts":
            return end
        hit = await self._limits.exceeded_limit(envelope, rules, added=0, ended=0, tokens=count_tokens(envelope.steps))
        return limit_end(hit) if hit else end

    async def _command_commit(self, envelope: MatchedFacts, attempt: int) -> Commit:
        started = perf_counter()
        carried = await self._handle_command(envelope)
        step = Step(stage="resolve", milliseconds=round((perf_counter() - started) * 1000, 3))
        return self._commit(
            envelope,
            attempt=attempt,
            outcome=carried.outcome,
            reason=carried.reason,
            detail=carried.detail[:MAX_DETAIL],
            events=carried.events,
            provenance=Provenance(steps=(*envelope.steps, step)),
        )

    async def _turn_events(
        self, envelope: MatchedFacts, rules: EffectivePolicy, thresholds: Thresholds, *, is_late: bool
    ) -> tuple[tuple[MemoryEvent, ...], Step]:
        kept, dropped = _drop_unimportant(envelope, rules)
        reads = envelope.infer and not rules.add_only
        told = envelope.model_copy(update={"facts": kept})
        facts = with_earlier_facts(told, rules) if reads else kept
        given = await self._decision_context(told, rules, thresholds)
        bygones = await self._closed_values(told, rules) if reads and is_late else ()
        weights = [
            classify_obsolete(fact, statement_context(fact.fact, given), bygones, rules)
            or classify(fact, thresholds, rules, infer=envelope.infer)
            for fact in facts
        ]
        again = conflicts_to_retry(kept, thresholds, rules) if reads else ()
        judged = await self._llm_decider(told, weights, again)
        made = decide(weights, judged.decisions, given, judged.retry_outcomes)
        return made, judged.step.model_copy(update={"dropped": dropped})

    async def _closed_values(self, envelope: MatchedFacts, rules: EffectivePolicy) -> Sequence[ClosedValue]:
        """What the slots of a late turn's facts held when it was said, or since, and has ended."""
        keys = {matched.fact.key: None for matched in envelope.facts if fills_slot(matched.fact, rules)}
        asked = [key for key in keys if key is not None]
        if envelope.scope is None or not asked:
            return ()
        return await self._lookups.closed_values(envelope.scope, asked, after=envelope.occurred_at)

    async def _decision_context(
        self, envelope: MatchedFacts, rules: EffectivePolicy, thresholds: Thresholds
    ) -> DecisionContext:
        reads = envelope.infer and not rules.add_only
        waiting, newer = _ids_to_look_up(envelope) if reads else ((), ())
        return DecisionContext(
            owner=envelope.owner,
            source_id=envelope.source_id,
            occurred_at=envelope.occurred_at,
            speaker=envelope.speaker,
            thresholds=thresholds,
            rules=rules,
            infer=envelope.infer,
            pending_cases=await self._lookups.pending_cases(waiting) if waiting else {},
            version_starts=await self._lookups.version_starts(newer) if newer else {},
        )

    def _commit(self, envelope: MatchedFacts, **fields: Any) -> Commit:
        taken_over = ("source_id", "source_kind", "scope", "origin", "occurred_at", "published_at", "order", "actor")
        return Commit(
            **{name: getattr(envelope, name) for name in taken_over},
            metadata=envelope.metadata,
            decided_at=self._clock(),
            based_on=envelope.scope_version,
            **fields,
        )


def _may_retry(source_status: SourceStatus, envelope: MatchedFacts) -> bool:
    """Whether the source was refused for a limit and has been published anew: another record, not the same again."""
    return source_status.retryable and source_status.origin != envelope.origin


def _drop_unimportant(
    envelope: MatchedFacts, rules: EffectivePolicy
) -> tuple[tuple[MatchedFact, ...], tuple[DroppedStatement, ...]]:
    """What matters enough to be kept; a raw store keeps what it is given."""
    if not envelope.infer:
        return envelope.facts, ()
    kept = tuple(matched for matched in envelope.facts if matched.fact.importance >= rules.min_importance)
    below = (matched.fact.text for matched in envelope.facts if matched.fact.importance < rules.min_importance)
    dropped = tuple(DroppedStatement(text=text, reason="below_importance") for text in below)
    metrics.FACTS_DROPPED.labels(reason="below_importance").inc(len(dropped))
    return kept, dropped


def _ids_to_look_up(envelope: MatchedFacts) -> tuple[Sequence[UUID], Sequence[UUID]]:
    """The pending facts that these may meet, and the known facts that are newer than one of these."""
    waiting: dict[UUID, None] = {}
    newer: dict[UUID, None] = {}
    for matched in envelope.facts:
        told = matched.fact.event_time or envelope.occurred_at
        for known in matched.candidates:
            waiting |= dict.fromkeys(known.challenged_by)
            if known.status == "pending_confirmation":
                waiting[known.fact_id] = None
            elif told < known.true_from:
                newer[known.fact_id] = None
    return tuple(waiting), tuple(newer)
