"""Asks a model until its reply is valid, each time with what was wrong with the last one, and reads replies.

The first part is what prompts and parsers share: the base of replies, JSON, and texts as lines of a prompt.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from mnemolog.schemas.base import Text, known_sum
from mnemolog.schemas.provenance import DroppedStatement, Stage, Step, answered_by
from mnemolog.streams.llm.ports import (
    ChatMessage,
    Prompt,
    PromptRefusedError,
    ReplyInvalidError,
    TimedReply,
    Usage,
)

MAX_LINE = 2000
MAX_COMPLAINTS = 10
_LONGEST_WORD = 50  # characters; where no word begins so near to the end, as in Chinese, a text is cut anywhere
_NOT_FOR_MODELS = frozenset({"title", "maxLength"})  # OpenAI's strict schemas refuse maxLength; titles are tokens

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply(Generic[T]):
    """What a reply says. Complaints without a value are hard; with one they are soft: `dropped` is what they cost.

    The value of an incomplete reply, which is not valid as a whole, is used only where no valid reply can be had.
    """

    value: T | None = None
    complaints: tuple[str, ...] = ()
    dropped: tuple[DroppedStatement, ...] = ()
    is_incomplete: bool = False


class ReplyModel(BaseModel):
    """The base of what a model must answer: every field present, of its exact type, and no other."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Line = Annotated[Text, Field(max_length=MAX_LINE)]
FilledLine = Annotated[Line, AfterValidator(_not_blank)]


def read_reply(model: type[M], text: str, context: object = None) -> M | tuple[str, ...]:
    """The one JSON object in `text`, or what is wrong with it; the validators of `model` get `context`."""
    try:
        return model.model_validate_json(object_text(text), context=context)
    except ValidationError as error:
        return first_complaints(_complaint(fault["loc"], fault["type"], fault["msg"]) for fault in error.errors())


def read_items(text: str, name: str) -> list[object]:
    """What can be read of the list `name` in a reply that is invalid as a whole, or was cut off."""
    try:
        reply = from_json(object_text(text), allow_partial=True)
    except ValueError:
        return []
    items = reply.get(name) if isinstance(reply, dict) else None
    return items if isinstance(items, list) else []


def object_text(text: str) -> str:
    """What stands from the first to the last brace: code fences and words around it are overlooked."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _complaint(location: tuple[int | str, ...], kind: str, message: str) -> str:
    if kind == "json_invalid":
        return f"the answer is not one valid JSON object ({message}): answer with the complete object and nothing else"
    if kind == "timezone_aware" or kind.startswith("datetime"):
        message = "needs date, time and zone, for example 2026-01-31T09:30:00+01:00, or null"
    return f"{'.'.join(map(str, location)) or 'the answer'}: {message}"


def first_complaints(complaints: Iterable[str]) -> tuple[str, ...]:
    """At most `MAX_COMPLAINTS`; what remains is for the next re-prompt."""
    return tuple(complaints)[:MAX_COMPLAINTS]


def reply_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply in the subset that structured output accepts: all required, nothing additional."""
    schema: dict[str, Any] = _pruned(model.model_json_schema())
    return schema


def _pruned(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _pruned(value) for key, value in node.items() if key not in _NOT_FOR_MODELS}
    return [_pruned(item) for item in node] if isinstance(node, list) else node


def shortened(text: str, limit: int) -> str:
    """`text`, or where it has more than `limit` characters its first words and an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    end = cut.rfind(" ")
    return f"{cut[:end] if end >= len(cut) - _LONGEST_WORD else cut}…"


def one_line(text: str) -> str:
    """White space collapsed, so that a text cannot forge the prompt's next line."""
    return " ".join(text.split())


def quoted(text: str, limit: int) -> str:
    """One line in quotes that it cannot end, shortened."""
    return f'"{shortened(one_line(text).replace(chr(34), chr(39)), limit)}"'


REPROMPTS: Final = 2
_MAX_QUOTED_REPLY: Final = 20_000  # characters of a faulty reply that are shown to the model: tokens cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What was understood, what was left out of it, every reply that was paid for, and the text of each re-prompt."""

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
        wrong = "\n".join(f"- {complaint}" for complaint in parsed.complaints)
        request = f"Your answer has faults:\n{wrong}\nAnswer again with the whole corrected JSON object."
        faulty = reply.text[:_MAX_QUOTED_REPLY] or "(empty)"
        question = replace(  # without earlier replies, which would only cost tokens
            prompt,
            messages=(
                *prompt.messages,
                ChatMessage(role="assistant", content=faulty),
                ChatMessage(role="user", content=request),
            ),
        )
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
        not reply.is_paid and answered_by(reply.model) == "model" and (reply.shared is None or reply.shared.is_counted)
    )
