"""Asks a model until its reply is valid, telling it each time what was wrong, a bounded number of times."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from mnemolog.schemas.base import known_sum
from mnemolog.schemas.provenance import DroppedStatement, Stage, Step
from mnemolog.streams.llm.errors import PromptRefusedError, ReplyInvalidError
from mnemolog.streams.llm.ports import ChatMessage, Prompt, Reply, TimedReply, Usage
from mnemolog.streams.llm.reply_parser import ParsedReply

REPROMPTS: Final = 2
RULES_PREFIX: Final = "rules-"
"""Of the names of providers that answer by rules: asking one is no call of a language model."""
_MAX_QUOTED_REPLY: Final = 20_000  # characters of a faulty reply that are shown to the model: tokens cost

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What was understood, what was left out of it, and every reply that was paid for on the way.

    `complaints` are the faults that the model was told of, one text a re-prompt.
    """

    value: T
    dropped: tuple[DroppedStatement, ...]
    replies: tuple[TimedReply, ...]
    complaints: tuple[str, ...] = ()


async def ask(
    model: Callable[[Prompt, int], Awaitable[TimedReply]],
    prompt: Prompt,
    parse: Callable[[str], ParsedReply[T]],
    *,
    reprompts: int | None = None,
) -> Answer[T]:
    """Ask until the reply is valid, at most `1 + reprompts` times; `model` gets the attempt's number, from 0.

    A soft complaint is worth one re-prompt in all, then the value is taken without what was dropped; if that reply is
    worse, the earlier value stays. Without a valid reply the incomplete one that lost the least is taken.
    Raises `ReplyInvalidError` when no reply had a value, and whatever `model` raises.
    """
    replies: list[TimedReply] = []
    complaints: list[str] = []
    usable: ParsedReply[T] | None = None
    incomplete: ParsedReply[T] | None = None
    question = prompt
    while True:
        try:
            reply = await model(question, len(replies))
        except PromptRefusedError as error:
            error.replies = tuple(replies)
            raise
        replies.append(reply)
        parsed = parse(reply.text)
        settled = usable is not None or not parsed.complaints
        if parsed.value is not None and not parsed.is_incomplete:
            usable = parsed
        elif parsed.value is not None and (incomplete is None or len(parsed.dropped) <= len(incomplete.dropped)):
            incomplete = parsed
        if settled or len(replies) > (REPROMPTS if reprompts is None else reprompts):
            break
        complaints.append("; ".join(parsed.complaints))
        question = _reprompt(prompt, reply, parsed.complaints)
    best = usable or incomplete
    if best is None or best.value is None:
        raise ReplyInvalidError((*complaints, "; ".join(parsed.complaints)), tuple(replies))
    return Answer(value=best.value, dropped=best.dropped, replies=tuple(replies), complaints=tuple(complaints))


def step_of(stage: Stage, prompt_version: str, outcome: Answer[T] | ReplyInvalidError) -> Step:
    """What the calls cost, as their replies were stored, so that a re-delivery gives the same bytes.

    Replies that another attempt has paid for cost nothing.
    """
    replies, shared = outcome.replies, outcome.replies[0].shared
    return Step(
        stage=stage,
        milliseconds=round(sum(reply.milliseconds for reply in replies), 3),
        model=replies[-1].model,
        prompt_version=prompt_version,
        llm_calls=sum(map(_is_call, replies)),
        input_tokens=sum(reply.cost.input_tokens for reply in replies),
        output_tokens=sum(reply.cost.output_tokens for reply in replies),
        cached_tokens=known_sum(reply.cost.cached_tokens for reply in replies),
        reprompts=len(replies) - 1,
        complaints=outcome.complaints[: len(replies) - 1],  # the last reply had no re-prompt
        call_turns=shared.turns if shared else 1,
        request=shared.request if shared else None,
        shared_with=shared.others if shared else (),
        stored_replies=sum(reply.is_paid for reply in replies),
    )


def with_unused(step: Step, replies: Sequence[TimedReply]) -> Step:
    """The step, with what its attempt paid for `replies` that it did not use in the end."""
    paid = [reply for reply in replies if not reply.is_paid]
    if not paid:
        return step
    took = sum((reply.usage for reply in paid), Usage())
    is_shared = any(reply.shared for reply in paid)
    how, whose = ("ahead ", " of a call shared with other turns") if is_shared else ("", "")
    return step.model_copy(
        update={
            "model": step.model or paid[-1].model,
            "llm_calls": step.llm_calls + sum(map(_is_call, paid)),
            "input_tokens": step.input_tokens + took.input_tokens,
            "output_tokens": step.output_tokens + took.output_tokens,
            "cached_tokens": known_sum((step.cached_tokens, took.cached_tokens)),
            "notes": (*step.notes, f"asked {how}in vain: {took.input_tokens + took.output_tokens} tokens{whose}"),
        }
    )


def _is_call(reply: TimedReply) -> bool:
    """Whether this attempt called a language model for it; a call for several turns counts for one of them."""
    return (
        not reply.is_paid
        and not reply.model.startswith(RULES_PREFIX)
        and (reply.shared is None or reply.shared.is_counted)
    )


def _reprompt(prompt: Prompt, reply: Reply, complaints: tuple[str, ...]) -> Prompt:
    """The first question, the latest reply, and what is wrong with it: earlier replies would only cost tokens."""
    wrong = "\n".join(f"- {complaint}" for complaint in complaints)
    request = f"Your answer has faults:\n{wrong}\nAnswer again with the whole corrected JSON object."
    return replace(
        prompt,
        messages=(
            *prompt.messages,
            ChatMessage(role="assistant", content=reply.text[:_MAX_QUOTED_REPLY] or "(empty)"),
            ChatMessage(role="user", content=request),
        ),
    )
