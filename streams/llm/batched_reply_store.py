"""Get and put stored replies, those of many turns in one round trip."""

from collections.abc import Sequence
from typing import Final

from mnemolog.schemas.replies import ReplyKey, ReplyNotStorableError, StoredReply
from mnemolog.streams.llm.micro_batcher import MicroBatcher
from mnemolog.streams.llm.ports import ReplyStore

MAX_BATCH: Final = 256
MAX_CONCURRENT_CALLS: Final = 2

_PutResult = StoredReply | ReplyNotStorableError


class BatchedReplyStore:
    """What is asked or kept while a call to the database is under way goes there together in the next one.

    A single request is not delayed.
    """

    def __init__(self, replies: ReplyStore) -> None:
        self._replies = replies
        self._gets: MicroBatcher[ReplyKey, tuple[StoredReply, ...]] = MicroBatcher(
            self._get_all, max_items=MAX_BATCH, max_wait=0, max_concurrent=MAX_CONCURRENT_CALLS
        )
        self._puts: MicroBatcher[StoredReply, _PutResult] = MicroBatcher(
            self._put_all, max_items=MAX_BATCH, max_wait=0, max_concurrent=MAX_CONCURRENT_CALLS
        )

    async def get(self, key: ReplyKey) -> tuple[StoredReply, ...]:
        """The replies to all attempts so far, the first one first."""
        return await self._gets.submit(key)

    async def put(self, reply: StoredReply) -> StoredReply:
        """Keep a reply; gives the one that is kept, which is an earlier one where there was one.

        Raises `ReplyNotStorableError` where this very reply cannot be stored.
        """
        kept = await self._puts.submit(reply)
        if isinstance(kept, ReplyNotStorableError):
            raise kept
        return kept

    async def close(self) -> None:
        await self._gets.close()
        await self._puts.close()

    async def _get_all(self, keys: Sequence[ReplyKey]) -> list[tuple[StoredReply, ...]]:
        stored = await self._replies.get_many(keys)
        return [stored.get(key, ()) for key in keys]

    async def _put_all(self, replies: Sequence[StoredReply]) -> list[_PutResult]:
        """Keep replies together; where that fails one by one, so that one that cannot be stored spoils no other."""
        try:
            return list(await self._replies.put_many(replies))
        except ReplyNotStorableError as error:
            if len(replies) == 1:
                return [error]
            return [kept for reply in replies for kept in await self._put_all([reply])]
