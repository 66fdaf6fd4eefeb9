"""`resolve`: the only writer of the log. It has each source decided, once, and commits what comes of it.

It waits until all earlier commits of the owner are projected, commits no source twice, and looks for candidates again
where the scope has changed since `match` looked.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Final

from mnemolog.projections.stores.candidates import CandidateFinder, SourceStatus
from mnemolog.schemas.admission import REFUSAL_REASONS
from mnemolog.schemas.command import Command, Promote
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.commands import SummariseEntity
from mnemolog.schemas.envelopes import End, MatchedFacts
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.events import FactAdded
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from mnemolog.streams import metrics
from mnemolog.streams.commands.entity_handler import numbered
from mnemolog.streams.commands.handler import CommandResult
from mnemolog.streams.entities.doubtful.doubtful_names import DoubtfulNames
from mnemolog.streams.entities.linker import EntityLinker
from mnemolog.streams.entities.subject_relations import EntityCandidates, with_subject_relations
from mnemolog.streams.entities.turn_entities import TurnEntities
from mnemolog.streams.entities.unlinked_names import unlinked_names
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.resolution.commits import commit_of, end_commit
from mnemolog.streams.resolution.lapses import LapseWriter
from mnemolog.streams.resolution.limits import LimitEnforcer, added_facts, count_tokens
from mnemolog.streams.resolution.turn import TurnDecider, TurnDecision
from mnemolog.streams.shared_calls.call_wait import CallWait
from mnemolog.streams.shared_conflicts.conflict_sharer import ConflictSharer, TurnsBehind
from mnemolog.streams.shared_conflicts.waiting_turns import WaitingTurn
from mnemolog.streams.stages.envelope import ReceivedEnvelope, limit_end
from mnemolog.streams.stages.match import MatchStage
from mnemolog.streams.stages.ports import TurnSettings, WaitUntilProjected
from mnemolog.streams.stages.promote import FollowUps, Promoter, PromotionRules
from mnemolog.streams.summaries.due_summaries import DueSummaries
from mnemolog.streams.summaries.summariser import EntitySummariser

_MAX_REMEMBERED_ATTEMPTS: Final = 1000  # more than are ever under way
_ANY_TIME: Final = datetime.max.replace(tzinfo=UTC)
_NO_SCOPE: Final = End(outcome="failed", reason="no_scope")


async def nothing_behind(_most: int, _wait: CallWait) -> Sequence[MatchedFacts]:
    """No turn waits."""
    return ()


async def waiting_turns(
    read: Callable[[KafkaRecord], ReceivedEnvelope[MatchedFacts]],
    behind: Callable[[int, int, CallWait], Awaitable[Sequence[KafkaRecord]]],
    scope: Scope | None,
    most: int,
    wait: CallWait,
) -> Sequence[MatchedFacts]:
    """The turns of `scope` among the records behind one, up to the first command: it may change any fact."""
    found: list[MatchedFacts] = []
    for record in await behind(most, most, wait):
        try:
            envelope = read(record).envelope
        except UnsupportedVersionError:  # the stage stops when it comes to this record
            break
        if envelope.source_kind == "command":
            break
        found += [envelope] if envelope.scope == scope else []
    return found


class ResolveStage:
    """Works on one source's matched facts, or on a command; gives its commit, or None where it has one already."""

    def __init__(
        self,
        *,
        finder: CandidateFinder,
        match_stage: MatchStage,
        turn_decider: TurnDecider,
        conflict_sharer: ConflictSharer,
        handle_command: Callable[[MatchedFacts, EffectivePolicy], Awaitable[CommandResult]],
        promote: Promoter,
        follow_up: FollowUps,
        summarise: EntitySummariser,
        due_summaries: DueSummaries,
        close_lapsed: LapseWriter,
        linker: EntityLinker,
        asks_about_names: bool,
        limits: LimitEnforcer,
        settings: TurnSettings,
        embedding_model: str,
        wait_until_projected: WaitUntilProjected,
        forget_replies: Callable[[str, str], Awaitable[None]],
        clock: Callable[[], datetime],
    ) -> None:
        self._finder = finder
        self._entity_candidates = EntityCandidates(finder)
        self._match_stage = match_stage
        self._turn_decider = turn_decider
        self._conflict_sharer = conflict_sharer
        self._handle_command = handle_command
        self._promote = promote
        self._follow_up = follow_up
        self._summarise = summarise
        self._due_summaries = due_summaries
        self._close_lapsed = close_lapsed
        self._linker = linker
        self._asks_about_names = asks_about_names
        self._limits = limits
        self._settings = settings
        self._embedding_model = embedding_model
        self._wait_until_projected = wait_until_projected
        self._forget_replies = forget_replies
        self._clock = clock
        self._attempts: dict[str, int] = {}

    async def __call__(
        self, received: ReceivedEnvelope[MatchedFacts], record: KafkaRecord, behind: TurnsBehind = nothing_behind
    ) -> Commit | None:
        envelope = received.envelope
        await self._wait_until_projected(envelope.owner, record.partition)
        status = await self._finder.source_status(envelope.owner, envelope.source_id, envelope.scope)
        if status.committed and not _may_retry(status, envelope):
            metrics.ALREADY_COMMITTED.inc()
            return None
        attempt = status.attempt + 1
        if status.committed:
            self._attempts[envelope.origin.position] = attempt
            if len(self._attempts) > _MAX_REMEMBERED_ATTEMPTS:
                del self._attempts[next(iter(self._attempts))]
        envelope = received.require_valid()
        rules = self._settings.rules_from(status.policies, envelope.overrides)
        envelope = await self._with_candidates(envelope, rules, status)
        commit = await self._decide(envelope, rules, attempt, latest_end=status.latest_end, behind=behind)
        await self._follow_up(commit, status.policies)
        await self._due_summaries(commit, rules)
        # Another attempt has to ask the models anew.
        if commit.retryable and commit.outcome == "failed" and commit.reason not in REFUSAL_REASONS:
            await self._forget_replies(envelope.owner, envelope.source_id)
        return commit

    async def _with_candidates(
        self, envelope: MatchedFacts, rules: EffectivePolicy, status: SourceStatus
    ) -> MatchedFacts:
        if envelope.facts and envelope.source_kind == "turn" and envelope.scope_version != status.scope_version:
            return await self._match_stage.with_candidates(envelope, rules)
        return envelope.model_copy(update={"scope_version": status.scope_version})

    async def _read_waiting(self, envelope: MatchedFacts) -> WaitingTurn | None:
        """A turn that waits, as it would be decided now; None where it is decided already, or brings no facts."""
        status = await self._finder.source_status(envelope.owner, envelope.source_id, envelope.scope)
        if status.committed or not envelope.facts:
            return None
        rules = self._settings.rules_from(status.policies, envelope.overrides)
        turn = await self._with_candidates(envelope, rules, status)
        named = await self._linker.find(turn, [matched.fact for matched in turn.facts])
        return WaitingTurn(
            turn=await self._entity_candidates.add(turn, named, rules),
            rules=rules,
            thresholds=self._settings.thresholds_for(self._embedding_model, envelope.overrides),
            is_late=status.latest_end is not None and envelope.occurred_at < status.latest_end,
            named=named,
            asks_about_names=await self._names_to_ask(turn, named, rules) is not None,
        )

    async def decide(self, envelope: MatchedFacts, *, attempt: int = 1) -> Commit:
        """What would be committed, by the candidates that `envelope` brings; nothing is waited for or sent."""
        rules = EffectivePolicy()
        if envelope.scope is not None:
            rules = await self._settings.rules_for(envelope.scope, envelope.overrides)
        return await self._decide(envelope, rules, attempt, latest_end=_ANY_TIME)

    def finish(self, received: ReceivedEnvelope[MatchedFacts], end: End, step: Step | None) -> Commit:
        """The commit of a source that failed here, as the attempt that it was."""
        attempt = self._attempts.pop(received.envelope.origin.position, 1)
        return end_commit(received.envelope, end, attempt=attempt, decided_at=self._clock(), step=step)

    async def _decide(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        attempt: int,
        *,
        latest_end: datetime | None,
        behind: TurnsBehind = nothing_behind,
    ) -> Commit:
        if envelope.end is not None or envelope.scope is None:
            end = await self._end_within_limits(envelope, envelope.end or _NO_SCOPE, rules)
            return end_commit(envelope, end, attempt=attempt, decided_at=self._clock())
        if envelope.source_kind == "command":
            return await self._command_commit(envelope, rules, attempt, latest_end)
        thresholds = self._settings.thresholds_for(self._embedding_model, envelope.overrides)
        now = self._clock()
        named = await self._linker.find(envelope, [matched.fact for matched in envelope.facts])
        if named is not None:
            envelope = with_subject_relations(await self._entity_candidates.add(envelope, named, rules), named)
        names = await self._names_to_ask(envelope, named, rules)
        is_late = latest_end is not None and envelope.occurred_at < latest_end
        share = partial(self._conflict_sharer.before_call, rules=rules, behind=behind, read=self._read_waiting)
        decision = await self._turn_decider.decide(
            envelope, rules, thresholds, is_late=is_late, now=now, before_call=share, named=named, names=names
        )
        named = named and named.answered(decision.answers)
        events = await self._close_lapsed(envelope, decision.events, now)
        step = await self._conflict_sharer.with_unused(envelope, decision.step)
        named_events = await self._linker.events_of_turn(envelope, named, events)
        step = step.model_copy(update={"unlinked": unlinked_names(named, named_events)})
        _count_decision(decision)
        facts, tokens = added_facts(events, self._clock()), count_tokens((*envelope.steps, step))
        if hit := await self._limits.exceeded_limit(envelope, rules, facts=facts, tokens=tokens):
            return end_commit(envelope, limit_end(hit), attempt=attempt, decided_at=self._clock(), step=step)
        return commit_of(
            envelope,
            attempt=attempt,
            decided_at=self._clock(),
            step=step,
            thresholds=thresholds,
            outcome="facts" if events else "no_facts",
            reason=None if events else "nothing_kept",
            events=events,
            entity_events=named_events,
        )

    async def _names_to_ask(
        self, envelope: MatchedFacts, named: TurnEntities | None, rules: EffectivePolicy
    ) -> DoubtfulNames | None:
        """The names of a turn of which a model is asked whom they mean; of a raw turn none."""
        if named is None or not self._asks_about_names or not envelope.infer or rules.add_only:
            return None
        return await self._linker.names_to_ask(named)

    async def _end_within_limits(self, envelope: MatchedFacts, end: End, rules: EffectivePolicy) -> End:
        """The end that was found before; a turn without facts still counts toward turns_per_minute."""
        if end.outcome != "no_facts":
            return end
        hit = await self._limits.exceeded_limit(envelope, rules, facts=0, tokens=count_tokens(envelope.steps))
        return limit_end(hit) if hit else end

    async def _command_commit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, attempt: int, latest_end: datetime | None
    ) -> Commit:
        started, step, thresholds = perf_counter(), Step(stage="resolve", milliseconds=0), None
        follow_up: Command | None = None
        if isinstance(envelope.order, Promote):
            thresholds = self._settings.thresholds_for(self._embedding_model, envelope.overrides)
            known = PromotionRules(policy=rules, thresholds=thresholds, latest_end=latest_end, now=self._clock())
            promoted = await self._promote(envelope, known)
            result, step, follow_up = promoted.result, promoted.step, promoted.follow_up
            envelope = envelope.model_copy(update={"user_names": promoted.user_names})
        elif isinstance(envelope.order, SummariseEntity):
            summarised = await self._summarise(envelope, envelope.order, rules, self._clock())
            result, step = summarised.result, summarised.step
            metrics.REPROMPTS.labels(purpose="summarise").inc(step.reprompts)
            if summarised.limit is not None:
                return end_commit(
                    envelope, limit_end(summarised.limit), attempt=attempt, decided_at=self._clock(), step=step
                )
        else:
            result = await self._handle_command(envelope, rules)
        events = await self._close_lapsed(envelope, result.events, self._clock())
        step = step.model_copy(update={"milliseconds": round((perf_counter() - started) * 1000, 3)})
        facts, tokens = added_facts(events, self._clock()), count_tokens((step,))
        if hit := await self._limits.exceeded_limit(envelope, rules, facts=facts, tokens=tokens):
            return end_commit(envelope, limit_end(hit), attempt=attempt, decided_at=self._clock(), step=step)
        if follow_up is not None:
            await self._follow_up.publish(follow_up)
        named = await self._linker.events_of_command(envelope, events)
        changes = numbered(result.entity_changes, envelope, first=len(events) + len(named))
        return commit_of(
            envelope,
            attempt=attempt,
            decided_at=self._clock(),
            step=step,
            thresholds=thresholds,
            outcome=result.outcome,
            reason=result.reason,
            detail=result.detail,
            events=events,
            entity_events=(*named, *changes),
        )


def _may_retry(status: SourceStatus, envelope: MatchedFacts) -> bool:
    """Whether the source failed, or was rejected for a limit, and this is a later record of it, not a redelivery."""
    last, origin = status.origin, envelope.origin
    same_log = last is not None and (last.topic, last.partition) == (origin.topic, origin.partition)
    return status.retryable and not (last and same_log and origin.offset <= last.offset)


def _count_decision(decision: TurnDecision) -> None:
    metrics.FACTS_DROPPED.labels(reason="below_importance").inc(len(decision.step.dropped))
    metrics.REPROMPTS.labels(purpose="resolve").inc(decision.step.reprompts)
    metrics.UNRESOLVED.inc(sum(isinstance(event, FactAdded) and event.unresolved for event in decision.events))
