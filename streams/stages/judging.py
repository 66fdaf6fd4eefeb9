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
from mnemolog.streams.prompts.asking import Answer, ask
from mnemolog.streams.prompts.conflicts import number
from mnemolog.streams.prompts.errors import ReplyInvalidError
from mnemolog.streams.prompts.resolve import PROMPT_VERSION, Verdict, parse_resolution, resolution_prompt
from mnemolog.streams.providers.base import Conflict, Conflicts
from mnemolog.streams.providers.errors import PromptRefusedError
from mnemolog.streams.recording import ChatRecorder, EmbeddingRecorder, RecordedVectors, Source
from mnemolog.streams.stages.carrying import MAX_DETAIL
from mnemolog.streams.stages.in_turn import place_id
from mnemolog.streams.stages.making import Judgement, Unjudged
from mnemolog.streams.stages.settling import Again, Settling
from mnemolog.streams.stages.weighing import Contested, Weight

REPROMPTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was said on contested facts, by their place in the turn, and on unresolved ones; and what it cost."""

    judgements: Mapping[int, Judgement | Unjudged]
    settlings: tuple[Settling, ...]
    step: Step


class Judging:
    """Asks `model`; a merged text gets its vector from `embedder`."""

    def __init__(self, model: ChatRecorder, embedder: EmbeddingRecorder) -> None:
        self._model = model
        self._embedder = embedder

    async def __call__(self, envelope: MatchedFacts, weights: Sequence[Weight], again: Sequence[Again]) -> Judged:
        """One judgement for each contested fact, also where nothing valid came back; no call where there is none."""
        started = perf_counter()
        contested = {place: weight for place, weight in enumerate(weights) if isinstance(weight, Contested)}
        if not contested and not again:
            return Judged(judgements={}, settlings=(), step=_step(None))
        conflicts = _numbered(envelope, list(contested.values()), again)
        said, step = await self._said(envelope, conflicts)
        missing = [Unjudged(complaint="the turn has more conflicts than one question holds")]
        all_said = [*said, *missing * (len(contested) + len(again) - len(said))]
        judgements = dict(zip(contested, all_said, strict=False))
        metrics.UNRESOLVED.inc(sum(isinstance(judgement, Unjudged) for judgement in judgements.values()))
        settlings = map(_settling, again, all_said[len(contested) :])
        milliseconds = round((perf_counter() - started) * 1000, 3)
        return Judged(
            judgements=judgements,
            settlings=tuple(settlings),
            step=step.model_copy(update={"milliseconds": milliseconds}),
        )

    async def _said(self, envelope: MatchedFacts, conflicts: Conflicts) -> tuple[Sequence[Judgement | Unjudged], Step]:
        overrides = envelope.overrides
        question = resolution_prompt(conflicts, model=overrides.chat_model, timeout=overrides.llm_timeout)
        asked = question.model or self._model.model
        source = Source(owner=envelope.owner, source_id=envelope.source_id, stage="resolve")
        answer: Answer[tuple[Verdict, ...]] | None = None
        try:
            answer = await ask(
                self._model.for_source(source, question),
                question,
                partial(parse_resolution, subject=conflicts),
                reprompts=REPROMPTS if overrides.reprompts is None else overrides.reprompts,
            )
            vectors = await self._embedder.embed(source, tuple(_merged_texts(answer.value)))
        except (ReplyInvalidError, PromptRefusedError) as error:
            unjudged = Unjudged(complaint=str(error)[:MAX_DETAIL], model=asked, prompt_version=PROMPT_VERSION)
            return [unjudged] * len(conflicts.conflicts), _step(
                error if isinstance(error, ReplyInvalidError) else answer
            )
        return list(_judgements(answer, conflicts, vectors, asked)), _step(answer, vectors)


def _numbered(envelope: MatchedFacts, contested: Sequence[Contested], again: Sequence[Again]) -> Conflicts:
    places = range(len(envelope.facts))
    return number(
        [(weight.matched.fact, weight.candidates) for weight in contested],
        said_at=envelope.occurred_at,
        again=[(asked.unresolved, asked.rivals) for asked in again],
        just_said=frozenset(place_id(envelope.owner, envelope.source_id, place) for place in places),
    )


def _settling(asked: Again, judgement: Judgement | Unjudged) -> Settling:
    return Settling(asked=asked, judgement=judgement)


def _merged_texts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.action == "MERGE":
            yield verdict.search_text or verdict.text or ""


def _judgements(
    answer: Answer[tuple[Verdict, ...]], conflicts: Conflicts, merged: RecordedVectors, asked: str
) -> Iterator[Judgement]:
    vectors = iter(merged.vectors)
    for verdict, conflict in zip(answer.value, conflicts.conflicts, strict=True):
        yield _judgement(verdict, conflict, next(vectors) if verdict.action == "MERGE" else None, asked)


def _judgement(verdict: Verdict, conflict: Conflict, merged_vector: Vector | None, asked: str) -> Judgement:
    return Judgement(
        verdict=verdict,
        targets=tuple(known for label, known in conflict.candidates if label in verdict.targets),
        merged_vector=merged_vector,
        model=asked,
        prompt_version=PROMPT_VERSION,
    )


def _step(paid: Answer[tuple[Verdict, ...]] | ReplyInvalidError | None, merged: RecordedVectors | None = None) -> Step:
    """What was paid for, whatever came of it."""
    replies = paid.replies if paid else ()
    reprompts = max(0, len(replies) - 1)
    metrics.REPROMPTS.labels(purpose="resolve").inc(reprompts)
    return Step(
        stage="resolve",
        milliseconds=0,
        model=replies[-1].model if replies else None,
        prompt_version=PROMPT_VERSION if replies else None,
        llm_calls=len(replies),
        embedding_calls=merged.calls if merged else 0,
        input_tokens=sum(reply.usage.input_tokens for reply in replies) + (merged.tokens if merged else 0),
        output_tokens=sum(reply.usage.output_tokens for reply in replies),
        reprompts=reprompts,
        complaints=paid.complaints[:reprompts] if paid else (),  # the last one ended it, and no model was told
    )
