"""Stores model replies before they are used: a turn that is delivered again needs no second call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Final

import psycopg
from psycopg.rows import class_row

from mnemolog.projections.db.faults import fault_of
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.stored import ReplyKey, ReplyNotStorableError, StoredReply


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
        storable = [replace(reply, reply=_storable_text(reply.reply)) for reply in replies]
        columns = {name: [getattr(reply, name) for reply in storable] for name in _COLUMNS}
        try:
            rows = await self._rows("put", columns, operation="replies_put")
        except psycopg.Error as error:
            if fault_of(error) != "record":
                raise
            raise ReplyNotStorableError(str(error)) from error
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


def _storable_text(text: str) -> str:
    """Postgres holds neither U+0000 nor an unpaired surrogate; no valid reply has them unescaped."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
