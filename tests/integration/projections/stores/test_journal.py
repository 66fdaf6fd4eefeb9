"""The journal keeps what came in, admitted or refused, once per source; and what was said before a turn."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.stores.turns import ConversationRequest, Journal, JournalEntry
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.command import Delete, DeleteAll, Reject, Undo
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.journal import JournalStage
from tests.support.builders.commits import ALICE, BOB, START_TIME, command_commit, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TEXT = "body->'messages'->0->>'content'"


def said(turn_id: str, *messages: str | Message, at: float = 0.0, scope: Scope = ALICE, **fields: Any) -> Turn:
    own = [Message(role="user", content=one) if isinstance(one, str) else one for one in messages]
    return Turn(turn_id=turn_id, scope=scope, messages=tuple(own), occurred_at=day(at), **fields)


def entry(value: bytes, offset: int = 0) -> JournalEntry:
    return JournalEntry(
        parsed=parse_turn(value, position=f"conversation_turns/2/{offset}"),
        topic="conversation_turns",
        partition=2,
        offset=offset,
        published_at=day(1),
        value=value,
    )


async def rows(db: ProjectedDatabase, columns: str) -> list[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM turn_journal ORDER BY log_offset"  # noqa: S608 -- a list of columns
    return await (await db.conn.execute(query.encode())).fetchall()


async def test_a_turn_is_kept_whole(db: ProjectedDatabase) -> None:
    await Journal(db.pool).record([])
    given = said("t1", "Hi.", metadata={"big": 2**62, "text": "\\u0000 and 日本"}, recalled=("A dog.",), infer=False)
    await Journal(db.pool).record([entry(given.to_bytes(), offset=7)])
    scope = "owner, source_id, tenant, user_id, agent_id"
    ((body, *columns),) = await rows(
        db, f"body, {scope}, topic, partition, log_offset, published_at, occurred_at, infer, refusal"
    )
    assert Turn.model_validate(body) == given
    where = ["conversation_turns", 2, 7, day(1), START_TIME]
    assert columns == ["default/alice", "t1", "default", "alice", "", *where, False, None]


async def test_the_first_of_equal_sources_is_kept_in_a_batch_and_after_it(db: ProjectedDatabase) -> None:
    journal = Journal(db.pool)
    await journal.record([entry(said("t1", text).to_bytes(), offset) for offset, text in enumerate(("first", "other"))])
    await journal.record([entry(said("t1", "second").to_bytes(), 2), entry(said("t2", "Hi.").to_bytes(), 3)])
    assert await rows(db, f"source_id, log_offset, {TEXT}") == [("t1", 0, "first"), ("t2", 3, "Hi.")]


async def test_a_turn_that_is_published_again_after_a_failure_is_kept_as_it_comes_then(db: ProjectedDatabase) -> None:
    journal = Journal(db.pool)
    first = [entry(said(turn_id, "first").to_bytes(), offset) for offset, turn_id in enumerate(("failed", "done"))]
    await journal.record(first)
    await db.apply(commit("failed", outcome="failed", reason="model", at=day(1)), commit("done", at=day(1)))
    for one in ("failed", "done"):
        await journal.record([replace(entry(said(one, "second").to_bytes(), 9), published_at=day(2))])
    await journal.record(first)  # a redelivery
    assert await rows(db, f"source_id, log_offset, {TEXT}") == [("failed", 0, "second"), ("done", 1, "first")]


REFUSED: list[tuple[bytes, str, Any]] = [
    (b"\xff\x00 no JSON", "not_a_record", None),
    (b'{"turn_id": "t1"}', "invalid_record", {"turn_id": "t1"}),
    (b'[1e999, "x"]', "not_a_record", None),
    (b'["x"]', "not_a_record", ["x"]),
    (b'{"turn_id": "\\u0000"}', "invalid_record", None),
    (b"", "not_a_record", None),
]


async def test_a_refused_record_is_kept_under_its_position_or_its_own_name(db: ProjectedDatabase) -> None:
    await Journal(db.pool).record([entry(value, offset) for offset, (value, *_) in enumerate(REFUSED)])
    await Journal(db.pool).record([entry(said("t1", "  ").to_bytes(), len(REFUSED))])
    positions = [f"conversation_turns/2/{offset}" for offset in range(len(REFUSED))]
    *refused, blank = await rows(db, "owner, source_id, refusal, detail <> '', body")
    assert refused == [(at, at, reason, True, body) for at, (_, reason, body) in zip(positions, REFUSED, strict=True)]
    assert blank[:4] == ("default/alice", "t1", "empty", True)


async def test_a_body_that_the_table_cannot_hold_spoils_no_other_turn(db: ProjectedDatabase) -> None:
    await db.conn.execute(
        "CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.source_id = 't5' AND "
        "NEW.body IS NOT NULL THEN RAISE program_limit_exceeded; END IF; RETURN NEW; END $$"
    )
    await db.conn.execute(
        "CREATE TRIGGER refuses BEFORE INSERT ON turn_journal FOR EACH ROW EXECUTE FUNCTION refuses()"
    )
    await Journal(db.pool).record([entry(said(f"t{number}", "Hi.").to_bytes(), number) for number in range(9)])
    assert await rows(db, "source_id, body IS NULL") == [(f"t{number}", number == 5) for number in range(9)]


async def test_a_turn_of_a_far_future_is_refused(db: ProjectedDatabase) -> None:
    value, published_at = said("t1", "Hi.", at=30).to_bytes(), day(1).timestamp()
    record = KafkaRecord(topic="in", partition=0, offset=0, key=b"k", value=value, timestamp=published_at)
    await JournalStage(Journal(db.pool), max_bytes=10_000)([record])
    assert await rows(db, "source_id, refusal") == [("t1", "in_the_future")]


async def keep(db: ProjectedDatabase, *parsed: Turn | Refusal) -> None:
    """As the stage writes them, published a second after one another."""
    await Journal(db.pool).record(
        [
            JournalEntry(
                parsed=one,
                topic="conversation_turns",
                partition=0,
                offset=offset,
                published_at=day(0) + timedelta(seconds=offset),
            )
            for offset, one in enumerate(parsed)
        ]
    )


def before(**fields: Any) -> ConversationRequest:
    defaults: dict[str, Any] = {
        "scope": ALICE,
        "turn_id": "now",
        "published_at": day(1),
        "offset": 100,
        "said_at": day(1),
        "age": timedelta(days=2),
        "messages": 10,
    }
    return ConversationRequest(**defaults | fields)


async def contents(db: ProjectedDatabase, *requests: ConversationRequest) -> Sequence[list[str]]:
    found = await Journal(db.pool).messages_before(requests)
    return [[message.content for message in messages] for messages in found]


async def test_the_last_messages_of_user_and_assistant_come_in_their_order(db: ProjectedDatabase) -> None:
    question = Message(role="assistant", content="Where do you live?")
    others = [Message(role="system", content="Be kind."), Message(role="tool", content="3")]
    await keep(db, said("a", "Hello.", speaker="Ana"), said("b", *others, "One.", question))
    assert await contents(db, before(), before(messages=2)) == [
        ["Hello.", "One.", "Where do you live?"],
        ["One.", "Where do you live?"],
    ]
    ((first, *_),) = await Journal(db.pool).messages_before([before()])
    assert (first.turn_id, first.role, first.name, first.at) == ("a", "user", "Ana", day(0))


async def test_each_request_gets_its_own_scope_and_run_alone(db: ProjectedDatabase) -> None:
    run = ALICE.model_copy(update={"run_id": "r1"})
    await keep(db, said("a", "Mine."), said("b", "Bob's.", scope=BOB), said("c", "Of a run.", scope=run))
    requests = [before(scope=BOB), before(), before(scope=run)]
    assert await contents(db, *requests) == [["Bob's."], ["Mine."], ["Of a run."]]


async def test_what_is_too_old_or_said_or_published_later_is_not_before(db: ProjectedDatabase) -> None:
    turns = [said("old", "Old.", at=-2), said("a", "A.", at=0.5), said("now", "Now."), said("later", "Later.", at=1.1)]
    await keep(db, *turns)
    second = day(0) + timedelta(seconds=1)
    requests = [before(), before(published_at=day(0), offset=1), before(published_at=second, offset=2)]
    assert await contents(db, *requests) == [["A."], [], ["A."]]


async def test_a_refused_record_is_not_shown_and_of_a_long_message_the_end_is(db: ProjectedDatabase) -> None:
    refused = Refusal(source_id="r", scope=ALICE, reason="not_a_record", detail="no JSON")
    await keep(db, refused, said("a", "x" * 5000 + " end"))
    (((content),),) = await contents(db, before())
    assert (len(content), content[-4:]) == (4000, " end")


async def test_nothing_before_a_deletion_is_shown(db: ProjectedDatabase) -> None:
    """Whether the deletion is in the tables, or only the worker knows of it (`since`)."""
    fact = UUID(int=1)
    orders: list[Any] = [Delete(fact_ids=(fact,)), DeleteAll(), Reject(fact_ids=(fact,)), Undo(source_id="t1")]
    scopes = [Scope(user_id=order.kind) for order in orders]
    await keep(db, *(said("a", "Before.", scope=scope) for scope in scopes), said("b", "Mine."), said("c", "After."))
    requests = [before(scope=scope) for scope in scopes]
    assert await contents(db, *requests) == [["Before."]] * len(orders)
    for order, scope in zip(orders, scopes, strict=True):
        await db.apply(command_commit("c", order, at=day(0.5), scope=scope))
    assert await contents(db, *requests) == [[]] * len(orders)
    first = day(0) + timedelta(seconds=len(orders))
    assert await contents(db, before(since=first), before(since=first + timedelta(seconds=1))) == [["After."], []]
