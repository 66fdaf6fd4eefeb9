"""Exports of other programs as lines of JSON: memories of mem0, conversations of ChatGPT and Claude.

A line of a conversation is a turn: what the user said, and the answers to it, under an id that its messages give.
"""

import json
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any, Final, NamedTuple

from mnemolog.errors import InvalidCommandError

_DOCUMENT: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*(?:\[|\{\s*(?:"(?:results|memories|relations|count|next|previous)"|$))'
)
"""How a file begins that is one JSON document: facts in lines are objects, each whole in its line."""
_CONVERSATIONS: Final = re.compile(r"(?:^|/)conversations[^/]*\.json$")
"""The files of an archive that have conversations: ChatGPT numbers them."""
MAX_RATIO: Final = 100
"""Bytes that a byte of an archive unpacks to at the most: of conversations it is five to ten."""
_TEXT_KINDS: Final = ("text", "multimodal_text")
_NO_TEXT: Final = "parts that are no text"
_NO_USER: Final = "messages before the first of the user"
_NO_TURN: Final = "conversations in which the user says nothing"
_PAGE: Final = frozenset({"results", "memories", "count", "next", "previous"})
"""What a document of mem0 has around its memories."""
_READ: Final = {
    "chatgpt": frozenset({"id", "conversation_id", "title", "create_time", "mapping", "current_node", "update_time"}),
    "claude": frozenset({"uuid", "name", "created_at", "updated_at", "chat_messages"}),
    "message": frozenset(
        {"id", "uuid", "author", "sender", "content", "text", "create_time", "created_at", "recipient", "metadata"}
        | {"status", "end_turn", "weight", "channel", "update_time", "updated_at", "parent_message_uuid"}
    ),
}
"""What is read of a conversation and its messages, or says nothing."""


class Said(NamedTuple):
    """One message of a conversation."""

    message_id: str
    role: str
    content: str
    at: str | None


@contextmanager
def as_lines(stream: IO[bytes], passed_over: Counter[str]) -> Iterator[tuple[IO[bytes], str]]:
    """A stream of lines, as it is or made of a document or an archive, and what one of them is: a line or an item.

    Fields and messages that are not read are counted in `passed_over`. Raises `InvalidCommandError` for anything else.
    """
    start = stream.tell()
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            files = [one for one in archive.infolist() if _CONVERSATIONS.search(one.filename)]
            if not files:
                raise InvalidCommandError("the archive has no conversations.json: give one of ChatGPT or Claude")
            if any(one.file_size > MAX_RATIO * one.compress_size for one in files):
                raise InvalidCommandError(
                    "the archive is larger unpacked than text can be: unpack it, and give the file"
                )
            documents = [archive.read(one) for one in files]
    else:
        stream.seek(start)
        is_document = _DOCUMENT.match(stream.readline(200).rstrip())
        stream.seek(start)
        if not is_document:
            yield stream, "line"
            return
        documents = [stream.read()]
    with tempfile.TemporaryFile() as lines:
        for document in documents:
            # By `json`: half a surrogate pair, which an export may have, is then the fault of its line alone.
            lines.writelines(json.dumps(item).encode() + b"\n" for item in _items(document, passed_over))
        lines.seek(0)
        yield lines, "item"


def _items(document: bytes, passed_over: Counter[str]) -> Iterator[object]:
    try:
        found = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise InvalidCommandError(f"the file is neither lines of JSON nor one JSON document ({error})") from error
    if isinstance(found, dict):
        passed_over.update(name for name in found.keys() - _PAGE if found[name])
        found = found.get("results", found.get("memories"))
    if not isinstance(found, list):
        raise InvalidCommandError("the file has no list of memories or conversations: give an export, or lines of JSON")
    for place, item in enumerate(found):
        kind = _kind_of(item)
        if kind is None:
            yield item
            continue
        passed_over.update(name for name in item.keys() - _READ[kind] if item[name])
        conversation = item.get("conversation_id") or item.get("id") or item.get("uuid") or place
        prefix, title = f"import/{kind}/{conversation}", item.get("title") or item.get("name") or ""
        try:
            read = [
                *(_chatgpt_said(_chatgpt_messages(item)) if kind == "chatgpt" else _claude_said(item["chat_messages"]))
            ]
            begun = _iso(item.get("create_time") or item.get("created_at"))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            yield {"turn_id": prefix, "messages": None}  # which is named like any wrong item
        else:
            passed_over.update(one for one in read if isinstance(one, str))
            said = [one for one in read if isinstance(one, Said)]
            first = next((number for number, one in enumerate(said) if one.role == "user"), len(said))
            passed_over.update([_NO_USER] * first + [_NO_TURN] * (first == len(said)))
            yield from _turns(said[first:], prefix, begun, {"source": kind, "conversation": title})


def _kind_of(item: object) -> str | None:
    if isinstance(item, dict) and isinstance(item.get("mapping"), dict):
        return "chatgpt"
    return "claude" if isinstance(item, dict) and isinstance(item.get("chat_messages"), list) else None


def _chatgpt_messages(conversation: Mapping[str, Any]) -> list[Any]:
    """The messages from the beginning to where the conversation ended; what was edited since has other branches."""
    nodes: dict[Any, Any] = conversation["mapping"]
    place = conversation.get("current_node")
    place = place if place in nodes else next(reversed(nodes), None)
    path: dict[Any, Any] = {}
    while place in nodes and place not in path:
        path[place] = nodes[place].get("message")
        place = nodes[place].get("parent")
    return [message for message in reversed(path.values()) if message]


def _chatgpt_said(messages: Iterable[Mapping[str, Any]]) -> Iterator[Said | str]:
    """What the user and the assistant said, and a name for each thing that is not read."""
    for number, message in enumerate(messages):
        role, content = message["author"]["role"], message.get("content") or {}
        given = content.get("parts") or [] if content.get("content_type") in _TEXT_KINDS else []
        parts = [one["text"] if isinstance(one, dict) and "text" in one else one for one in given]  # spoken, or written
        texts = [part for part in parts if isinstance(part, str) and part.strip()]
        is_hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
        yield from (_NO_TEXT for part in parts if not isinstance(part, str))
        if role not in ("user", "assistant") or is_hidden or not texts or message.get("recipient", "all") != "all":
            yield f"messages of {role} without a text for the user"
            continue
        yield from (name for name in message.keys() - _READ["message"] if message[name])
        yield Said(str(message.get("id") or number), role, "\n".join(texts), _iso(message.get("create_time")))


def _claude_said(messages: Iterable[Mapping[str, Any]]) -> Iterator[Said | str]:
    """The same."""
    for number, message in enumerate(messages):
        role = {"human": "user"}.get(message["sender"], message["sender"])
        parts = message.get("content") or []
        texts = [part["text"] for part in parts if part["type"] == "text" and part["text"].strip()]
        text = "\n".join(texts) or message.get("text") or ""
        yield from (_NO_TEXT for part in parts if part["type"] != "text")
        yield from (name for name in message.keys() - _READ["message"] if message[name])
        if text.strip() and role in ("user", "assistant"):
            yield Said(str(message.get("uuid") or number), role, text, _iso(message.get("created_at")))
        else:
            yield f"messages of {role} without a text for the user"


def _turns(
    said: Iterable[Said], prefix: str, begun: str | None, metadata: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """A turn of each message of the user, with the answers up to the next one; the first message is the user's."""
    turn: list[Said] = []
    for message in (*said, None):
        if message is None or message.role == "user":
            if turn:
                yield {
                    "turn_id": f"{prefix}/{turn[0].message_id}",
                    "occurred_at": turn[0].at or begun,
                    "messages": [{"role": one.role, "content": one.content} for one in turn],
                    "metadata": metadata,
                }
            turn = [message] if message else []
        else:
            turn.append(message)


def _iso(moment: object) -> str | None:
    """A time in seconds since 1970, or as text, in ISO 8601."""
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC).isoformat()
    return moment if isinstance(moment, str) else None
