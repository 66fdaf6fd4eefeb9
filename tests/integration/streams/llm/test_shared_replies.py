"""Replies of many turns in one transaction: together where it can be, alone where one of them spoils it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest
import pytest_asyncio

from mnemolog.projections.db.pools import open_pool
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.streams.llm.batched_reply_store import BatchedReplyStore
from tests.integration.projections.stores.test_replies import REPLY

pytestmark = pytest.mark.postgres

BEYOND_INTEGER = 2**40


@pytest_asyncio.fixture
async def batched_replies(database: str) -> AsyncIterator[BatchedReplyStore]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-shared", autocommit=True) as pool:
        replies = BatchedReplyStore(ReplyStore(pool))
        yield replies
        await replies.close()


async def test_each_turn_gets_its_own_replies(batched_replies: BatchedReplyStore) -> None:
    many = [replace(REPLY, source_id=f"t{number}", reply=f"reply {number}") for number in range(600)]
    assert await asyncio.gather(*map(batched_replies.put, many)) == many
    again = replace(many[3], attempt=1)
    await batched_replies.put(again)
    found = await asyncio.gather(*(batched_replies.get(reply.key) for reply in many))
    assert found == [(reply, again) if reply is many[3] else (reply,) for reply in many]


async def test_a_reply_that_cannot_be_stored_spoils_no_other(batched_replies: BatchedReplyStore) -> None:
    good = [replace(REPLY, source_id=f"t{number}") for number in range(8)]
    bad = replace(REPLY, source_id="bad", input_tokens=BEYOND_INTEGER)
    kept = await asyncio.gather(*map(batched_replies.put, [*good[:4], bad, *good[4:]]), return_exceptions=True)
    assert isinstance(kept.pop(4), psycopg.DataError)
    assert kept == good


async def test_the_first_reply_stays(batched_replies: BatchedReplyStore) -> None:
    first, second = await asyncio.gather(batched_replies.put(REPLY), batched_replies.put(replace(REPLY, reply="other")))
    assert first == second
