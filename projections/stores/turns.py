"""The journal of turns, and what goes with a turn.

The conversation before it, policies, limits and stored model replies.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Final

import orjson
import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL
from pydantic_core import to_json

from mnemolog.common.logs import get_logger
from mnemolog.projections.database import Pool, Store, fetch_rows, fetch_value
from mnemolog.projections.faults import fault_of, without_rows
from mnemolog.projections.sql import queries
from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.costs import NO_PRICES, ModelUsage, PriceTable
from mnemolog.schemas.policy import (
    COUNTED_LIMITS,
    LEVELS,
    EffectivePolicy,
    Level,
    LimitHit,
    Limits,
    StoredPolicies,
    TurnUsage,
    UsageCounts,
    counted_levels,
    exceeded_limit,
)
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, scope_columns
from mnemolog.schemas.stored import EarlierMessage, ReplyKey, ReplyNotStorableError, StoredReply
from mnemolog.schemas.turn import Turn

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One record: the turn or the refusal in it, its position in the topic, and the broker's time of it.

    `value` are its bytes; of a refused record they are kept where they are JSON.
    """

    parsed: Turn | Refusal
    topic: str
    partition: int
    offset: int
    published_at: datetime
    value: bytes | None = None


MAX_CHARACTERS: Final = 4000
"""Of a message, so many of its last characters are read: a question stands at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRequest:
    """Whose conversation before which turn.

    At most `messages`, said within `age` before `said_at`, and published before the turn and after `since`, the
    owner's last deletion that the caller knows of. `published_at` is the broker's time of the turn.
    """

    scope: Scope
    turn_id: str
    published_at: datetime
    offset: int
    said_at: datetime
    age: timedelta
    messages: int
    since: datetime | None = None


class Journal(Store):
    """The table `turn_journal`: every turn and every refused record, with the messages."""

    QUERIES: ClassVar = {**queries("journal"), **queries("conversation")}

    async def record(self, entries: Sequence[JournalEntry]) -> None:
        """Keep `entries`; one whose source is kept already changes nothing.

        One whose body the table cannot hold is kept without it, and the others of its batch as they are.
        """
        if not entries:
            return
        try:
            await self._insert([_row(entry) for entry in entries])
        except psycopg.Error as error:
            if fault_of(error) != "record":
                raise
            if len(entries) == 1:
                log.warning("body_not_storable", topic=entries[0].topic, offset=entries[0].offset)
                without_body = {"body": None, "detail": "Postgres cannot hold the body of this record"}
                await self._insert([_row(entries[0]) | without_body])
                return
            middle = len(entries) // 2
            await self.record(entries[:middle])
            await self.record(entries[middle:])

    async def messages_before(self, requests: Sequence[ConversationRequest]) -> list[tuple[EarlierMessage, ...]]:
        """For each request the messages of exactly its scope, the oldest first; one round trip for all."""
        found: list[list[EarlierMessage]] = [[] for _ in requests]
        columns = {
            "owner": [one.scope.owner for one in requests],
            "source_id": [one.turn_id for one in requests],
            **{name: [one.scope.columns[name] for one in requests] for name in requests[0].scope.columns},
            "published_at": [one.published_at for one in requests],
            "log_offset": [one.offset for one in requests],
            "since": [one.since for one in requests],
            "said_at": [one.said_at for one in requests],
            "oldest": [one.said_at - one.age for one in requests],
            "messages": [one.messages for one in requests],
            "characters": MAX_CHARACTERS,
        }
        for place, turn_id, role, name, content, at in await self._rows("said_before", columns):
            message = EarlierMessage(turn_id=turn_id, role=role, name=name, content=content, at=at)
            found[place - 1].append(message)
        return [tuple(reversed(messages)) for messages in found]

    async def stored_vectors(self) -> tuple[str, int] | None:
        """The model and the dimensions of the vectors of stored facts."""
        return next(iter(await self._rows("stored_vectors", {})), None)

    async def _insert(self, rows: Sequence[dict[str, Any]]) -> None:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        await self._run("journal", lambda connection: connection.execute(self.QUERIES["record"], columns))


def _row(entry: JournalEntry) -> dict[str, Any]:
    parsed = entry.parsed
    if isinstance(parsed, Turn):
        source_id = parsed.turn_id
        content = {
            "occurred_at": parsed.occurred_at,
            "infer": parsed.infer,
            "body": parsed.model_dump_json(),
            "refusal": None,
            "detail": None,
        }
    else:
        source_id = parsed.source_id
        content = {
            "occurred_at": None,
            "infer": None,
            "body": _storable_json(entry.value or b""),
            "refusal": parsed.reason,
            "detail": parsed.detail.replace("\x00", ""),
        }
    return {
        "owner": parsed.scope.owner if parsed.scope else source_id,
        "source_id": source_id,
        **dict(zip(SCOPE_FIELDS, scope_columns(parsed.scope), strict=True)),
        "topic": entry.topic,
        "partition": entry.partition,
        "log_offset": entry.offset,
        "published_at": entry.published_at,
        **content,
    }


def _storable_json(value: bytes) -> str | None:
    """The record as JSON that Postgres can hold, or None."""
    try:
        # Read and written again: huge numbers and repeated keys are gone then.
        text = to_json(orjson.loads(value)).decode()
    except (orjson.JSONDecodeError, ValueError):
        return None
    return None if "\\u0000" in text else text


_POLICIES_SQL: Final = queries("policies")


def with_policies(query: SQL) -> SQL:
    """A query of a table `asked` with the policies of each scope in it among its columns."""
    return SQL(query.format(asked_policies=_POLICIES_SQL["asked_policies"]).as_string())


_SET_FOR: Final = with_policies(_POLICIES_SQL["set_for"])


class PolicyStore(Store):
    """Reads policies; every call is one round trip."""

    async def effective_policy(self, scope: Scope, defaults: EffectivePolicy) -> EffectivePolicy:
        """The policy that applies to `scope` now, where `defaults` are configured."""
        return (await self.stored_policies([scope]))[0].overlay(defaults)

    async def stored_policies(self, scopes: Sequence[Scope]) -> list[StoredPolicies]:
        """What has been set for each scope and for its tenant."""
        return await self._run("policies", _fetch_all, scopes)


async def fetch_policies(conn: AsyncConnection[TupleRow], scope: Scope) -> StoredPolicies:
    """What has been set for a scope and for its tenant, in one round trip."""
    return (await _fetch_all(conn, [scope]))[0]


async def _fetch_all(conn: AsyncConnection[TupleRow], scopes: Sequence[Scope]) -> list[StoredPolicies]:
    columns = {name: [scope.columns[name] for scope in scopes] for name in SCOPE_FIELDS}
    rows = await (await conn.execute(_SET_FOR, columns)).fetchall()
    return [StoredPolicies.from_json(*row) for row in rows]


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, by a quick look; True for a tenant with many policies."""
    row = await (await conn.execute(_POLICIES_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])


_QUALITY_SQL: Final = queries("quality")
_USAGE_OF_DAY: Final = _QUALITY_SQL["usage"].format(rows=_QUALITY_SQL["of_day"], scope=_QUALITY_SQL["of_one_scope"])


LIMIT_LOCK: Final = 0x6D6E_0003
"""First half of the advisory locks under which a tenant's turns reserve; the second is a hash of the tenant."""
RESERVATION_RETENTION: Final = timedelta(days=7)
"""Older reservations are of turns that were never committed: each delivery of a turn makes its reservation anew."""

_LIMITS_SQL: Final = queries("limits")


async def find_exhausted_limit(
    connection: AsyncConnection[TupleRow],
    scope: Scope,
    rules: EffectivePolicy,
    at: datetime,
    prices: PriceTable = NO_PRICES,
) -> LimitHit | None:
    """The first limit without room for a turn published `at`, by the counts in the tables.

    One round trip for all that is counted, and one for each level with a limit on money, which what has no price does
    not spend; none where no limit is set. A turn that is admitted may still exceed one.
    """
    asked, periods = counted_levels(rules), _periods(at)
    if asked:
        used = await _usage(connection, scope, asked, {"owner": "", "source_id": "", **periods})
        hits = (exceeded_limit(level, asked[level], used[level]) for level in asked)
        if hit := next((hit for hit in hits if hit is not None), None):
            return hit
    for level, limits in rules.limits.items():
        if limits.cost_per_day is None:
            continue
        named = scope.columns if level == "scope" else {**dict.fromkeys(SCOPE_FIELDS, ""), "tenant": scope.tenant}
        usages = await fetch_rows(connection, ModelUsage, _USAGE_OF_DAY, {**named, "day": periods["day"].date()})
        spent = sum((amount for amount in map(prices.amount, usages) if amount is not None), Decimal(0))
        if spent >= limits.cost_per_day:
            return LimitHit(name="cost_per_day", level=level, count=float(spent), limit=float(limits.cost_per_day))
    return None


async def is_received(connection: AsyncConnection[TupleRow], owner: str, source_id: str) -> bool:
    """Whether publishing a turn again does nothing: it is under way, or was decided and may not be tried again."""
    asked = {"owner": owner, "source_id": source_id}
    return bool(await fetch_value(connection, _LIMITS_SQL["is_received"], asked))


class LimitReservations(Store):
    """Admits turns under the limits of their scope and tenant; `prices` make money of tokens."""

    def __init__(self, pool: Pool, prices: PriceTable = NO_PRICES) -> None:
        super().__init__(pool)
        self._prices = prices

    async def exhausted_limit(self, scope: Scope, rules: EffectivePolicy, at: datetime) -> LimitHit | None:
        """As `find_exhausted_limit`."""
        if not rules.has_counted_limits:
            return None
        return await self._run("limits", find_exhausted_limit, scope, rules, at, self._prices)

    async def reserve(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """The first limit that `usage` would break; without one it is reserved and counts from now on.

        Exact under any number of callers, if calls for one scope come one after the other, each when all earlier
        commits of it are projected. The same source may call again: that replaces its reservation. No round trip where
        no limit is set.
        """
        asked = counted_levels(rules)
        tenant_limits = asked.pop("tenant", None)
        if asked and (hit := await self._run("limits", _exceeded_limit, usage, asked)):
            return hit
        return await self._run("reserve", _reserve, usage, tenant_limits) if tenant_limits else None

    async def check(self, usage: TurnUsage, rules: EffectivePolicy) -> LimitHit | None:
        """As `reserve`, by the counts in the tables; nothing is reserved."""
        asked = counted_levels(rules)
        return await self._run("limits", _exceeded_limit, usage, asked) if asked else None


async def _exceeded_limit(
    connection: AsyncConnection[TupleRow], usage: TurnUsage, asked: Mapping[Level, Limits]
) -> LimitHit | None:
    given = {"owner": usage.owner, "source_id": usage.source_id, **_periods(usage.published_at)}
    used = await _usage(connection, usage.scope, asked, given)
    hits = (exceeded_limit(level, asked[level], used[level], usage.counts) for level in asked)
    return next((hit for hit in hits if hit is not None), None)


async def _reserve(connection: AsyncConnection[TupleRow], usage: TurnUsage, limits: Limits) -> LimitHit | None:
    parameters = {
        "lock": LIMIT_LOCK,
        "tenant": usage.scope.tenant,
        "owner": usage.owner,
        "source_id": usage.source_id,
        "published_at": usage.published_at,
        "facts": max(usage.facts, 0),
        "tokens": usage.tokens,
        "turns": usage.turns,
        "max_facts": limits.active_facts,
        "max_turns": limits.turns_per_minute,
        "max_tokens": limits.tokens_per_day,
        "retention": RESERVATION_RETENTION,
        **_periods(usage.published_at),
    }
    # The commit is sent along: while the tenant is locked, nobody waits for this process's loop.
    async with connection.pipeline(), connection.transaction():
        await connection.execute(_LIMITS_SQL["lock_tenant"], parameters)
        cursor = await connection.execute(_LIMITS_SQL["reserve"], parameters)
    ((facts, turns, tokens, reserved),) = await cursor.fetchall()
    if reserved:
        return None
    return exceeded_limit("tenant", limits, UsageCounts(facts=facts, turns=turns, tokens=tokens), usage.counts)


async def _usage(
    connection: AsyncConnection[TupleRow], scope: Scope, asked: Mapping[Level, Limits], given: Mapping[str, Any]
) -> dict[Level, UsageCounts]:
    """The usage of each level, as far as its limits in `asked` count it."""
    flags = {
        f"{level}_{kind}": getattr(asked.get(level), name, None) is not None
        for level in LEVELS
        for kind, name in COUNTED_LIMITS.items()
    }
    cursor = await connection.execute(_LIMITS_SQL["usage"], {**scope.columns, **flags, **given})
    (counts,) = await cursor.fetchall()
    return {
        level: UsageCounts(**dict(zip(COUNTED_LIMITS, counts[place : place + 3], strict=True)))
        for level, place in zip(LEVELS, (0, 3), strict=True)
    }


def _periods(at: datetime) -> dict[str, datetime]:
    minute = at.astimezone(UTC).replace(second=0, microsecond=0)
    return {"minute": minute, "day": minute.replace(hour=0, minute=0)}


class ReplyStore(Store):
    """The table `model_replies`."""

    QUERIES = queries("replies")

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        """Per key the replies to all attempts so far, the first one first; keys without any are left out."""
        found = await self._get(keys, "replies_get")
        return {key: tuple(replies) for key, replies in groupby(found, attrgetter("key"))}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        """Keep replies; gives in the same order those that are kept, which are earlier ones where there were any.

        Raises `ReplyNotStorableError` where one of them cannot be stored; none is kept then.
        """
        # Postgres holds neither U+0000 nor an unpaired surrogate; no valid reply has them unescaped.
        storable = [
            replace(one, reply=one.reply.replace("\x00", "\ufffd").encode("utf-8", "replace").decode())
            for one in replies
        ]
        columns = {name: [getattr(reply, name) for reply in storable] for name in _COLUMNS}
        try:
            rows = await self._rows("put", columns, operation="replies_put")
        except psycopg.Error as error:
            if fault_of(error) != "record":
                raise
            raise ReplyNotStorableError(without_rows(error)) from error
        new = {(tuple(key), attempt) for *key, attempt in rows}
        # Of two equal keys in one call the database keeps either; both have to get that one.
        times = Counter(reply.attempt_key for reply in storable)
        doubtful = [reply.key for reply in storable if reply.attempt_key not in new or times[reply.attempt_key] > 1]
        # Read in a statement of its own, as only that sees what another connection has just kept.
        found = await self._get(doubtful, "replies_put") if doubtful else []
        kept = {reply.attempt_key: reply for reply in found}
        return [kept.get(reply.attempt_key, reply) for reply in storable]

    async def paid(self, owner: str, source_id: str, stage: str, position: str) -> list[StoredReply]:
        """What the record at `position` pays for at a stage of its source."""
        parameters = {"owner": owner, "source_id": source_id, "stage": stage, "position": position}
        return await self._rows("paid", parameters, make=class_row(StoredReply), operation="replies_paid")

    async def purge(self, older_than: datetime) -> int:
        """Forget what was kept before `older_than`; gives how many replies that were."""
        parameters = {"older_than": older_than}
        deleted = await self._run("replies_purge", lambda conn: conn.execute(self.QUERIES["purge"], parameters))
        return deleted.rowcount

    async def forget(self, owner: str, source_id: str) -> None:
        """Forget the replies for a source, so that its next attempt asks anew."""
        parameters = {"owner": owner, "source_id": source_id}
        await self._run("replies_forget", lambda conn: conn.execute(self.QUERIES["forget"], parameters))

    async def _get(self, keys: Sequence[ReplyKey], operation: str) -> list[StoredReply]:
        columns = ("owner", "source_id", "stage", "version")
        parameters = {name: [key[place] for key in keys] for place, name in enumerate(columns)}
        return await self._rows("get", parameters, make=class_row(StoredReply), operation=operation)


_COLUMNS: Final = tuple(field.name for field in fields(StoredReply))
