"""The journal keeps what came in, admitted or refused, once per source."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.stores.turns import Journal, JournalEntry
from mnemolog.schemas.admission import Refusal, parse_turn
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.journal import JournalStage
from tests.support.builders.commits import START_TIME, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=2, application_name="test-journal") as pool:
        yield pool


def turn(turn_id: str = "t1", text: str = "I live in Bern.", **fields: Any) -> Turn:
    defaults: dict[str, Any] = {
        "turn_id": turn_id,
        "scope": Scope(user_id="alice"),
        "messages": (Message(role="user", content=text),),
        "occurred_at": START_TIME,
    }
    return Turn(**defaults | fields)


def entry(value: bytes, offset: int = 0) -> JournalEntry:
    position = f"conversation_turns/2/{offset}"
    return JournalEntry(
        parsed=parse_turn(value, position=position),
        topic="conversation_turns",
        partition=2,
        offset=offset,
        published_at=day(1),
        value=value,
    )


async def rows(pool: Pool, columns: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as connection:
        query = f"SELECT {columns} FROM turn_journal ORDER BY log_offset"  # noqa: S608 -- a list of columns
        return await (await connection.execute(query.encode())).fetchall()


async def test_a_turn_is_kept_whole(pool: Pool) -> None:
    given = turn(metadata={"big": 2**62, "text": "\\u0000 and 日本"}, recalled=("Alice has a dog.",), infer=False)
    await Journal(pool).record([entry(given.to_bytes(), offset=7)])
    ((body, *columns),) = await rows(
        pool,
        "body, owner, source_id, tenant, user_id, agent_id, topic, partition, log_offset, published_at, occurred_at,"
        " infer, refusal",
    )
    assert Turn.model_validate(body) == given
    where = ["conversation_turns", 2, 7, day(1), START_TIME]
    assert columns == ["default/alice", "t1", "default", "alice", "", *where, False, None]


async def test_a_second_delivery_changes_nothing(pool: Pool) -> None:
    journal = Journal(pool)
    await journal.record([entry(turn(text="first").to_bytes())])
    await journal.record([entry(turn(text="second").to_bytes(), offset=1), entry(turn("t2").to_bytes(), offset=2)])
    assert await rows(pool, "source_id, body->'messages'->0->>'content'") == [
        ("t1", "first"),
        ("t2", "I live in Bern."),
    ]


async def test_the_first_of_equal_sources_in_a_batch_is_kept(pool: Pool) -> None:
    records = [entry(turn(text=str(offset)).to_bytes(), offset=offset) for offset in (0, 1)]
    await Journal(pool).record(records)
    assert await rows(pool, "log_offset") == [(0,)]


@pytest.mark.parametrize(("outcome", "kept"), [("failed", "second"), ("no_facts", "first")])
async def test_a_turn_that_is_published_again_after_a_failure_is_kept_as_it_comes_then(
    db: ProjectedDatabase, outcome: Any, kept: str
) -> None:
    journal = Journal(db.pool)
    first, second = entry(turn(text="first").to_bytes()), entry(turn(text="second").to_bytes(), offset=9)
    await journal.record([first])
    await db.apply(commit("t1", outcome=outcome, reason="model", at=day(1)))
    await journal.record([replace(second, published_at=day(2))])
    await journal.record([first])  # a redelivery of the first one
    assert await rows(db.pool, "body->'messages'->0->>'content', log_offset") == [(kept, first.offset)]


REFUSED = {
    b"\xff\x00 no JSON": ("not_a_record", None),
    b'{"turn_id": "t1"}': ("invalid_record", {"turn_id": "t1"}),
    b'[1e999, "x"]': ("not_a_record", None),
    b'["x"]': ("not_a_record", ["x"]),
    b'{"turn_id": "\\u0000"}': ("invalid_record", None),
    b"": ("not_a_record", None),
}


@pytest.mark.parametrize("value", REFUSED)
async def test_a_refused_record_is_kept_under_its_position(pool: Pool, value: bytes) -> None:
    await Journal(pool).record([entry(value, offset=3)])
    ((owner, source_id, reason, detail, body),) = await rows(pool, "owner, source_id, refusal, detail, body")
    assert (owner, source_id) == ("conversation_turns/2/3", "conversation_turns/2/3")
    assert detail
    assert (reason, body) == REFUSED[value]


async def test_a_refused_turn_is_kept_under_its_own_name(pool: Pool) -> None:
    value = turn(text="  ").to_bytes()
    record = entry(value)
    assert isinstance(record.parsed, Refusal)
    await Journal(pool).record([record])
    assert await rows(pool, "owner, source_id, refusal") == [("default/alice", "t1", "empty")]


async def test_a_body_that_the_table_cannot_hold_spoils_no_other_turn(pool: Pool) -> None:
    async with pool.connection() as connection:
        await connection.execute(
            "CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.source_id = 't5' AND "
            "NEW.body IS NOT NULL THEN RAISE program_limit_exceeded; END IF; RETURN NEW; END $$"
        )
        await connection.execute(
            "CREATE TRIGGER refuses BEFORE INSERT ON turn_journal FOR EACH ROW EXECUTE FUNCTION refuses()"
        )
    await Journal(pool).record([entry(turn(f"t{number}").to_bytes(), offset=number) for number in range(9)])
    kept = await rows(pool, "source_id, body IS NULL")
    assert kept == [(f"t{number}", number == 5) for number in range(9)]


async def test_no_entries_are_fine(pool: Pool) -> None:
    await Journal(pool).record([])
    assert await rows(pool, "1") == []


async def test_a_turn_of_a_far_future_is_refused(pool: Pool) -> None:
    stage = JournalStage(Journal(pool), max_bytes=10_000)
    value = turn(occurred_at=day(30)).to_bytes()
    published_at = day(1).timestamp()
    record = KafkaRecord(topic="in", partition=0, offset=0, key=b"k", value=value, timestamp=published_at)
    await stage([record])
    assert await rows(pool, "source_id, refusal") == [("t1", "in_the_future")]
