"""What models answered, kept before it is used: a second delivery of a turn makes no second call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final

from psycopg import DataError

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.stored import ReplyKey, ReplyNotStorableError, StoredReply

_SQL: Final = queries("replies")


class ReplyStore:
    """The table `model_replies`. Every call waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:
        """Per key the replies to all attempts so far, the first one first; keys without any are left out."""
        found = await retry_while_unavailable(partial(self._get, keys), name="replies_get")
        return {key: tuple(replies) for key, replies in groupby(found, attrgetter("key"))}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        """Keep replies; gives in the same order those that are kept, which are earlier ones where there were any.

        Raises `ReplyNotStorableError` where one of them cannot be stored; none is kept then.
        """
        try:
            return await retry_while_unavailable(partial(self._put, replies), name="replies_put")
        except DataError as error:
            raise ReplyNotStorableError(str(error)) from error

    async def purge(self, older_than: datetime) -> int:
        """Forget what was kept before `older_than`; gives how many replies that were."""
        return await retry_while_unavailable(partial(self._purge, older_than), name="replies_purge")

    async def forget(self, owner: str, source_id: str) -> None:
        """Forget the replies for a source, so that its next attempt asks anew."""
        await retry_while_unavailable(partial(self._forget, owner, source_id), name="replies_forget")

    async def _get(self, keys: Sequence[ReplyKey]) -> tuple[StoredReply, ...]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_SQL["get"], _key_columns(keys))
            return tuple(_reply(row) for row in await cursor.fetchall())

    async def _put(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        storable = [replace(reply, reply=_storable_text(reply.reply)) for reply in replies]
        columns = {name: [getattr(reply, name) for reply in storable] for name in _COLUMNS}
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_SQL["put"], columns)
            new = {(tuple(key), attempt) for *key, attempt in await cursor.fetchall()}
        # Of two equal keys in one call the database keeps either; both have to get that one.
        times = Counter(reply.attempt_key for reply in storable)
        doubtful = [reply.key for reply in storable if reply.attempt_key not in new or times[reply.attempt_key] > 1]
        # Read in a statement of its own, as only that sees what another connection has just kept.
        kept = {reply.attempt_key: reply for reply in (await self._get(doubtful) if doubtful else ())}
        return [kept.get(reply.attempt_key, reply) for reply in storable]

    async def _purge(self, older_than: datetime) -> int:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_SQL["purge"], {"older_than": older_than})
            return cursor.rowcount

    async def _forget(self, owner: str, source_id: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["forget"], {"owner": owner, "source_id": source_id})


_COLUMNS: Final = tuple(field.name for field in fields(StoredReply))


def _key_columns(keys: Sequence[ReplyKey]) -> dict[str, list[str]]:
    return {name: [key[place] for key in keys] for place, name in enumerate(("owner", "source_id", "stage", "version"))}


def _reply(row: Sequence[object]) -> StoredReply:
    return StoredReply(**dict(zip(_COLUMNS, row, strict=True)))  # type: ignore[arg-type] # the query has these columns


def _storable_text(text: str) -> str:
    """Postgres holds neither U+0000 nor half a surrogate pair; no valid reply has them unescaped."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
