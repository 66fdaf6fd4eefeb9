"""The asking loop: a model answers, the parser judges, and the model hears once or twice what was wrong."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.streams.llm.errors import ReplyInvalidError
from mnemolog.streams.llm.ports import ChatMessage, Prompt, Reply, TimedReply
from mnemolog.streams.llm.reply_parser import ParsedReply

_MAX_QUOTED_REPLY = 20_000  # characters of a faulty reply that are shown back: a run-away reply is not paid for twice

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What was understood, what was left out of it, and every reply that was paid for on the way.

    `complaints` is what the model was told of its faulty replies, one text a re-prompt.
    """

    value: T
    dropped: tuple[DroppedStatement, ...]
    replies: tuple[TimedReply, ...]
    complaints: tuple[str, ...] = ()

    @property
    def reprompts(self) -> int:
        return len(self.replies) - 1


async def ask(
    model: Callable[[Prompt, int], Awaitable[TimedReply]],
    prompt: Prompt,
    parse: Callable[[str], ParsedReply[T]],
    *,
    reprompts: int = 2,
) -> Answer[T]:
    """Ask until the reply is valid, at most `1 + reprompts` times; `model` gets the attempt's number, from 0.

    A soft complaint is worth one re-prompt in all, then the value is taken without what was dropped;
    if that reply is worse, the earlier value stands.
    Raises `ReplyInvalidError` when no reply had a value, and whatever `model` raises.
    """
    replies: list[TimedReply] = []
    complaints: list[str] = []
    usable: ParsedReply[T] | None = None
    question = prompt
    while True:
        reply = await model(question, len(replies))
        replies.append(reply)
        parsed = parse(reply.text)
        settled = usable is not None or (parsed.value is not None and not parsed.complaints)
        usable = parsed if parsed.value is not None else usable
        if settled or len(replies) > reprompts:
            break
        complaints.append("; ".join(parsed.complaints))
        question = _reprompt(prompt, reply, parsed.complaints)
    if usable is None or usable.value is None:
        raise ReplyInvalidError((*complaints, "; ".join(parsed.complaints)), tuple(replies))
    return Answer(value=usable.value, dropped=usable.dropped, replies=tuple(replies), complaints=tuple(complaints))


def _reprompt(prompt: Prompt, reply: Reply, complaints: tuple[str, ...]) -> Prompt:
    """The first question, the latest reply, and what is wrong with it: earlier replies would only cost tokens."""
    wrong = "\n".join(f"- {complaint}" for complaint in complaints)
    return replace(
        prompt,
        messages=(
            *prompt.messages,
            ChatMessage(role="assistant", content=reply.text[:_MAX_QUOTED_REPLY] or "(empty)"),
            ChatMessage(
                role="user",
                content=f"Your answer has faults:\n{wrong}\nAnswer again with the whole corrected JSON object.",
            ),
        ),
    )
