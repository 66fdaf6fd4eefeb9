"""Replies of many turns in one transaction: together where it can be, alone where one of them spoils it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest
import pytest_asyncio

from mnemolog.projections.pools import open_pool
from mnemolog.projections.replies import Replies
from mnemolog.streams.shared_replies import SharedReplies
from tests.integration.test_replies import REPLY

pytestmark = pytest.mark.postgres

BEYOND_INTEGER = 2**40


@pytest_asyncio.fixture
async def shared(database: str) -> AsyncIterator[SharedReplies]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-shared", autocommit=True) as pool:
        replies = SharedReplies(Replies(pool))
        yield replies
        await replies.close()


async def test_each_turn_gets_its_own_replies(shared: SharedReplies) -> None:
    many = [replace(REPLY, source_id=f"t{number}", reply=f"reply {number}") for number in range(600)]
    assert await asyncio.gather(*map(shared.put, many)) == many
    again = replace(many[3], attempt=1)
    await shared.put(again)
    found = await asyncio.gather(*(shared.get(reply.key) for reply in many))
    assert found == [(reply, again) if reply is many[3] else (reply,) for reply in many]


async def test_a_reply_that_cannot_be_stored_spoils_no_other(shared: SharedReplies) -> None:
    good = [replace(REPLY, source_id=f"t{number}") for number in range(8)]
    bad = replace(REPLY, source_id="bad", input_tokens=BEYOND_INTEGER)
    kept = await asyncio.gather(*map(shared.put, [*good[:4], bad, *good[4:]]), return_exceptions=True)
    assert isinstance(kept.pop(4), psycopg.DataError)
    assert kept == good


async def test_the_first_reply_stays(shared: SharedReplies) -> None:
    first, second = await asyncio.gather(shared.put(REPLY), shared.put(replace(REPLY, reply="other")))
    assert first == second
