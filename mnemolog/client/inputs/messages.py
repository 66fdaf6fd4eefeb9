"""Messages as applications have them, OpenAI's form among them, as the messages of a turn.

Text is what becomes memory. Other parts (images, audio, files, calls of tools) are left out, and named in a note.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

from mnemolog.client.inputs.checks import kind_of
from mnemolog.errors import InvalidTurnError
from mnemolog.schemas.turn import Message


@runtime_checkable
class MessageModel(Protocol):
    """A message of a library with Pydantic models, such as `openai`."""

    def model_dump(self) -> dict[str, Any]: ...


AnyMessage = Message | Mapping[str, Any] | MessageModel
Messages = str | AnyMessage | Iterable[AnyMessage]
"""A text of the user, one message, or several: `{role, content, name}`, or what OpenAI's API takes and gives."""

ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""The parts of a content that are text, each with the field that holds it."""
_LEFT_OUT_FIELDS: Final = (
    "tool_calls",
    "function_call",
    "audio",
    "images",
    "reasoning_content",
    "reasoning",
    "thinking",
)
_SILENT_FIELDS: Final = frozenset({"tool_call_id", "annotations", "id", "type", "status", "refusal", "parsed", "index"})
_FIELDS: Final = frozenset({"role", "content", "name", *_LEFT_OUT_FIELDS}) | _SILENT_FIELDS


def as_messages(given: object) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The messages that have text, and notes on what was left out. Raises `InvalidTurnError` that names the place."""
    if isinstance(given, str):
        return [{"role": "user", "content": _not_blank(given)}], ()
    read: list[dict[str, str]] = []
    left_out: dict[str, None] = {}
    for number, one in enumerate(_listed(given)):
        message, parts = _read_message(f"messages.{number}", one)
        left_out |= dict.fromkeys(f"{part} (messages.{number})" for part in parts)
        if message["content"] or not parts:
            read.append(message)
    if not any(message["content"].strip() for message in read):
        raise InvalidTurnError(_no_text(left_out))
    notes = (f"left out, because it is not text: {', '.join(left_out)}",) if left_out else ()
    return read, notes


def _listed(given: object) -> Iterable[object]:
    if isinstance(given, Mapping | Message | MessageModel):
        return [given]
    if isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        raise InvalidTurnError(
            f"messages must be a text, or a list of messages with role and content, not {kind_of(given)}"
        )
    return given


def _read_message(place: str, given: object) -> tuple[dict[str, str], list[str]]:
    """A message with its text, and the names of the parts that are no text."""
    fields = given.model_dump() if isinstance(given, MessageModel) else given
    if not isinstance(fields, Mapping):
        raise InvalidTurnError(
            f'{place} must be a message such as {{"role": "user", "content": "..."}}, not {kind_of(given)}'
        )
    for name in fields:
        if name not in _FIELDS and fields[name] is not None:
            raise InvalidTurnError(f"{place} has an unknown field {name!r:.60}: a message has role, content and name")
    texts, left_out = _read_content(f"{place}.content", fields)
    left_out += [name for name in _LEFT_OUT_FIELDS if fields.get(name)]
    message = {"role": _role(place, fields), "content": "\n".join(texts)}
    if (name := fields.get("name")) is not None:
        if not isinstance(name, str):
            raise InvalidTurnError(f"{place}.name must be text, not {kind_of(name)}")
        message["name"] = name
    return message, left_out


def _role(place: str, fields: Mapping[str, Any]) -> str:
    role = fields.get("role")
    if role is None:
        raise InvalidTurnError(f"{place}.role is missing: give one of {', '.join(ROLES)}")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidTurnError(f"{place}.role is {role!r:.60}: choose one of {', '.join(ROLES)}")
    return ROLES[role]


def _read_content(place: str, fields: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The texts of a content, and the kinds of its other parts."""
    content, refusal = fields.get("content"), fields.get("refusal")
    texts = [refusal] if isinstance(refusal, str) else []
    match content:
        case str():
            return [content, *texts], []
        case None:
            if not texts and not any(fields.get(name) for name in _LEFT_OUT_FIELDS):
                raise InvalidTurnError(f"{place} is missing: give the text of the message")
            return texts, []
        case list() | tuple():
            parts = [_read_part(f"{place}.{number}", part) for number, part in enumerate(content)]
            found = [text for text, _ in parts if text is not None]
            return found + texts, [kind for text, kind in parts if text is None]
        case _:
            raise InvalidTurnError(f"{place} must be text, or a list of parts of text, not {kind_of(content)}")


def _read_part(place: str, given: object) -> tuple[str | None, str]:
    """The text of a part, None where it is something else; and its type."""
    part = given.model_dump() if isinstance(given, MessageModel) else given
    if isinstance(part, str):
        return part, "text"
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise InvalidTurnError(
            f'{place} must be a part such as {{"type": "text", "text": "..."}}, not {kind_of(given)}'
        )
    kind = part["type"]
    field = _TEXT_PARTS.get(kind)
    if field is None:
        return None, kind
    text = part.get(field)
    if not isinstance(text, str):
        raise InvalidTurnError(f"{place}.{field} must be text, not {kind_of(text)}")
    return text, kind


def _not_blank(text: str) -> str:
    if not text.strip():
        raise InvalidTurnError(_no_text(()))
    return text


def _no_text(left_out: Iterable[str]) -> str:
    named = ", ".join(left_out)
    but = f" besides {named}, and only text is remembered" if named else ""
    return f"empty: no message has any text{but}: publish at least one message with content"
