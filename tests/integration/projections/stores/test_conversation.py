"""What was said before a turn, read from a real journal."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.stores.turns import ConversationRequest, Journal, JournalEntry
from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Delete, DeleteAll, Reject, Undo
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.commits import ALICE, BOB, command_commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
FACT = UUID(int=1)


def said(turn_id: str, *messages: str | Message, at: float = 0.0, scope: Scope = ALICE, **fields: Any) -> Turn:
    own = [Message(role="user", content=one) if isinstance(one, str) else one for one in messages]
    return Turn(turn_id=turn_id, scope=scope, messages=tuple(own), occurred_at=day(at), **fields)


async def journal(db: ProjectedDatabase, *parsed: Turn | Refusal, published_at: float = 0.0) -> None:
    """As the stage writes them, a second after one another."""
    await Journal(db.pool).record(
        [
            JournalEntry(
                parsed=one,
                topic="conversation_turns",
                partition=0,
                offset=offset,
                published_at=day(published_at) + timedelta(seconds=offset),
            )
            for offset, one in enumerate(parsed)
        ]
    )


def before(turn_id: str = "now", **fields: Any) -> ConversationRequest:
    defaults: dict[str, Any] = {
        "scope": ALICE,
        "published_at": day(1),
        "offset": 100,
        "said_at": day(1),
        "age": timedelta(days=2),
        "messages": 10,
    }
    return ConversationRequest(turn_id=turn_id, **defaults | fields)


async def contents(db: ProjectedDatabase, *requests: ConversationRequest) -> Sequence[list[str]]:
    found = await Journal(db.pool).messages_before(requests)
    return [[message.content for message in messages] for messages in found]


async def test_the_last_messages_of_user_and_assistant_come_in_their_order(db: ProjectedDatabase) -> None:
    question = Message(role="assistant", content="Where do you live?")
    others = [Message(role="system", content="Be kind."), Message(role="tool", content="3")]
    await journal(db, said("a", "Hello.", speaker="Ana"), said("b", *others, "One.", question))
    assert await contents(db, before()) == [["Hello.", "One.", "Where do you live?"]]
    assert await contents(db, before(messages=2)) == [["One.", "Where do you live?"]]
    ((first, *_),) = await Journal(db.pool).messages_before([before()])
    assert (first.turn_id, first.role, first.name, first.at) == ("a", "user", "Ana", day(0))


async def test_each_request_gets_its_own_scope_and_run_alone(db: ProjectedDatabase) -> None:
    run = ALICE.model_copy(update={"run_id": "r1"})
    await journal(db, said("a", "Mine."), said("b", "Bob's.", scope=BOB), said("c", "Of a run.", scope=run))
    requests = [before(scope=BOB), before(), before(scope=run)]
    assert await contents(db, *requests) == [["Bob's."], ["Mine."], ["Of a run."]]


async def test_what_is_too_old_or_said_or_published_later_is_not_before(db: ProjectedDatabase) -> None:
    turns = [said("old", "Old.", at=-2), said("a", "A.", at=0.5), said("now", "Now."), said("later", "Later.", at=1.1)]
    await journal(db, *turns)
    assert await contents(db, before()) == [["A."]]
    assert await contents(db, before(published_at=day(0), offset=1)) == [[]]
    assert await contents(db, before(published_at=day(0) + timedelta(seconds=1), offset=2)) == [["A."]]


async def test_a_refused_record_is_not_shown_and_of_a_long_message_the_end_is(db: ProjectedDatabase) -> None:
    refused = Refusal(source_id="r", scope=ALICE, reason="not_a_record", detail="no JSON")
    await journal(db, refused, said("a", "x" * 5000 + " end"))
    (((content),),) = await contents(db, before())
    assert (len(content), content[-4:]) == (4000, " end")


@pytest.mark.parametrize(
    "order", [Delete(fact_ids=(FACT,)), DeleteAll(), Reject(fact_ids=(FACT,)), Undo(source_id="t1")]
)
async def test_nothing_before_a_deletion_is_shown(db: ProjectedDatabase, order: Any) -> None:
    await journal(db, said("a", "Before."))
    assert await contents(db, before()) == [["Before."]]
    await db.apply(command_commit("c", order, at=day(0.5)))
    assert await contents(db, before()) == [[]]


async def test_a_deletion_that_only_the_worker_knows_of_counts_too(db: ProjectedDatabase) -> None:
    await journal(db, said("a", "Before."), said("b", "After."))
    assert await contents(db, before(since=day(0))) == [["After."]]
    assert await contents(db, replace(before(), since=day(0) + timedelta(seconds=1))) == [[]]
