"""Turns that follow each other at once, over a real worker: each is read with those before it."""

import pytest

from mnemolog.schemas.command import Command, DeleteAll
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    MONDAY,
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
)

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def question(user: str) -> Turn:
    message = Message(role="assistant", content="Where do you live?")
    return Turn(turn_id=f"{user}/asked", scope=Scope(user_id=user), messages=(message,), occurred_at=MONDAY)


def deletion(user: str) -> Command:
    return Command(command_id=f"{user}/delete", scope=Scope(user_id=user), issued_at=MONDAY, order=DeleteAll())


def answer(user: str) -> Turn:
    return user_turn(f"{user}/answer", "Berlin.", user=user)


async def texts(database: str) -> dict[str, str]:
    """The fact of each user."""
    return {row["user_id"]: row["text"] for row in await query_rows(database, "SELECT user_id, text FROM facts")}


async def test_a_worker_that_begins_knows_the_conversation_and_a_deletion_ends_it(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        await publish_records(settings, *map(question, ("user0", "user1", "user2")), deletion("user1"))
        await wait_for_outcomes(database, 4)
    async with running_worker(settings):
        await publish_records(settings, answer("user0"), answer("user1"), deletion("user2"), answer("user2"))
        await wait_for_outcomes(database, 8)
    assert await texts(database) == {
        "user0": 'User0, asked "Where do you live?": Berlin.',
        "user1": "User1: Berlin.",
        "user2": "User2: Berlin.",
    }
