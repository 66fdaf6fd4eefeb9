"""Replies of models: the first one stays, whoever asks again gets it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.stored import ReplyKey, SharedCall, StoredReply
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

REPLY = StoredReply(
    owner="default/alice",
    source_id="t1",
    stage="extract",
    version="extract-1/model",
    attempt=0,
    reply='{"facts": []}',
    model="model",
    input_tokens=120,
    output_tokens=7,
    cached_tokens=64,
    milliseconds=312.5,
)


@pytest.fixture
def replies(db: ProjectedDatabase) -> ReplyStore:
    return ReplyStore(db.pool)


async def known(replies: ReplyStore, key: ReplyKey = REPLY.key) -> tuple[StoredReply, ...]:
    return (await replies.get_many([key])).get(key, ())


async def put(replies: ReplyStore, reply: StoredReply) -> StoredReply:
    (kept,) = await replies.put_many([reply])
    return kept


async def test_the_first_reply_stays_and_replies_come_back_by_attempt(replies: ReplyStore) -> None:
    assert await replies.get_many([REPLY.key]) == {}
    assert await replies.get_many([]) == {}
    second = replace(REPLY, attempt=1, reply="again")
    assert await put(replies, second) == second
    assert await put(replies, REPLY) == REPLY
    assert await put(replies, replace(REPLY, reply="other", input_tokens=1)) == REPLY
    assert await known(replies) == (REPLY, second)


async def test_a_part_of_a_shared_call_comes_back_with_what_is_known_of_the_call(replies: ReplyStore) -> None:
    call = SharedCall(turns=3, request="abc", is_counted=True, known=(UUID(int=7),))
    part = replace(REPLY, shared=call.model_dump_json())
    alone = replace(REPLY, source_id="t2")
    await replies.put_many([part, alone])
    (kept,) = await known(replies)
    assert kept.shared is not None
    assert SharedCall.model_validate_json(kept.shared) == call
    assert await known(replies, alone.key) == (alone,)
    (earlier,) = await replies.put_many([replace(REPLY, reply="later")])
    assert (earlier.reply, earlier.shared) == (part.reply, kept.shared)


async def test_the_replies_to_a_source_can_be_forgotten(replies: ReplyStore) -> None:
    others = [replace(REPLY, owner="other"), replace(REPLY, source_id="other")]
    resolving = replace(REPLY, stage="resolve")
    await replies.put_many([*others, REPLY, replace(REPLY, attempt=1), resolving])
    await replies.forget(REPLY.owner, REPLY.source_id)
    keys = [REPLY.key, resolving.key, *(other.key for other in others)]
    assert await replies.get_many(keys) == {other.key: (other,) for other in others}


async def test_of_two_at_once_both_get_the_same(replies: ReplyStore) -> None:
    kept = await asyncio.gather(*(put(replies, replace(REPLY, reply=f"reply {number}")) for number in range(8)))
    assert len(set(kept)) == 1


async def test_stage_version_source_and_owner_are_told_apart(replies: ReplyStore) -> None:
    given: list[dict[str, Any]] = [{name: "other"} for name in ("owner", "source_id", "stage", "version")]
    others = [replace(REPLY, **fields) for fields in given]
    await replies.put_many([REPLY, *others])
    assert await known(replies) == (REPLY,)


async def test_many_come_back_in_the_order_given(replies: ReplyStore) -> None:
    await put(replies, replace(REPLY, source_id="t3", reply="earlier"))
    many = [replace(REPLY, source_id=f"t{number}") for number in (5, 3, 4)]
    kept = await replies.put_many(many)
    assert [(reply.source_id, reply.reply) for reply in kept] == [
        ("t5", REPLY.reply),
        ("t3", "earlier"),
        ("t4", REPLY.reply),
    ]
    found = await replies.get_many([many[0].key, REPLY.key])
    assert found == {many[0].key: (many[0],)}


async def test_any_text_can_be_kept(replies: ReplyStore) -> None:
    texts = ["", "a\x00b", "half a pair \ud83d", "日本語 🙂", "x" * 1_000_000]
    kept = await replies.put_many([replace(REPLY, source_id=str(n), reply=text) for n, text in enumerate(texts)])
    assert [one.reply for one in kept] == [text.replace("\x00", "\ufffd").replace("\ud83d", "?") for text in texts]
    assert await replies.get_many([one.key for one in kept]) == {one.key: (one,) for one in kept}


async def test_old_replies_are_forgotten(replies: ReplyStore, db: ProjectedDatabase) -> None:
    other = replace(REPLY, source_id="t2")
    await replies.put_many([REPLY, other])
    ((created_at,),) = await db.rows(
        "UPDATE model_replies SET created_at = created_at - interval '8 days' WHERE source_id = 't1'"
        " RETURNING created_at"
    )
    assert await replies.purge(created_at + timedelta(days=1)) == 1
    assert await replies.get_many([REPLY.key, other.key]) == {other.key: (other,)}
