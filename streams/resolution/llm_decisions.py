"""Asks the model once about all conflicts and doubtful names of a turn, and maps its reply to decisions and answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from time import perf_counter

from mnemolog.schemas.entities.model import AnsweredName
from mnemolog.schemas.envelopes import MAX_DETAIL, MatchedFacts
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Step
from mnemolog.streams.entities.doubtful.doubtful_names import DoubtfulNames
from mnemolog.streams.llm.ask import ask, step_of, with_unused
from mnemolog.streams.llm.conflict_list import number_conflicts
from mnemolog.streams.llm.errors import PromptRefusedError, ReplyInvalidError
from mnemolog.streams.llm.names.name_list import within_budget
from mnemolog.streams.llm.names.names_prompt import no_answers, parse_answers, question_prompt
from mnemolog.streams.llm.ports import NumberedConflicts, RequestSource, SourceChatModel, SourceEmbedder
from mnemolog.streams.resolution.classify import Classification, Conflict
from mnemolog.streams.resolution.event_builder import NOT_ASKED, LlmDecision, NoDecision
from mnemolog.streams.resolution.later_ends import LaterEnd, LaterEndOutcome
from mnemolog.streams.resolution.retry_conflicts import RetryConflict, RetryOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDecisions:
    """The decisions on conflicts by their place in the turn, on unresolved facts and on later ends; and what they cost.

    Conflicts that did not fit into the prompt are missing. `answers` say whom names mean.
    """

    decisions: Mapping[int, LlmDecision | NoDecision]
    retry_outcomes: tuple[RetryOutcome, ...]
    later_ends: tuple[LaterEndOutcome, ...] = ()
    answers: tuple[AnsweredName, ...] = ()
    step: Step


def conflicts_of(
    envelope: MatchedFacts,
    classifications: Sequence[Classification],
    retries: Sequence[RetryConflict],
    later_ends: Sequence[LaterEnd] = (),
    names: DoubtfulNames | None = None,
) -> NumberedConflicts | None:
    """The conflicts among the classifications, the retries and the later ends, numbered, and the names; None without.

    Names for which the prompt has no room are left out.
    """
    conflicts = [found for found in classifications if isinstance(found, Conflict)]
    names = within_budget(names) if names else None
    if not (conflicts or retries or later_ends or (names and names.names)):
        return None
    places = range(len(envelope.facts))
    just_said = {provisional_fact_id(envelope.owner, envelope.source_id, place) for place in places}
    numbered = number_conflicts(
        [(_with_its_time(conflict.matched), _with_doubts(conflict.candidates, names)) for conflict in conflicts],
        said_at=max(
            (matched.said_at(envelope.occurred_at) for matched in envelope.facts), default=envelope.occurred_at
        ),
        retries=[(retry.unresolved, retry.rivals) for retry in retries],
        later_ends=[(end.told, end.statement, end.known_as) for end in later_ends],
        just_said=frozenset(just_said | {end.statement.fact_id for end in later_ends}),
        user_names=envelope.user_names,
    )
    return replace(numbered, names=names)


def _with_doubts(known: Sequence[Candidate], names: DoubtfulNames | None) -> tuple[Candidate, ...]:
    """The known facts: those about somebody who is asked about may well be about whom the new fact is."""
    asked = {fact_id for name in names.names for twin in name.twins for fact_id in twin.subject_of} if names else set()
    return tuple(
        one.model_copy(update={"subject_relation": None})
        if one.subject_relation == "twin" and one.fact_id in asked
        else one
        for one in known
    )


class LlmDecider:
    """Asks `model`; a merged text gets its vector from `embedder`."""

    def __init__(self, model: SourceChatModel, embedder: SourceEmbedder) -> None:
        self._model = model
        self._embedder = embedder

    async def __call__(
        self,
        envelope: MatchedFacts,
        classifications: Sequence[Classification],
        retries: Sequence[RetryConflict],
        later_ends: Sequence[LaterEnd] = (),
        *,
        names: DoubtfulNames | None = None,
    ) -> LlmDecisions:
        """Decide the conflicts among the classifications, the retries and the later ends, and whom `names` mean.

        Without any of these there is no call.
        """
        started = perf_counter()
        numbered = conflicts_of(envelope, classifications, retries, later_ends, names)
        if numbered is None:
            return LlmDecisions(decisions={}, retry_outcomes=(), step=Step(stage="resolve", milliseconds=0))
        places = [place for place, found in enumerate(classifications) if isinstance(found, Conflict)]
        decisions, answers, step = await self._ask(envelope, numbered)
        on_known = decisions[len(places) :]
        on_retries = zip(retries, on_known, strict=False)
        on_ends = zip(later_ends, chain(on_known[len(retries) :], repeat(NOT_ASKED)), strict=False)
        return LlmDecisions(
            decisions=dict(zip(places, decisions, strict=False)),
            retry_outcomes=tuple(RetryOutcome(conflict=retry, llm_decision=decision) for retry, decision in on_retries),
            later_ends=tuple(LaterEndOutcome(end=end, llm_decision=decision) for end, decision in on_ends),
            answers=answers,
            step=step.model_copy(
                update={
                    "milliseconds": round((perf_counter() - started) * 1000, 3),
                    "answered_names": answers,
                }
            ),
        )

    async def _ask(
        self, envelope: MatchedFacts, conflicts: NumberedConflicts
    ) -> tuple[Sequence[LlmDecision | NoDecision], tuple[AnsweredName, ...], Step]:
        """A decision for each of the numbered conflicts, an answer for each name, and the cost, whatever came of it."""
        overrides, source = envelope.overrides, RequestSource.of(envelope, "resolve")
        prompt = question_prompt(conflicts, model=overrides.chat_model, timeout=overrides.llm_timeout)
        model, parse = self._model.for_source(source, prompt), partial(parse_answers, subject=conflicts)
        author = {"model": prompt.model or self._model.model, "prompt_version": prompt.version}
        step = Step(stage="resolve", milliseconds=0)
        try:
            answer = await ask(model, prompt, parse, reprompts=overrides.reprompts)
            step = step_of("resolve", prompt.version, answer)
            merges = [reply for reply in answer.value.decisions if reply.verdict == "MERGE"]
            texts = tuple(merge.search_text or merge.text or "" for merge in merges)
            embedded = await self._embedder.embed(source, texts)
        except (ReplyInvalidError, PromptRefusedError) as error:
            if isinstance(error, ReplyInvalidError):
                step = step_of("resolve", prompt.version, error)
            else:
                step = with_unused(step, error.replies)
            return _no_decisions(conflicts, error, author), no_answers(conflicts), step
        vectors = dict(zip((merge.number for merge in merges), embedded.vectors, strict=True))
        decisions = [
            LlmDecision(
                reply=reply,
                targets=tuple(known for label, known in conflict.candidates if label in reply.targets),
                shown=tuple(known for _, known in conflict.candidates),
                merged_vector=vectors.get(reply.number),
                **author,
            )
            for reply, conflict in zip(answer.value.decisions, conflicts.conflicts, strict=True)
        ]
        took = {
            "embedding_calls": embedded.calls,
            "input_tokens": step.input_tokens + embedded.tokens,
            "stored_replies": step.stored_replies + embedded.is_paid,
        }
        return decisions, answer.value.names, step.model_copy(update=took)


def _no_decisions(conflicts: NumberedConflicts, error: Exception, author: Mapping[str, str]) -> list[NoDecision]:
    shown = (tuple(known for _, known in conflict.candidates) for conflict in conflicts.conflicts)
    return [NoDecision(complaint=str(error)[:MAX_DETAIL], shown=facts, **author) for facts in shown]


def _with_its_time(matched: MatchedFact) -> ExtractedFact:
    """The fact as it is shown to the model: one that was promoted holds since it was said itself."""
    original = matched.original
    if original is None or matched.fact.event_time is not None:
        return matched.fact
    return matched.fact.model_copy(update={"event_time": original.promoted_from.said_at})
