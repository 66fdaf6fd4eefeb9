"""Asking a model what a turn's contested facts mean: one question for all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.vector import Vector
from mnemolog.streams import metrics
from mnemolog.streams.llm.ask import Answer, ask
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder, EmbeddingResult, RequestSource
from mnemolog.streams.llm.conflict_list import number_conflicts
from mnemolog.streams.llm.errors import PromptRefusedError, ReplyInvalidError
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.llm.resolve_prompt import PROMPT_VERSION, ParsedDecision, parse_resolution, resolution_prompt
from mnemolog.streams.resolution.classify import Classification, Conflict
from mnemolog.streams.resolution.event_builder import LlmDecision, NoDecision
from mnemolog.streams.resolution.retry_conflicts import RetryConflict, RetryOutcome
from mnemolog.streams.resolution.turn_state import provisional_fact_id
from mnemolog.streams.stages.envelope import MAX_DETAIL

REPROMPTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDecisions:
    """What was said on contested facts, by their place in the turn, and on unresolved ones; and what it cost."""

    decisions: Mapping[int, LlmDecision | NoDecision]
    retry_outcomes: tuple[RetryOutcome, ...]
    step: Step


class LlmDecider:
    """Asks `model`; a merged text gets its vector from `embedder`."""

    def __init__(self, model: CachedChatModel, embedder: CachedEmbedder) -> None:
        self._model = model
        self._embedder = embedder

    async def __call__(
        self, envelope: MatchedFacts, classifications: Sequence[Classification], retries: Sequence[RetryConflict]
    ) -> LlmDecisions:
        """One judgement for each contested fact, also where nothing valid came back; no call where there is none."""
        started = perf_counter()
        contested = {place: weight for place, weight in enumerate(classifications) if isinstance(weight, Conflict)}
        if not contested and not retries:
            return LlmDecisions(decisions={}, retry_outcomes=(), step=_step(None))
        conflicts = _numbered_conflicts(envelope, list(contested.values()), retries)
        said, step = await self._ask_model(envelope, conflicts)
        missing = [NoDecision(complaint="the turn has more conflicts than one question holds")]
        all_said = [*said, *missing * (len(contested) + len(retries) - len(said))]
        judgements = dict(zip(contested, all_said, strict=False))
        metrics.UNRESOLVED.inc(sum(isinstance(judgement, NoDecision) for judgement in judgements.values()))
        settlings = map(_retry_outcome, retries, all_said[len(contested) :])
        milliseconds = round((perf_counter() - started) * 1000, 3)
        return LlmDecisions(
            decisions=judgements,
            retry_outcomes=tuple(settlings),
            step=step.model_copy(update={"milliseconds": milliseconds}),
        )

    async def _ask_model(
        self, envelope: MatchedFacts, conflicts: NumberedConflicts
    ) -> tuple[Sequence[LlmDecision | NoDecision], Step]:
        overrides = envelope.overrides
        question = resolution_prompt(conflicts, model=overrides.chat_model, timeout=overrides.llm_timeout)
        asked = question.model or self._model.model
        source = RequestSource(owner=envelope.owner, source_id=envelope.source_id, stage="resolve")
        answer: Answer[tuple[ParsedDecision, ...]] | None = None
        try:
            answer = await ask(
                self._model.for_source(source, question),
                question,
                partial(parse_resolution, subject=conflicts),
                reprompts=REPROMPTS if overrides.reprompts is None else overrides.reprompts,
            )
            vectors = await self._embedder.embed(source, tuple(_merged_texts(answer.value)))
        except (ReplyInvalidError, PromptRefusedError) as error:
            unjudged = NoDecision(complaint=str(error)[:MAX_DETAIL], model=asked, prompt_version=PROMPT_VERSION)
            return [unjudged] * len(conflicts.conflicts), _step(
                error if isinstance(error, ReplyInvalidError) else answer
            )
        return list(_llm_decisions(answer, conflicts, vectors, asked)), _step(answer, vectors)


def _numbered_conflicts(
    envelope: MatchedFacts, conflicts: Sequence[Conflict], retries: Sequence[RetryConflict]
) -> NumberedConflicts:
    places = range(len(envelope.facts))
    return number_conflicts(
        [(weight.matched.fact, weight.candidates) for weight in conflicts],
        said_at=envelope.occurred_at,
        retries=[(asked.unresolved, asked.rivals) for asked in retries],
        just_said=frozenset(provisional_fact_id(envelope.owner, envelope.source_id, place) for place in places),
    )


def _retry_outcome(conflict: RetryConflict, llm_decision: LlmDecision | NoDecision) -> RetryOutcome:
    return RetryOutcome(conflict=conflict, llm_decision=llm_decision)


def _merged_texts(parsed_decisions: Sequence[ParsedDecision]) -> Iterator[str]:
    for verdict in parsed_decisions:
        if verdict.verdict == "MERGE":
            yield verdict.search_text or verdict.text or ""


def _llm_decisions(
    answer: Answer[tuple[ParsedDecision, ...]],
    conflicts: NumberedConflicts,
    merged_vectors: EmbeddingResult,
    model: str,
) -> Iterator[LlmDecision]:
    vectors = iter(merged_vectors.vectors)
    for verdict, conflict in zip(answer.value, conflicts.conflicts, strict=True):
        yield _llm_decision(verdict, conflict, next(vectors) if verdict.verdict == "MERGE" else None, model)


def _llm_decision(
    parsed_decision: ParsedDecision, conflict: NumberedConflict, merged_vector: Vector | None, model: str
) -> LlmDecision:
    return LlmDecision(
        reply=parsed_decision,
        targets=tuple(known for label, known in conflict.candidates if label in parsed_decision.targets),
        merged_vector=merged_vector,
        model=model,
        prompt_version=PROMPT_VERSION,
    )


def _step(
    answer_or_error: Answer[tuple[ParsedDecision, ...]] | ReplyInvalidError | None,
    merged_vectors: EmbeddingResult | None = None,
) -> Step:
    """What was paid for, whatever came of it."""
    replies = answer_or_error.replies if answer_or_error else ()
    reprompts = max(0, len(replies) - 1)
    metrics.REPROMPTS.labels(purpose="resolve").inc(reprompts)
    return Step(
        stage="resolve",
        milliseconds=0,
        model=replies[-1].model if replies else None,
        prompt_version=PROMPT_VERSION if replies else None,
        llm_calls=len(replies),
        embedding_calls=merged_vectors.calls if merged_vectors else 0,
        input_tokens=sum(reply.usage.input_tokens for reply in replies)
        + (merged_vectors.tokens if merged_vectors else 0),
        output_tokens=sum(reply.usage.output_tokens for reply in replies),
        reprompts=reprompts,
        complaints=answer_or_error.complaints[:reprompts]
        if answer_or_error
        else (),  # the last one ended it, and no model was told
    )
