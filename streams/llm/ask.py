"""Asks a model until its reply is valid, each time with what was wrong with the last one, and reads replies.

The first part is what prompts and parsers share: the base of replies, JSON, and texts as lines of a prompt.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from itertools import islice
from json import JSONDecoder
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import from_json

from mnemolog.schemas.base import Text, Timestamp, known_sum
from mnemolog.schemas.provenance import DroppedStatement, Stage, Step, answered_by
from mnemolog.streams.llm.ports import (
    CUT_OFF,
    ChatMessage,
    EmbeddingResult,
    Prompt,
    PromptRefusedError,
    ReplyInvalidError,
    TimedReply,
    Usage,
)

CUT_OFF_NOTE: Final = "the answer was cut off at the token limit: what it says last may be missing"
MAX_LINE = 2000
MAX_COMPLAINTS = 10
"""What remains is for the next re-prompt."""
_LONGEST_WORD = 50  # characters; where no word begins so near to the end, as in Chinese, a text is cut anywhere
_MAX_STARTS: Final = 200  # braces and brackets of a reply at which its JSON is looked for
_MAX_REPAIRED: Final = 200_000  # characters of a reply
_NESTED: Final = re.compile(r"(?:[\[{]\s*){40}")
"""Deeper than any reply: to repair so many brackets takes seconds."""
_TAGS: Final = "think|thinking|thought|reasoning"
_THOUGHTS: Final = re.compile(rf"<({_TAGS})>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE)
_REASONING: Final = re.compile(
    rf"^(?!\s*[{{\[]).*(?:</(?:{_TAGS})>|\[/THINK\]|<\|channel\|>final<\|message\|>)",
    re.DOTALL | re.IGNORECASE,
)
_THINKING: Final = re.compile(rf"\s*(?:<(?:{_TAGS})>|\[THINK\])", re.IGNORECASE)
_CUT: Final = re.compile(r"[}\]]\s*,\s*[^\s,}\]][^}\]]*$|^[^}\]]*[{\[][^}\]]*$")
"""An end of a text within an item."""
_OPENING: Final = re.compile(r"[{\[]")
_NULLS: Final = frozenset({"", "null", "none", "n/a", "unknown", "undefined", "not specified"})
_NOTHING: Final = re.compile(
    r"\W*(?:(?:facts?|json)\W+)*(?:null|none|nil|n/?a|nothing|empty|nichts|keine?|nada|rien|niente|nenhum\w*)?\W*"
    r"|(?:\W|\b(?:t?here|is|are|was|were|i|we|found|find|see|have|has|could|did|do|does|the|this|user|turn|states?)\b)*"
    r"\b(?:no|not|nothing|none|(?:did|do|does|could|is|are)n['\u2019]t)\b"
    r"[^{\[]{0,60}\b(?:facts?|to (?:note|store|remember)|(?:new|relevant) information)\b[^{\[]{0,60}",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a reply, or of a part of it, that say that there is nothing to say."""
_MOST_OF_NOTHING: Final = 300  # characters
_REFUSAL: Final = re.compile(
    r"\b(?:can(?:no|['\u2019])t|can not|unable to|not able to|won['\u2019]t|will not|decline to)\s+(?:\w+ )?"
    r"(?:help|assist|comply|answer|provide|discuss|engage|fulfil|process|respond|do (?:that|this|so)\b)"
    r"|\bas an ai\b|\b(?:against|violates?) (?:my|our|the) (?:\w+ )?(?:guideline|polic)"
    r"|\btut mir leid\b|\blo siento\b|\bje suis désolée?\b|\bdesculp[ae]\b",
    re.IGNORECASE,
)
"""Words of a model that refuses; it is asked again, as for any reply without JSON."""
_BULLET: Final = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(?:\W?text\W?:[ \t]*)?[\"'*]*(.{1,2000}?)[\"'*]*[ \t]*$", re.MULTILINE
)
_YEAR_OR_MONTH: Final = re.compile(r"\d{4}(-\d\d)?")
_DECODER: Final = JSONDecoder(strict=False)  # models write line breaks within texts

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply(Generic[T]):
    """What a reply says: a value, what was left out of it (`dropped`, and `notes` in words), or why it has no value."""

    value: T | None = None
    complaints: tuple[str, ...] = ()
    dropped: tuple[DroppedStatement, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingContext:
    """The zone of times that name none, and the fields that a reply has in a form that cannot be read."""

    zone: tzinfo = UTC
    unread: list[str] = field(default_factory=list)


class ReplyModel(BaseModel):
    """The base of what a model answers, read as models answer it.

    A field that nobody asked for is passed over, and so is one that may be missing and cannot be read; the context of
    the validation, a `ReadingContext`, has the name of the latter. A number is read as text, "false" as False.
    """

    model_config = ConfigDict(
        frozen=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _mend(cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        unread = info.context.unread if isinstance(info.context, ReadingContext) else []
        required = [name for name, one in cls.model_fields.items() if one.is_required()]
        if isinstance(value, str) and len(required) == 1:
            value = {required[0]: value}
        try:
            return handler(value)
        except ValidationError as error:
            faults, first = _faults(error), error
        if not isinstance(value, dict) or any(faults[name] for name in required if name in faults):
            raise first
        other: dict[str, Any] = {}
        for name in faults.keys() & value.keys():
            # A list without its faulty items, or else its one item; of what is no list, a list with it.
            listed = value[name] if isinstance(value[name], list) else None
            kept = [one for place, one in enumerate(listed or ()) if place not in faults[name]]
            is_lone = listed is not None and not faults[name] and len(listed) == 1
            other[name] = [value[name]] if listed is None else listed[0] if is_lone else kept
        value = value | other
        unread += [name for name, at in faults.items() if at]
        try:
            return handler(value)
        except ValidationError as error:
            if any(name in required for name in _faults(error)):
                raise first from error
            unread += [name for name in _faults(error) if value[name] not in (None, [None])]
            return handler({name: part for name, part in value.items() if name not in _faults(error)})


def _faults(error: ValidationError) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for name, *at in (fault["loc"] for fault in error.errors(include_url=False) if fault["loc"]):
        found.setdefault(str(name), set()).update(place for place in at[:1] if isinstance(place, int))
    return found


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    inner = text.strip()[1:-1]
    return inner if inner.strip() and text.strip() == f'"{inner}"' and '"' not in inner else text


def _null(value: object) -> object:
    return None if isinstance(value, str) and value.strip().casefold() in _NULLS else value


def _time(value: object, info: ValidationInfo) -> object:
    """A time in ISO 8601; a date alone begins in the zone of the context, and a time without zone is of that zone."""
    value = _null(value)
    if value is None:
        return None
    said = str(value).strip()
    said += "-01" * (_YEAR_OR_MONTH.fullmatch(said) is not None and 2 - said.count("-"))
    moment = datetime.fromisoformat(said)  # a number is no time, and ValueError is for Pydantic to read
    zone = info.context.zone if isinstance(info.context, ReadingContext) else UTC
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def as_slot(value: object) -> object:
    """A word as keys, categories and other fixed words are written: "Home City" and "homeCity" are home_city."""
    if not isinstance(value, str):
        return value
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value.strip()).casefold()
    slot = re.sub(r"\W+", "_", words).strip("_")
    return None if slot in {"none", "n_a"} else _null(slot)


def as_slots(value: object) -> object:
    """Such words, in a list or with commas between them, as a list; what is none of them is left out of it."""
    given = value.split(",") if isinstance(value, str) else value
    return [slot for one in given if (slot := as_slot(one)) is not None] if isinstance(given, list) else value


WholeNumber = Annotated[int, BeforeValidator(lambda value: None if isinstance(value, bool) else value)]
Line = Annotated[Text, Field(max_length=MAX_LINE)]
FilledLine = Annotated[Line, AfterValidator(_filled)]
OptionalLine = Annotated[Line | None, BeforeValidator(_null)]
ReplyTime = Annotated[Timestamp | None, BeforeValidator(_time)]


def read_reply(model: type[M], text: str, context: ReadingContext | None = None) -> M | tuple[str, ...]:
    """The JSON object of a reply, or what is wrong with it; the first field of `model` tells it from other JSON."""
    found = find_object(text, next(iter(model.model_fields)))
    if isinstance(found, str):
        return (found,)
    try:
        return model.model_validate(found, context=context)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False))
        return tuple(faults)[:MAX_COMPLAINTS]


def find_object(text: str, name: str) -> dict[str, Any] | str:
    """The object with the list `name` in a reply, or what is wrong with the reply.

    Passed over are reasoning, words and fences around it, other JSON before it, and wrappers, also as JSON in a text.
    What is no JSON is repaired, and what is no list made one: of items without the name, of bullets, or an empty one
    of words for nothing. Of a reply that was cut off the complete items are read, and the object has the key `CUT_OFF`.
    """
    with suppress(ValueError, TypeError):  # TypeError: half a sign; nearly every reply is the object and nothing else
        if found := _named([from_json(text)], name):
            return found
    text = text.encode("utf-8", "replace").decode()  # half a sign is no text
    is_cut, said = _is_cut(text), spoken(text)
    if text.endswith(CUT_OFF) and _THINKING.match(said):
        return fault_of(text, name)  # within its reasoning, where a draft is no answer
    text = text.removesuffix(CUT_OFF).rstrip()
    with suppress(RecursionError):
        read_as = ((version, *each) for version in dict.fromkeys((said, text)) for each in _json_in(version))
        for version, values, is_repaired in read_as:
            found = _named(values, name)
            if found is None and is_repaired and (items := _bare_items(values[0])):
                found = {name: items}
            if found is None and not is_repaired and f'"{name}"' not in version:
                items = [item for value in values for item in _bare_items(value) if isinstance(item, dict)]
                found = ({name: items, CUT_OFF: True} if is_cut else {name: items}) if items else None
            if found and is_repaired and is_cut:
                read = found[name][:-1]
                found = {**found, name: read, CUT_OFF: True} if read else None
            if found:
                return found
            is_short = not is_cut and 0 < len(version.strip()) <= _MOST_OF_NOTHING
            if is_short and not is_repaired and is_nothing(values or version):
                return {name: []}
    if not is_cut and (items := _BULLET.findall(said)):
        return {name: items}
    return fault_of(text if not is_cut else f"{text}{CUT_OFF}", name)


def fault_of(text: str, name: str) -> str:
    """What is wrong with a reply in which nobody finds the field `name`."""
    if _is_cut(text):
        return "the answer is cut off at the token limit of the server: answer in fewer words"
    if not spoken(text).strip():
        return "the answer is empty"
    if len(text) <= _MOST_OF_NOTHING and _REFUSAL.search(text):
        return f'the model refuses to answer: one complete JSON object {{"{name}": ...}} is asked for'
    return f'the answer is not one complete JSON object {{"{name}": ...}}: answer with it and nothing else'


def spoken(text: str) -> str:
    """A reply without the reasoning before and behind it."""
    return _REASONING.sub("", _THOUGHTS.sub("", text.removesuffix(CUT_OFF).rstrip()))


def _is_cut(text: str) -> bool:
    return text.endswith(CUT_OFF) or bool(_CUT.search(text.rstrip()))


def is_nothing(value: Any) -> bool:
    """Whether a part of a reply has nothing in it but empty parts and words for none ("No facts to note.")."""
    if isinstance(value, dict | list):
        return all(map(is_nothing, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        return len(value) <= _MOST_OF_NOTHING and bool(_NOTHING.fullmatch(value))
    return value is None or value is False


def _json_in(text: str) -> Iterator[tuple[list[Any], bool]]:
    """The JSON objects and lists that stand in a text one after another; then what the text was meant to be, repaired.

    The latter is one value, or several as a list.
    """
    values, place = list[Any](), 0
    for begin in islice(_OPENING.finditer(text), _MAX_STARTS):
        if begin.start() >= place:
            with suppress(ValueError):
                value, place = _DECODER.raw_decode(text, begin.start())
                values.append(value)
    yield values, False
    if len(text) <= _MAX_REPAIRED and not _NESTED.search(text):
        with suppress(ImportError, ValueError):
            from json_repair import loads  # noqa: PLC0415 -- for models of servers alone

            yield [loads(text)], True


def _named(values: Iterable[Any], name: str) -> dict[str, Any] | None:
    """The last of these values that has an object with the list; a list of objects has those of all values.

    What a later value repeats counts once.
    """
    found = [objects for value in values if (objects := list(_objects_with(name, value)))]
    if not found:
        return None
    parts = [[item for one in objects for item in _items(one[name])] for objects in found]
    items = list[Any]()
    are_objects = all(isinstance(item, dict) for part in parts for item in part)
    for part in parts if are_objects else parts[-1:]:
        items += [item for item in part if item not in items]
    return {**found[-1][-1], name: items}


def _parsed(value: Any) -> Any:
    """A part of a reply, or the JSON that it has as a text."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        with suppress(ValueError):
            return from_json(value)
    return value


def _objects_with(name: str, value: Any) -> Iterator[dict[str, Any]]:
    value = _parsed(value)
    if isinstance(value, dict):
        named = value if name in value else {key.casefold(): part for key, part in value.items()}
        if name in named and (not isinstance(named[name], int | float) or isinstance(named[name], bool)):
            yield named
            return
        value = [*value.values()]
    for part in value if isinstance(value, list) else ():
        yield from _objects_with(name, part)


def _items(value: Any) -> list[Any]:
    """The items of a list, also of lists within it, or of an object that has them as its values; or a lone item."""
    value = _parsed(value)
    if isinstance(value, dict) and (
        all(isinstance(part, dict | list) for part in value.values()) or all(map(str.isdecimal, value))
    ):
        value = [*value.values()]
    if isinstance(value, list):
        return [item for part in value for item in _items(part)]
    return [] if is_nothing(value) else [value]


def _bare_items(value: Any) -> list[Any]:
    """Items that stand alone, in a list, or under another name than was asked for."""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    given = _items(value)
    objects = [one for one in given if isinstance(one, dict)]
    return [one for one in objects if len(one) > 1] if objects else given if isinstance(value, list) else []


def list_schema(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these properties: all required, nothing additional, as OpenAI's strict schemas have to be."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


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


REPROMPTS: Final = 1
"""A store asks a model at most twice; whoever sets `reprompts` of a turn wants something else."""
_MAX_QUOTED_REPLY: Final = 20_000  # characters of a faulty reply that are shown to the model: tokens cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What was understood, what was left out of it, every reply that was paid for, and the text of each re-prompt."""

    value: T
    dropped: tuple[DroppedStatement, ...]
    replies: tuple[TimedReply, ...]
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def ask(
    model: Callable[[Prompt, int], Awaitable[TimedReply]],
    prompt: Prompt,
    parse: Callable[[str], ParsedReply[T]],
    *,
    reprompts: int | None = None,
) -> Answer[T]:
    """Ask until a reply has a value, at most `1 + reprompts` times; `model` gets the attempt's number, from 0.

    Raises `ReplyInvalidError` when no reply had a value, and whatever `model` raises.
    """
    replies: list[TimedReply] = []
    complaints: list[str] = []
    question = prompt
    while True:
        try:
            reply = await model(question, len(replies))
        except PromptRefusedError as error:
            error.replies = tuple(replies)
            raise
        replies.append(reply)
        parsed = parse(reply.text)
        if parsed.value is not None:
            return Answer(
                value=parsed.value,
                dropped=parsed.dropped,
                replies=tuple(replies),
                complaints=tuple(complaints),
                notes=parsed.notes,
            )
        complaints.append("; ".join(parsed.complaints))
        if len(replies) > (REPROMPTS if reprompts is None else reprompts):
            raise ReplyInvalidError(tuple(complaints), tuple(replies))
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
        notes=(*(outcome.notes if isinstance(outcome, Answer) else ()), *fallback_notes(replies)),
        call_turns=shared.turns if shared else 1,
        request=shared.request if shared else None,
        shared_with=shared.others if shared else (),
        stored_replies=sum(reply.is_paid for reply in replies),
    )


def fallback_notes(answers: Iterable[TimedReply | EmbeddingResult]) -> Iterator[str]:
    return (f"answered by the fallback {name}" for name in dict.fromkeys(one.endpoint for one in answers) if name)


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
