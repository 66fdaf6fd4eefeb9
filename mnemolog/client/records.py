"""Makes a `Turn` or `Command` of a caller's arguments, and validates it as the pipeline will, before it is sent."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol, runtime_checkable

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from mnemolog.client.inputs import TurnArgs, kind_of, scope_ids
from mnemolog.errors import InvalidCommandError, InvalidTurnError
from mnemolog.projections.queries.scope_filter import WILDCARDS
from mnemolog.schemas.admission import Refusal, parse_command, parse_turn
from mnemolog.schemas.base import validation_error
from mnemolog.schemas.command import Command
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.turn import Message, Turn


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


PLACEHOLDER_SCOPE: Final = Scope(user_id="anybody")
"""Stands for the scope of a command while it is not known, so that the rest can be validated."""
_DIGEST_CHARACTERS: Final = 16
_NOBODY: Final = "give a user_id or an agent_id, or call it on `memory.scope(user_id=...)`"


def as_messages(given: object) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The messages that have text, and notes on what was left out. Raises `InvalidTurnError` that names the place."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    elif isinstance(given, Mapping | Message | MessageModel):
        given = [given]
    elif isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        raise InvalidTurnError(
            f"messages must be a text, or a list of messages with role and content, not {kind_of(given)}"
        )
    read: list[dict[str, str]] = []
    left_out: dict[str, None] = {}
    for number, one in enumerate(given):
        message, parts = _read_message(f"messages.{number}", one)
        left_out |= dict.fromkeys(f"{part} (messages.{number})" for part in parts)
        if message["content"] or not parts:
            read.append(message)
    named = ", ".join(left_out)
    if not any(message["content"].strip() for message in read):
        but = f" besides {named}, and only text is remembered" if named else ""
        raise InvalidTurnError(f"empty: no message has any text{but}: publish at least one message with content")
    return read, (f"left out, because it is not text: {named}",) if named else ()


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
    role = fields.get("role")
    if role is None:
        raise InvalidTurnError(f"{place}.role is missing: give one of {', '.join(ROLES)}")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidTurnError(f"{place}.role is {role!r:.60}: choose one of {', '.join(ROLES)}")
    message = {"role": ROLES[role], "content": "\n".join(texts)}
    if (name := fields.get("name")) is not None:
        if not isinstance(name, str):
            raise InvalidTurnError(f"{place}.name must be text, not {kind_of(name)}")
        message["name"] = name
    return message, left_out


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


def build_turn(messages: Sequence[Mapping[str, str]], arguments: TurnArgs, *, max_bytes: int) -> Turn:
    """Make a turn of a caller's arguments, `turn_id`, `occurred_at` and `tenant` among them.

    Raises `InvalidTurnError` that names the wrong field and what it should be.
    """
    if not names_owner(arguments):
        raise InvalidTurnError(_NOBODY)
    given = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in arguments.items()
        if name not in SCOPE_FIELDS and value is not None
    }
    document = {
        **given,
        "scope": scope_ids(arguments),
        "messages": messages,
    }
    try:
        turn = Turn.model_validate(document)
    except ValidationError as error:
        raise InvalidTurnError(f"{validation_error(Turn, error)}: nothing was published") from error
    return validated_turn(turn, max_bytes=max_bytes)


def validated_turn(turn: Turn, *, max_bytes: int) -> Turn:
    """Give `turn` back if the pipeline will accept its bytes; raises `InvalidTurnError` if it will not."""
    try:
        data = turn.to_bytes()
    except PydanticSerializationError as error:
        raise InvalidTurnError(
            f"metadata cannot be written as JSON ({error}): use text, numbers, lists, dicts"
        ) from error
    return read_turn(data, max_bytes=max_bytes)


def read_turn(data: bytes, *, max_bytes: int) -> Turn:
    """Read one turn document. Raises `InvalidTurnError` with the reason the pipeline would give if it came now."""
    now = datetime.now(UTC)
    judged = parse_turn(data, position="", max_bytes=max_bytes, published_at=now)
    if isinstance(judged, Refusal):
        try:  # the messages may be in OpenAI's form
            document = orjson.loads(data)
            converted = orjson.dumps({**document, "messages": as_messages(document["messages"])[0]})
        except (ValueError, KeyError, TypeError, InvalidTurnError):
            pass
        else:
            judged = parse_turn(converted, position="", max_bytes=max_bytes, published_at=now)
    if isinstance(judged, Refusal):
        raise InvalidTurnError(f"{judged.reason}: {judged.detail}")
    return judged


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDraft:
    """The parts of a command; `payload` holds its own fields, its kind among them."""

    command_id: str
    scope_ids: Mapping[str, str | None]
    issued_at: datetime
    payload: Mapping[str, Any]
    actor: str | None = None

    @property
    def has_wildcard(self) -> bool:
        return not WILDCARDS.isdisjoint(self.scope_ids.values())

    def for_scope(self, scope: Scope) -> "CommandDraft":
        """The same command for one of the scopes that match, under an id that follows from both."""
        ids = {name: getattr(scope, name) for name in SCOPE_FIELDS}
        digest = hashlib.sha256(orjson.dumps(list(ids.values()))).hexdigest()[:_DIGEST_CHARACTERS]
        return replace(self, command_id=f"{self.command_id}/{digest}", scope_ids=ids)


def build_command(draft: CommandDraft) -> Command:
    """Make a command of `draft`. Raises `InvalidCommandError` that names the field at fault and the remedy."""
    document = {
        "command_id": draft.command_id,
        "scope": exact_scope(draft.scope_ids).model_dump(),
        "issued_at": draft.issued_at,
        "order": dict(draft.payload),
        "actor": draft.actor,
    }
    try:
        data = orjson.dumps(document, default=_json_default)
    except TypeError as error:
        raise InvalidCommandError(
            f"the command cannot be written as JSON ({error}): use text, numbers, lists, dicts"
        ) from error
    judged = parse_command(data, position="")
    if isinstance(judged, Refusal):
        # A command's own fields are in the field `order` of its record, which callers do not know.
        faults = re.sub(r"(^|; )order\.", r"\1", judged.detail)
        raise InvalidCommandError(f"{judged.reason}: {faults}: nothing was published")
    return judged


def exact_scope(scope_ids: Mapping[str, str | None]) -> Scope:
    """The scope that `scope_ids` names. Raises `InvalidCommandError` for "*" or "**" and where it names nobody."""
    if any(value == wildcard for value in scope_ids.values() for wildcard in WILDCARDS):
        raise InvalidCommandError(
            "this command takes one exact scope: give each id or leave it out; '*' and '**' are not allowed"
        )
    if not names_owner(scope_ids):
        raise InvalidCommandError(_NOBODY)
    try:
        return Scope.model_validate(scope_ids)
    except ValidationError as error:
        raise InvalidCommandError(f"the scope is not valid: {describe_faults(error)}") from error


def names_owner(arguments: Mapping[str, object]) -> bool:
    """Whether a user or an agent is given: a scope has one of them at least."""
    return arguments.get("user_id") is not None or arguments.get("agent_id") is not None


def _json_default(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
