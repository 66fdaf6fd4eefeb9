"""Turns: read from what a caller gives, validated as the pipeline will, and published by the methods of the client."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol, Unpack, runtime_checkable

import orjson
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mnemolog.client.base import Publish
from mnemolog.client.inputs import NOBODY, TurnArgs, Wait, kind_of, names_owner, scope_ids
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.results import ResultMixin, published
from mnemolog.errors import InvalidTurnError, NotConnectedError, WaitTimeoutError
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.base import validation_error
from mnemolog.schemas.scope import SCOPE_FIELDS
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
        case None if fields.get("role") == "tool" and "content" in fields:
            return texts, ["a result of a tool without text"]
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
        raise InvalidTurnError(NOBODY)
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


class TurnMixin(ResultMixin):
    """Publishes turns, or says what would become of one."""

    @Publish
    async def add(self, messages: Messages, *, wait: Wait = False, **turn: Unpack[TurnArgs]) -> Result:
        """Publish one turn; returns once the broker has it for good, or with `wait` once it has ended.

        `messages` is a text of the user, or a list of `{role, content, name}`; messages in OpenAI's form are taken as
        they are. `TurnArgs` says what the other arguments mean.

        The `status` of the result is `pending`; with `wait` (True for 30, or seconds) it is that of the end. A turn
        that ended `failed` or `rejected` raises nothing: `success` and `error` of the result say so. Raises
        `WaitTimeoutError` where there is no end in time: the turn is published and goes on, so wait for it again
        instead of adding it again.

        Raises `InvalidTurnError` before anything is sent, `LimitExceededError` where it is known that the turn would be
        refused for a limit, and `PublishError` when no acknowledgement came in time: publish again with the same
        `turn_id`, a second copy does nothing.
        """
        built, notes = self._build_turn(messages, turn)
        if wait:
            self._connections.read_pool()  # raises before anything is published where nothing says where Postgres is
        with suppress(NotConnectedError):  # nothing says where Postgres is: publishing does without
            await self._connections.limit_precheck.check(self._connections.read_pool(), built, self._now())
        producer = await self._connections.producer()
        delivered = await producer.publish(OutgoingRecord.of(built))
        sent = published(built, position=delivered.position, notes=notes)
        self._watch_ends([sent])
        return (await self._wait_for_all([sent], wait))[0] if wait else sent

    @Publish
    async def add_many(self, turns: Iterable[Turn], *, wait: Wait = False) -> list[Result]:
        """Publish turns in their order, many at a time; returns once the broker has all of them, or all have ended.

        Raises `InvalidTurnError` for the first invalid turn, before anything is sent, and `PartlyPublishedError` that
        names those which were not acknowledged. Limits are not checked here: a turn over one ends as rejected.
        """
        given: object = turns
        if isinstance(given, str | bytes | Mapping | Turn) or not isinstance(given, Iterable):
            raise InvalidTurnError(f"turns must be a list of Turn, not {kind_of(given)}")
        valid = []
        for number, one in enumerate(given):
            if not isinstance(one, Turn):
                raise InvalidTurnError(f"turns.{number} must be a Turn, not {kind_of(one)}: or call `add` for each")
            valid.append(validated_turn(one, max_bytes=self._settings.max_turn_bytes))
        if wait:
            self._connections.read_pool()
        producer = await self._connections.producer()
        reports = await producer.publish_batch(map(OutgoingRecord.of, valid))
        sent = [published(one, position=report.position) for one, report in zip(valid, reports, strict=True)]
        self._watch_ends(sent)
        return await self._wait_for_all(sent, wait) if wait else sent

    @Publish
    async def dry_run(
        self,
        messages: Messages,
        *,
        verbose: bool = True,
        timeout: float = 120.0,  # noqa: ASYNC109 - the error says what did not finish
        on_wait: Callable[[str], None] | None = None,
        **turn: Unpack[TurnArgs],
    ) -> Result:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still being processed are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` after `timeout` seconds, and what building a model
        raises. `on_wait` is called with what a run of more than 3 s waits for, and again where that has changed.
        """
        from mnemolog.projections.queries import trace, write_result  # noqa: PLC0415 - the records of the log

        built, notes = self._build_turn(messages, turn)
        try:
            async with asyncio.timeout(timeout):
                async with self._connections.read_pool().connection():
                    pass  # raises where Postgres is away or has no tables: the stages would wait for it
                commit = await (await self._connections.dry_run()).decide(built, on_wait)
                if verbose:
                    # The texts of the facts in the commit: known ones, and those that the turn itself brings.
                    fresh = {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
                    known = await self._query(write_result.fact_texts, commit.scope, trace.fact_ids_of_commit(commit))
                    names = await self._query(trace.entity_names, commit)
                    result = write_result.write_result(commit, fresh | known, self._prices, names)
                else:
                    result = write_result.write_result(commit, None, self._prices)
                return replace(result, notes=(*notes, *result.notes))
        except TimeoutError as error:
            reason = self._connections.dry_run_waits_for
            raise WaitTimeoutError(f"the dry run did not finish within {timeout:g} s: it waits for {reason}") from error

    def _build_turn(self, messages: Messages, arguments: TurnArgs) -> tuple[Turn, tuple[str, ...]]:
        """The turn, and notes on what was left out of its messages."""
        read, notes = as_messages(messages)
        complete: TurnArgs = {
            **arguments,
            "turn_id": arguments.get("turn_id") or self._new_id(),
            "occurred_at": arguments.get("occurred_at") or self._now(),
        }
        return build_turn(read, complete, max_bytes=self._settings.max_turn_bytes), notes
