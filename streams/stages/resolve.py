"""`resolve`: the only writer of the log. It decides what a source means for the known facts and commits it.

It waits until all earlier commits of the owner are projected, commits no source twice, and looks again where the scope
has moved since `match` looked.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final
from uuid import UUID

from mnemolog.projections.matching import Matcher, Standing
from mnemolog.projections.policies import with_overrides
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End, MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Dropped, Provenance, Step, Thresholds
from mnemolog.streams import metrics
from mnemolog.streams.recording import ChatRecorder, EmbeddingRecorder
from mnemolog.streams.records import Record
from mnemolog.streams.stages.accounting import added, ended, tokens
from mnemolog.streams.stages.carried import Commanding
from mnemolog.streams.stages.carrying import MAX_DETAIL, over_limit
from mnemolog.streams.stages.deciding import events
from mnemolog.streams.stages.embed import ThresholdsFor
from mnemolog.streams.stages.freshness import Freshness
from mnemolog.streams.stages.in_turn import with_earlier
from mnemolog.streams.stages.judging import Judging
from mnemolog.streams.stages.lookups import Bygone, Limiting, Lookups
from mnemolog.streams.stages.making import Circumstances, said
from mnemolog.streams.stages.match import Matching, RulesFor
from mnemolog.streams.stages.reading import Received
from mnemolog.streams.stages.settling import unsettled
from mnemolog.streams.stages.weighing import fills_slot, overtaken, weigh

Clock = Callable[[], datetime]
_REMEMBERED_ATTEMPTS: Final = 1000  # more than are ever under way
_UNKNOWN: Final = datetime.max.replace(tzinfo=UTC)
_NO_SCOPE: Final = End(outcome="failed", reason="no_scope")


class Resolver:
    """Works on one source's matched facts, or on a command; gives its commit, or None where it has one already.

    `configured` are the rules where no policy says otherwise; `rules_for` looks policies up.
    """

    def __init__(
        self,
        *,
        matcher: Matcher,
        matching: Matching,
        model: ChatRecorder,
        embedder: EmbeddingRecorder,
        freshness: Freshness,
        thresholds_for: ThresholdsFor,
        configured: Rules,
        rules_for: RulesFor,
        limiting: Limiting,
        commanding: Commanding,
        lookups: Lookups,
        clock: Clock,
    ) -> None:
        self._matcher = matcher
        self._matching = matching
        self._judging = Judging(model, embedder)
        self._embedding_model = embedder.model
        self._freshness = freshness
        self._thresholds_for = thresholds_for
        self._configured = configured
        self._rules_for = rules_for
        self._limiting = limiting
        self._commanding = commanding
        self._lookups = lookups
        self._clock = clock
        self._attempts: dict[str, int] = {}

    async def __call__(self, received: Received[MatchedFacts], record: Record) -> Commit | None:
        envelope = received.envelope
        await self._freshness.reached(envelope.owner, record.partition)
        standing = await self._matcher.standing(envelope.owner, envelope.source_id, envelope.scope)
        if standing.committed and not _may_try_again(standing, envelope):
            metrics.ALREADY_COMMITTED.inc()
            return None
        if standing.committed:
            self._remember(envelope.origin.position, standing.attempt + 1)
        return await self._resolved(received.checked(), standing)

    async def _resolved(self, envelope: MatchedFacts, standing: Standing) -> Commit:
        attempt = standing.attempt + 1
        if envelope.scope is None:
            return self.ended(envelope, envelope.end or _NO_SCOPE, attempt=attempt)
        rules = with_overrides(standing.policies.over(self._configured), envelope.overrides)
        facts, version = envelope.facts, standing.scope_version
        if facts and envelope.source_kind == "turn" and version != envelope.scope_version:
            facts, version = await self._matching.matched(envelope, envelope.scope, facts, rules)
        current = envelope.model_copy(update={"facts": facts, "scope_version": version})
        return await self._decide(current, rules, attempt, last_end=standing.last_end)

    async def decide(self, envelope: MatchedFacts, *, attempt: int = 1) -> Commit:
        """What would be committed, by the candidates that `envelope` brings; nothing is waited for or sent."""
        if envelope.scope is None:
            return self.ended(envelope, envelope.end or _NO_SCOPE, attempt=attempt)
        return await self._decide(
            envelope, await self._rules_for(envelope.scope, envelope.overrides), attempt, last_end=_UNKNOWN
        )

    def ended(self, envelope: MatchedFacts, end: End, step: Step | None = None, *, attempt: int = 1) -> Commit:
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

    def finish(self, received: Received[MatchedFacts], end: End, step: Step | None) -> Commit:
        """The commit of a source that failed here, as the attempt that it was."""
        attempt = self._attempts.pop(received.origin.position, 1)
        return self.ended(received.envelope, end, step, attempt=attempt)

    def _remember(self, position: str, attempt: int) -> None:
        self._attempts[position] = attempt
        if len(self._attempts) > _REMEMBERED_ATTEMPTS:
            del self._attempts[next(iter(self._attempts))]

    async def _decide(self, envelope: MatchedFacts, rules: Rules, attempt: int, *, last_end: datetime | None) -> Commit:
        if envelope.end is not None:
            return self.ended(envelope, await self._allowed(envelope, envelope.end, rules), attempt=attempt)
        if envelope.source_kind == "command":
            return await self._carried(envelope, attempt)
        thresholds = self._thresholds_for(self._embedding_model, envelope.overrides)
        is_late = last_end is not None and envelope.occurred_at < last_end
        made, step = await self._events(envelope, rules, thresholds, is_late=is_late)
        steps = (*envelope.steps, step)
        spent = {"added": added(made), "ended": ended(made, self._clock()), "tokens": tokens(steps)}
        if hit := await self._limiting.refused(envelope, rules, **spent):
            return self.ended(envelope, over_limit(hit), step, attempt=attempt)
        return self._commit(
            envelope,
            attempt=attempt,
            outcome="facts" if made else "no_facts",
            reason=None if made else "nothing_kept",
            events=made,
            provenance=Provenance(steps=steps, thresholds=thresholds),
        )

    async def _allowed(self, envelope: MatchedFacts, end: End, rules: Rules) -> End:
        """The end that was found before; a turn in which nothing was found is a turn of its minute all the same."""
        if end.outcome != "no_facts":
            return end
        hit = await self._limiting.refused(envelope, rules, added=0, ended=0, tokens=tokens(envelope.steps))
        return over_limit(hit) if hit else end

    async def _carried(self, envelope: MatchedFacts, attempt: int) -> Commit:
        started = perf_counter()
        carried = await self._commanding(envelope)
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

    async def _events(
        self, envelope: MatchedFacts, rules: Rules, thresholds: Thresholds, *, is_late: bool
    ) -> tuple[tuple[MemoryEvent, ...], Step]:
        kept, dropped = _important(envelope, rules)
        reads = envelope.infer and not rules.add_only
        told = envelope.model_copy(update={"facts": kept})
        facts = with_earlier(told, rules) if reads else kept
        given = await self._circumstances(told, rules, thresholds)
        bygones = await self._bygones(told, rules) if reads and is_late else ()
        weights = [
            overtaken(fact, said(fact.fact, given), bygones, rules)
            or weigh(fact, thresholds, rules, infer=envelope.infer)
            for fact in facts
        ]
        again = unsettled(kept, thresholds, rules) if reads else ()
        judged = await self._judging(told, weights, again)
        made = events(weights, judged.judgements, given, judged.settlings)
        return made, judged.step.model_copy(update={"dropped": dropped})

    async def _bygones(self, envelope: MatchedFacts, rules: Rules) -> Sequence[Bygone]:
        """What the slots of a late turn's facts held when it was said, or since, and has ended."""
        keys = {matched.fact.key: None for matched in envelope.facts if fills_slot(matched.fact, rules)}
        asked = [key for key in keys if key is not None]
        if envelope.scope is None or not asked:
            return ()
        return await self._lookups.bygones(envelope.scope, asked, after=envelope.occurred_at)

    async def _circumstances(self, envelope: MatchedFacts, rules: Rules, thresholds: Thresholds) -> Circumstances:
        reads = envelope.infer and not rules.add_only
        waiting, newer = _to_look_up(envelope) if reads else ((), ())
        return Circumstances(
            owner=envelope.owner,
            source_id=envelope.source_id,
            occurred_at=envelope.occurred_at,
            speaker=envelope.speaker,
            thresholds=thresholds,
            rules=rules,
            infer=envelope.infer,
            pending=await self._lookups.pending_cases(waiting) if waiting else {},
            chains=await self._lookups.successors(newer) if newer else {},
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


def _may_try_again(standing: Standing, envelope: MatchedFacts) -> bool:
    """Whether the source was refused for a limit and has been published anew: another record, not the same again."""
    return standing.retryable and standing.origin != envelope.origin


def _important(envelope: MatchedFacts, rules: Rules) -> tuple[tuple[MatchedFact, ...], tuple[Dropped, ...]]:
    """What matters enough to be kept; a raw store keeps what it is given."""
    if not envelope.infer:
        return envelope.facts, ()
    kept = tuple(matched for matched in envelope.facts if matched.fact.importance >= rules.min_importance)
    below = (matched.fact.text for matched in envelope.facts if matched.fact.importance < rules.min_importance)
    dropped = tuple(Dropped(text=text, reason="below_importance") for text in below)
    metrics.FACTS_DROPPED.labels(reason="below_importance").inc(len(dropped))
    return kept, dropped


def _to_look_up(envelope: MatchedFacts) -> tuple[Sequence[UUID], Sequence[UUID]]:
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
