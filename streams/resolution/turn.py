"""Decides one turn: looks up what its facts need, classifies them, asks the model once about all conflicts.

`TurnDecider` is the entry. `LlmDecider` asks; `decide` makes the events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, compress, repeat
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.envelopes import MAX_DETAIL, MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import DroppedStatement, Step, Thresholds
from mnemolog.streams.ends import EndRules, move_ends
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.questions import DoubtfulNames
from mnemolog.streams.entities.subjects import cases_of_one_entity, with_subject_relations
from mnemolog.streams.llm.ask import ask, step_of, with_unused
from mnemolog.streams.llm.ports import (
    NumberedConflicts,
    PromptRefusedError,
    Question,
    ReplyInvalidError,
    RequestSource,
    SourceChatModel,
    SourceEmbedder,
)
from mnemolog.streams.llm.resolve_prompt import (
    no_answers,
    number_questions,
    parse_answers,
    question_prompt,
    within_budget,
)
from mnemolog.streams.resolution.classify import (
    Classification,
    Conflict,
    Duplicate,
    candidate_query,
    classify,
    classify_late,
    with_earlier_facts,
    without_candidates,
)
from mnemolog.streams.resolution.decide import (
    conflicts_to_retry,
    decide,
    split_later_ends,
    with_facts_beside,
)
from mnemolog.streams.resolution.events import (
    NOT_ASKED,
    DecisionContext,
    Judgement,
    LlmDecision,
    NoDecision,
    statement_context,
)
from mnemolog.streams.resolution.guards import TurnRules
from mnemolog.streams.text.differences import USER_WORDS

if TYPE_CHECKING:
    from mnemolog.projections.stores.facts import FactStore


@dataclass(frozen=True, slots=True)
class LlmDecider:
    """Asks `model`; a merged text gets its vector from `embedder`."""

    model: SourceChatModel
    embedder: SourceEmbedder

    async def __call__(
        self, envelope: MatchedFacts, questions: Sequence[Question], *, names: DoubtfulNames | None = None
    ) -> tuple[tuple[Judgement, ...], Step]:
        """Ask the questions, and which entities `names` mean, in one call; without any of these there is no call.

        Gives what the model makes of the questions, in their order, and what it cost, with the answers about names.
        Names for which the prompt has no room are left out.
        """
        started, names = perf_counter(), within_budget(names) if names else None
        asked_names = names.names if names else ()
        if not (questions or asked_names):
            return (), Step(stage="resolve", milliseconds=0)
        possible_subjects = {fact_id for name in asked_names for twin in name.twins for fact_id in twin.subject_of}
        asked: list[Question] = []
        for question in questions:
            candidates = (  # the model may find that a twin is whom a new fact is about
                one.model_copy(update={"subject_relation": None})
                if one.subject_relation == "twin" and one.fact_id in possible_subjects
                else one
                for one in question.candidates
            )
            asked.append(question if question.known else replace(question, candidates=tuple(candidates)))
        places, at = range(len(envelope.facts)), envelope.occurred_at
        just_said = {provisional_fact_id(envelope.owner, envelope.id_source, place) for place in places}
        just_said |= {one.candidates[0].fact_id for one in questions if one.known is not None and one.place is not None}
        said_at = max((matched.said_at(at) for matched in envelope.facts), default=at)
        numbered = number_questions(
            asked, said_at=said_at, just_said=frozenset(just_said), user_names=envelope.user_names
        )
        decisions, step = await self._ask(envelope, replace(numbered, names=names))
        answered = zip(questions, chain(decisions, repeat(NOT_ASKED)), strict=False)
        judgements = tuple(Judgement(question=question, answer=answer) for question, answer in answered)
        return judgements, step.model_copy(update={"milliseconds": round((perf_counter() - started) * 1000, 3)})

    async def _ask(
        self, envelope: MatchedFacts, conflicts: NumberedConflicts
    ) -> tuple[Sequence[LlmDecision | NoDecision], Step]:
        """A decision for each of the numbered conflicts, and the cost with an answer for each name."""
        overrides, source = envelope.overrides, RequestSource.of(envelope, "resolve")
        prompt = question_prompt(conflicts, model=overrides.chat_model, timeout=overrides.llm_timeout)
        model, parse = self.model.for_source(source, prompt), partial(parse_answers, subject=conflicts)
        author = {"model": prompt.model or self.model.model, "prompt_version": prompt.version}
        shown = [tuple(known for _, known in conflict.candidates) for conflict in conflicts.conflicts]
        step = Step(stage="resolve", milliseconds=0)
        try:
            answer = await ask(model, prompt, parse, reprompts=overrides.reprompts)
            step = step_of("resolve", prompt.version, answer)
            merges = [reply for reply in answer.value.decisions if reply.verdict == "MERGE"]
            texts = tuple(merge.text or "" for merge in merges)
            embedded = await self.embedder.embed(source, texts)
        except (ReplyInvalidError, PromptRefusedError) as error:
            if isinstance(error, ReplyInvalidError):
                step = step_of("resolve", prompt.version, error)
            else:
                step = with_unused(step, error.replies)
            none = [NoDecision(complaint=str(error)[:MAX_DETAIL], shown=facts, **author) for facts in shown]
            return none, step.model_copy(update={"answered_names": no_answers(conflicts)})
        vectors = dict(zip((merge.number for merge in merges), embedded.vectors, strict=True))
        decisions = [
            LlmDecision(
                reply=reply,
                targets=tuple(known for label, known in conflict.candidates if label in reply.targets),
                shown=facts,
                merged_vector=vectors.get(reply.number),
                **author,
            )
            for reply, conflict, facts in zip(answer.value.decisions, conflicts.conflicts, shown, strict=True)
        ]
        took = {
            "embedding_calls": embedded.calls,
            "input_tokens": step.input_tokens + embedded.tokens,
            "stored_replies": step.stored_replies + embedded.is_paid,
            "answered_names": answer.value.names,
        }
        return decisions, step.model_copy(update=took)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """A turn whose conflicts are known, before a model is asked.

    `ended_subjects` are the entities that its ended candidates are about.
    """

    turn: MatchedFacts
    classifications: tuple[Classification, ...]
    questions: tuple[Question, ...]
    context: DecisionContext
    dropped: tuple[DroppedStatement, ...]
    ended_subjects: tuple[KnownEntity, ...] = ()

    def with_subjects(self, found: TurnEntities) -> "PreparedTurn":
        """The turn, classified again with the entities that its names mean by the model's answers."""
        turn = with_subject_relations(self.turn, found, self.ended_subjects)
        told, _ = split_later_ends(turn, self.context.rules)
        return replace(self, turn=turn, classifications=_classified(told, self.context, found, self.ended_subjects))

    def judged(self, judgement: Judgement) -> Judgement:
        """The judgement with the subjects of today: an answered name says whom the statement is about."""
        place, answer, known = judgement.question.place, judgement.answer, judgement.question.known
        if place is None or isinstance(answer, NoDecision):
            return judgement
        compared = (*self.turn.facts[place].candidates, *self.classifications[place].matched.candidates)
        relations = {one.fact_id: one.subject_relation for one in compared}
        targets = tuple(
            target.model_copy(update={"subject_relation": relations.get(known.fact_id if known else target.fact_id)})
            for target in answer.targets
        )
        return replace(judgement, answer=replace(answer, targets=targets))


@dataclass(frozen=True, slots=True)
class TurnDecider:
    """Decides turns by their candidates, and by what else `lookups` knows."""

    lookups: "FactStore"
    llm_decider: LlmDecider

    async def decide(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        thresholds: Thresholds,
        *,
        is_late: bool,
        now: datetime,
        named: TurnEntities | None = None,
        names: DoubtfulNames | None = None,
    ) -> tuple[tuple[MemoryEvent, ...], Step]:
        """The events of the turn, decided `now`; and what that cost, with the answers about its doubtful `names`.

        `is_late`: values of its scope may have ended since it was said. `named` are the entities of its facts.
        """
        prepared = await self.prepare(envelope, rules, thresholds, is_late=is_late, now=now, named=named)
        if names is not None:  # a mere repetition links nothing new to the entities that it names
            news = [found.matched.fact for found in prepared.classifications if not isinstance(found, Duplicate)]
            names = names.in_facts(news)
        judgements, step = await self.llm_decider(prepared.turn, prepared.questions, names=names)
        if names is not None:
            named = names.found.answered(step.answered_names)
            prepared = prepared if named is names.found else prepared.with_subjects(named)
            judgements = tuple(map(prepared.judged, judgements))
        made = decide(prepared.classifications, judgements, prepared.context)
        end_rules = EndRules(
            at=now,
            policy=rules,
            user_names=prepared.turn.user_names,
            subject_of=named.subject_of_event if named is not None else lambda _: None,
        )
        events = await move_ends(made, self.lookups, end_rules)
        return events, step.model_copy(update={"dropped": prepared.dropped})

    async def prepare(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        thresholds: Thresholds,
        *,
        is_late: bool,
        now: datetime,
        named: TurnEntities | None = None,
    ) -> PreparedTurn:
        """The turn before a model is asked; parameters as of `decide`."""
        is_kept = [not envelope.infer or one.fact.importance >= rules.min_importance for one in envelope.facts]
        low = [one.fact for one, kept in zip(envelope.facts, is_kept, strict=True) if not kept]
        dropped = [DroppedStatement(text=one.text, reason="below_importance", excerpt=one.excerpt) for one in low]
        turn = envelope.model_copy(update={"facts": tuple(compress(envelope.facts, is_kept))})
        turn_rules = TurnRules(policy=rules, thresholds=thresholds, user_names=turn.user_names, infer=turn.infer)
        ended_subjects = tuple[KnownEntity, ...]()
        if turn_rules.uses_llm and is_late:
            turn = await self._with_ended_candidates(turn, turn_rules)
            if named is not None:
                candidates = [known for matched in turn.facts for known in matched.candidates]
                if ended := dict.fromkeys(known.fact_id for known in candidates if known.status == "ended"):
                    ended_subjects = tuple(await self.lookups.subjects_of(tuple(ended)))
                turn = with_subject_relations(turn, named, ended_subjects)
        told, ends = split_later_ends(turn, turn_rules)
        context = await self._context(told, turn_rules)
        cases = context.pending_cases.values()  # what has no targets is closed: they have ended, as by their time
        closed = {case.fact_id for case in cases if not (case.targets or case.successors)}
        turn, told = (without_candidates(one, closed) for one in (turn, told))
        open_cases = await cases_of_one_entity(context.pending_cases, self.lookups.subjects_of)
        context = replace(context, pending_cases=open_cases)
        classifications = _classified(told, context, named, ended_subjects)
        retries: Sequence[Question] = ()
        if turn_rules.uses_llm:
            retries, context = await self._with_statements(conflicts_to_retry(told.facts, turn_rules), context, at=now)
        return PreparedTurn(
            turn=turn,
            classifications=classifications,
            questions=questions_of(classifications, retries, ends),
            context=context,
            dropped=tuple(dropped),
            ended_subjects=ended_subjects,
        )

    async def _context(self, turn: MatchedFacts, rules: TurnRules) -> DecisionContext:
        """What all decisions share: looks up pending overwrites that the turn may meet, and starts of versions."""
        pending: dict[UUID, None] = {}
        newer: dict[UUID, None] = {}
        for matched in turn.facts if rules.uses_llm else ():
            true_from = matched.holds_since(turn.occurred_at)
            for known in matched.candidates:
                pending |= dict.fromkeys(known.challenged_by)
                if known.status == "pending_confirmation":
                    pending[known.fact_id] = None
                elif true_from < known.true_from:
                    newer[known.fact_id] = None
        return DecisionContext(
            owner=turn.owner,
            source_id=turn.id_source,
            occurred_at=turn.occurred_at,
            speaker=turn.speaker,
            rules=rules,
            authority="human" if turn.immutable else "extracted",
            metadata=turn.metadata,
            pending_cases=await self.lookups.pending_cases(tuple(pending)) if pending else {},
            version_starts=await self.lookups.version_starts(tuple(newer)) if newer else {},
        )

    async def _with_statements(
        self, retries: Sequence[Question], context: DecisionContext, *, at: datetime
    ) -> tuple[Sequence[Question], DecisionContext]:
        """The retries with their stored facts and the facts that these were put beside.

        The context gets the version starts of rivals that are newer than the unresolved fact.
        """
        if not retries:
            return (), context
        unresolved = {one.known.fact_id: one for one in retries if one.known is not None}
        beside = {fact_id: await self.lookups.conflicting_fact_ids(fact_id) for fact_id in unresolved}
        needed = dict.fromkeys((*unresolved, *chain.from_iterable(beside.values())))
        stored = await self.lookups.facts(tuple(needed))
        rivals = (known.fact_id for retry in retries for known in retry.candidates)
        subjects = await self.lookups.subjects_of(tuple(dict.fromkeys((*needed, *rivals))))
        found: list[Question] = []
        newer: dict[UUID, None] = {}
        for fact_id, retry in unresolved.items():
            known_beside = [stored[other] for other in beside[fact_id] if other in stored]
            retry = with_facts_beside(retry, known_beside, subjects, at=at, user_names=context.rules.user_names)  # noqa: PLW2901 -- the same question
            if retry.known is not None and retry.candidates:
                found.append(replace(retry, stored=stored.get(fact_id)))
                since = retry.known.true_from
                newer |= dict.fromkeys(known.fact_id for known in retry.candidates if since < known.true_from)
        unknown = tuple(fact_id for fact_id in newer if fact_id not in context.version_starts)
        starts = await self.lookups.version_starts(unknown) if unknown else {}
        return found, replace(context, version_starts={**context.version_starts, **starts})

    async def _with_ended_candidates(self, turn: MatchedFacts, rules: TurnRules) -> MatchedFacts:
        """A late turn, with further candidates: facts that have ended since it was said."""
        if turn.scope is None or not turn.facts:
            return turn
        queries = [candidate_query(matched, rules) for matched in turn.facts]
        names = (*USER_WORDS, *turn.user_names)
        after = min(matched.said_at(turn.occurred_at) for matched in turn.facts)
        found = await self.lookups.ended_candidates(turn.scope, queries, after=after, user_names=names)
        facts = (
            matched.model_copy(update={"candidates": (*matched.candidates, *ended)})
            for matched, ended in zip(turn.facts, found, strict=True)
        )
        return turn.model_copy(update={"facts": tuple(facts)})


def questions_of(
    classifications: Sequence[Classification], retries: Sequence[Question], ends: Sequence[Question]
) -> tuple[Question, ...]:
    """The conflicts, the unresolved facts, then the later `ends`, but for the ends of mere repetitions."""
    conflicts: list[Question] = []
    to_judge: list[Question] = []
    for place, found in enumerate(classifications):
        if isinstance(found, Conflict):
            fact, original = found.matched.fact, found.matched.original
            if original is not None and fact.event_time is None:  # a promoted fact holds since it was said itself
                fact = fact.model_copy(update={"event_time": original.promoted_from.said_at})
            conflicts.append(Question(fact=fact, candidates=found.candidates, place=place))
        of_place = [end for end in ends if end.place == place]
        if isinstance(found, Duplicate):  # the fact that it repeats may have begun again since its end was said
            told = [(end, end.known) for end in of_place if end.known is not None and end.known_as != "announced"]
            begun = found.candidate.true_from
            of_place = [end for end, known in told if (known.said_at or known.true_from) <= begun]
        to_judge += of_place
    return *conflicts, *retries, *to_judge


def _classified(
    told: MatchedFacts, context: DecisionContext, named: TurnEntities | None, others: Sequence[KnownEntity]
) -> tuple[Classification, ...]:
    """The classification of each fact of a turn, which takes no model; `others` as of `with_subject_relations`."""
    rules = context.rules
    if rules.uses_llm and len(told.facts) > 1:
        told = told.model_copy(update={"facts": with_earlier_facts(told, rules)})
        told = with_subject_relations(told, named, others) if named else told
    return tuple(
        classify_late(matched, statement_context(matched, context), rules) or classify(matched, rules)
        for matched in told.facts
    )
