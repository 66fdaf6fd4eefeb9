"""From a caller's arguments to a `Turn`, validated as the pipeline will validate it, before it is published."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mnemolog.client.arguments import TurnArgs, scope_ids
from mnemolog.errors import InvalidTurnError
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.base import validation_error
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Message, Turn

Messages = str | Sequence[Message | Mapping[str, str]]


def build_turn(messages: Messages, arguments: TurnArgs, *, max_bytes: int) -> Turn:
    """Make a turn of a caller's arguments, `turn_id`, `occurred_at` and `tenant` among them.

    Raises `InvalidTurnError` that names the wrong field and what it should be.
    """
    given = {name: dict(value) if isinstance(value, Mapping) else value for name, value in arguments.items()}
    for name, value in given.items():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise InvalidTurnError(f"{name} has no zone: use datetime.now(UTC), or give it one by .replace(tzinfo=...)")
    document = {
        **{name: value for name, value in given.items() if name not in SCOPE_FIELDS and value is not None},
        "scope": scope_ids(arguments),
        "messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else messages,
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
    """Read one turn document. Raises `InvalidTurnError` with the reason the pipeline would give."""
    judged = parse_turn(data, position="", max_bytes=max_bytes)
    if isinstance(judged, Refusal):
        raise InvalidTurnError(f"{judged.reason}: {judged.detail}")
    return judged
