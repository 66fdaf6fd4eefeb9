"""Summaries of entities: what a command for one does, and when one is due."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.common.tokens import estimate_tokens
from mnemolog.projections.stores.entities import EntityStore
from mnemolog.schemas.command import Command, SummariseEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import MAX_SUMMARISED
from mnemolog.schemas.entity_events import EntitySummarised, FactLinked
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.ids import summary_command_id
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Decision, Step, answered_by
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import StoredEntity, SummaryFact, SummarySource
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError, PublishCommand, raise_for_faults
from mnemolog.streams.commands.entities import entity_fault
from mnemolog.streams.commands.handler import CommandOutcome, CommandResult
from mnemolog.streams.llm.ask import ask, step_of, with_unused
from mnemolog.streams.llm.ports import (
    PromptRefusedError,
    ReplyInvalidError,
    RequestSource,
    SourceChatModel,
    SummaryTask,
)
from mnemolog.streams.llm.summary_prompt import MAX_FACT_CHARACTERS, PROMPT_VERSION, parse_summary, summary_prompt
from mnemolog.streams.text.tokens import has_words

SHOWN_TOKENS: Final = 3000
"""Estimated tokens of the facts that a summary is written from, twice what is asked for at most in an extraction."""
_MAX_ALIASES: Final = 10


@dataclass(frozen=True, slots=True)
class EntitySummariser:
    """Asks `model`, whose replies are stored: a command that is delivered again costs no second call.

    `precheck` gives the limit that leaves no room for a source of so many bytes, published then.
    """

    entities: EntityStore
    model: SourceChatModel
    precheck: Callable[[Scope, EffectivePolicy, int, datetime], Awaitable[LimitHit | None]]

    async def __call__(
        self, envelope: MatchedFacts, payload: SummariseEntity, rules: EffectivePolicy, now: datetime
    ) -> CommandOutcome:
        """What the command of an envelope does under the rules of its scope. Waits while the model is unavailable."""
        if envelope.scope is None:
            raise AssertionError("a command has a scope")
        if rules.entity_summary == "off" and not payload.by_policy:
            return _refused("summaries_off", "no policy allows summaries here: set entity_summary")
        try:
            command = CommandContext(
                owner=envelope.owner,
                source_id=envelope.source_id,
                scope=envelope.scope,
                issued_at=envelope.occurred_at,
                now=now,
                actor=envelope.actor,
            )
            known = await self.entities.entities([payload.entity_id])
            raise_for_faults([entity_fault(command, payload.entity_id, known)])
            entity = known[payload.entity_id]
        except CommandRefusedError as refusal:
            return _refused(refusal.reason, refusal.detail)
        source = await self.entities.summary_source(entity.entity_id, at=now, limit=MAX_SUMMARISED)
        is_due = rules.entity_summary == "after_changes" and source.changed >= rules.summary_changes
        if payload.by_policy and not is_due:
            return CommandOutcome(result=CommandResult(outcome="done", detail="no summary is due"))
        if not source.facts:
            return _refused("nothing_to_summarise", f"no active fact names {entity.name}")
        if hit := await self.precheck(envelope.scope, rules.budgets_alone, 0, envelope.published_at):
            return CommandOutcome(result=CommandResult(outcome="rejected"), limit=hit)
        return await self._ask(envelope, entity, source, rules)

    async def _ask(
        self, envelope: MatchedFacts, entity: StoredEntity, source: SummarySource, rules: EffectivePolicy
    ) -> CommandOutcome:
        facts: list[SummaryFact] = []
        left = SHOWN_TOKENS
        for fact in source.facts:
            left -= estimate_tokens(fact.text[:MAX_FACT_CHARACTERS])
            if left < 0 and facts:
                break
            facts.append(fact)
        name, *aliases = _names_in(facts, entity)
        task = SummaryTask(
            name=name,
            type=entity.type,
            aliases=tuple(aliases)[:_MAX_ALIASES],
            facts=tuple(facts),
            max_tokens=rules.summary_tokens,
            language=rules.summary_language,
        )
        prompt = summary_prompt(task)
        model = self.model.for_source(RequestSource.of(envelope, "resolve"), prompt)
        try:
            answer = await ask(model, prompt, lambda text: parse_summary(text, task))
        except ReplyInvalidError as error:
            detail = f"no reply of the model was valid: {error}"
            return _refused("no_valid_reply", detail, step_of("resolve", PROMPT_VERSION, error))
        except PromptRefusedError as error:
            took = with_unused(Step(stage="resolve", milliseconds=0), error.replies)
            return _refused("prompt_refused", str(error), took)
        step, model_name = step_of("resolve", PROMPT_VERSION, answer), answer.replies[-1].model
        writer = answered_by(model_name)
        wrote = "the rules joined" if writer == "rule" else "the model summarised"
        summarised = EntitySummarised(
            event_id=UUID(int=0),  # the commit gives the event its id and ordinal
            ordinal=0,
            decision=Decision(
                by=writer,
                reason=f"{wrote} {len(task.facts)} of {source.total} active facts of {task.name}",
                model=model_name,
                prompt_version=PROMPT_VERSION,
            ),
            entity_id=entity.entity_id,
            version=source.versions + 1,
            text=answer.value,
            language=task.language,
            facts=tuple(fact.fact_id for fact in task.facts),
            left_out=source.total - len(task.facts),
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
        )
        return CommandOutcome(result=CommandResult(outcome="done", entity_changes=(summarised,)), step=step)


def _names_in(facts: Sequence[SummaryFact], entity: StoredEntity) -> list[str]:
    """The names of an entity that these facts have in their words, so that no name outlives the facts that state it.

    Its own name comes first, or else a proper name. Where the facts have no proper name, the entity has its own name.
    """
    said = "\n".join(fact.text for fact in facts)
    proper = [entity.name, *(alias.text for alias in entity.aliases if alias.kind == "name")]
    others = [alias.text for alias in entity.aliases]
    told = [name for name in proper if has_words(said, name)] or [entity.name]
    return list(dict.fromkeys((*told, *(name for name in others if has_words(said, name)))))


def _refused(reason: str, detail: str, step: Step | None = None) -> CommandOutcome:
    result = CommandResult(outcome="rejected", reason=reason, detail=detail)
    return CommandOutcome(result=result) if step is None else CommandOutcome(result=result, step=step)


MAX_DUE: Final = 5
"""How many entities one source has summarised: a turn may name many."""


@dataclass(frozen=True, slots=True)
class DueSummaries:
    """Publishes a command for each entity whose changed facts reach or pass a multiple of `summary_changes`.

    So an attempt that failed is made again only after as many changes more. Facts that the commit ends count like facts
    that it adds: else a commit that does both would step over a multiple. The command is published before the commit,
    and published twice it takes effect once.
    """

    facts: EntityStore
    publish: PublishCommand

    async def __call__(self, commit: Commit, rules: EffectivePolicy) -> None:
        """`rules` are those of the scope of the commit, which is not in the tables yet."""
        if rules.entity_summary != "after_changes" or commit.scope is None:
            return
        linked = (event for event in commit.entity_events if isinstance(event, FactLinked))
        changed = Counter(entity_id for event in linked for entity_id in {link.entity_id for link in event.links})
        if ended := {fact_id for event in commit.events for fact_id in event.ended_ids}:
            changed += Counter(await self.facts.named_by(list(ended)))
        known = await self.facts.changed_facts(list(changed)) if changed else {}
        before, more, every = dict(known.values()), Counter[UUID](), rules.summary_changes
        for entity_id, count in changed.items():
            more[known[entity_id][0]] += count
        due = [one for one, count in more.items() if (before[one] + count) // every > before[one] // every]
        for place, entity_id in enumerate(due[:MAX_DUE]):
            await self.publish(
                Command(
                    command_id=summary_command_id(commit.owner, commit.source_id, place),
                    scope=commit.scope,
                    issued_at=commit.published_at,
                    order=SummariseEntity(entity_id=entity_id, by_policy=True),
                    actor="the policy entity_summary=after_changes",
                )
            )
