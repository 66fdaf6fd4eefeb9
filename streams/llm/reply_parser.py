"""Parses a model's reply as one JSON object, with complaints that the model can act on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from mnemolog.schemas.base import Text
from mnemolog.schemas.provenance import DroppedStatement

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
    """The one JSON object in `text`, or what is wrong with it. Code fences and words around it are overlooked.

    `context` is what the validators of the model get.
    """
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
    """At most `MAX_COMPLAINTS` of them; what remains is for the next re-prompt."""
    return tuple(complaints)[:MAX_COMPLAINTS]


def reply_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply in the subset that structured output accepts: all required, nothing additional."""
    schema: dict[str, Any] = _pruned(model.model_json_schema())
    return schema


def _pruned(node: Any) -> Any:
    match node:
        case dict():
            return {key: _pruned(value) for key, value in node.items() if key not in _NOT_FOR_MODELS}
        case list():
            return [_pruned(item) for item in node]
        case _:
            return node


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
