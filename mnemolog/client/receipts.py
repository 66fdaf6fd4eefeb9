"""What publishing returns, and by what `status` and `wait` find it again."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from mnemolog.client.inputs.checks import kind_of
from mnemolog.projections.queries.errors import QueryError, check_id_text
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.base import SourceKind
from mnemolog.schemas.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt:
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` take the receipt and tell which.

    `position` is its topic/partition/offset. `notes` say in words what was left out of its messages.
    """

    turn_id: str
    status: Literal["pending"] = "pending"
    tenant: str | None = field(default=None, repr=False)
    user_id: str | None = field(default=None, repr=False)
    agent_id: str | None = field(default=None, repr=False)
    position: str | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    content_hash: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReceipt:
    """A command that the broker has. It will reach exactly one end; `wait` and `status` take the receipt.

    `position` is its topic/partition/offset.
    """

    command_id: str
    status: Literal["pending"] = "pending"
    tenant: str | None = field(default=None, repr=False)
    user_id: str | None = field(default=None, repr=False)
    agent_id: str | None = field(default=None, repr=False)
    position: str | None = field(default=None, repr=False)


Published = str | TurnReceipt | CommandReceipt | WriteResult
"""A turn or a command: its id, its receipt or its result."""
SeveralPublished = Iterable[TurnReceipt | CommandReceipt | WriteResult] | list[str] | tuple[str, ...]
"""Several turns or commands. Not any iterable of texts: a text is one itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedId:
    """By what the end of a turn or a command is found; the user, else the agent, tells those of one id apart."""

    id: str
    kind: SourceKind = "turn"
    tenant: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    receipt: TurnReceipt | None = None
    position: str | None = None

    @classmethod
    def of(cls, published: object) -> "PublishedId":
        """Raises `QueryError` for what is neither an id nor what publishing returned."""
        match published:
            case TurnReceipt():
                return cls(id=published.turn_id, receipt=published, position=published.position, **_owner(published))
            case CommandReceipt():
                return cls(id=published.command_id, kind="command", position=published.position, **_owner(published))
            case WriteResult():
                return cls(id=published.turn_id, kind=published.source_kind, **_owner(published))
            case str():
                check_id_text(turn_id=published)
                return cls(id=published)
        raise QueryError(
            f"turn_id must be text, or what `add`, a command, `wait` or `status` returned, not {kind_of(published)}"
        )

    def may_follow(self, result: WriteResult) -> bool:
        """Whether a result is the end of an earlier record of this id, after which that of this one will come."""
        can_retry = result.limit is not None or (result.source_kind == "turn" and result.status == "failed")
        return can_retry and _precedes(result.position, self.position)


def _precedes(position: str | None, later: str | None) -> bool:
    """Whether a record lies before another one of the same partition."""
    where, _, offset = (position or "").rpartition("/")
    place, _, bound = (later or "").rpartition("/")
    return bool(where) and where == place and int(offset) < int(bound)


def _owner(published: TurnReceipt | CommandReceipt | WriteResult) -> dict[str, Any]:
    return {name: getattr(published, name) for name in ("tenant", "user_id", "agent_id")}


def message_hash(messages: Iterable[Any]) -> str:
    """Equal for equal messages, given as records or as the journal has them."""
    plain = [one if isinstance(one, dict) else one.model_dump() for one in messages]
    said = [[one["role"], one["content"], one.get("name")] for one in plain]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()


def turn_receipt(turn: Turn, *, position: str | None, notes: tuple[str, ...] = ()) -> TurnReceipt:
    return TurnReceipt(
        turn_id=turn.turn_id,
        tenant=turn.scope.tenant,
        user_id=turn.scope.user_id,
        agent_id=turn.scope.agent_id,
        position=position,
        notes=notes,
        content_hash=message_hash(turn.messages),
    )
