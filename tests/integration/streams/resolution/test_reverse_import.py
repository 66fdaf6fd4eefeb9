"""A conversation that is imported backwards comes to the same active facts as one that is told in its order."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline

pytestmark = pytest.mark.postgres

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
CONVERSATIONS = (
    ("I live in Rome now.", "I relocated to Bonn.", "I live in Oslo now."),
    ("I no longer live in Rome.", "I live in Rome now.", "I relocated to Bonn."),
    ("I started working at Bosch.", "I work at Acme now as a nurse."),
    ("I work at Acme now as a nurse.", "I work at Acme now."),
    ("I started working at Bosch.", "I work at Acme now.", "I left Acme."),
    ("I work at Acme now.", "I left Acme.", "I work at Acme now."),
    ("I work at Acme now as a nurse.", "I started working at Bosch.", "I work at Acme now."),
    ("I left Acme.", "I work at Acme now.", "I started working at Bosch.", "I no longer work at Bosch."),
    ("I like jazz.", "I no longer like jazz.", "I like jazz.", "I hate jazz."),
    ("I have a dog.", "I have a dog called Rex.", "My dog is called Rex.", "I have two kids.", "I have three kids."),
    ("My rent is 900 euros.", "I drive a Volvo.", "My rent is 950 euros now.", "I sold my Volvo.", "I drive a Volvo."),
    ("I smoke.", "My brother Tom lives in Rome.", "I quit smoking.", "My brother Tom moved to Oslo.", "I smoke."),
)
"""What changes and what ends; what corrects is held back until it is said twice, and so depends on the order."""


async def active_texts(pipeline: InProcessPipeline, statements: Sequence[tuple[int, str]], number: int) -> set[str]:
    """The texts of the active facts after statements that were said on these days, in a scope of their own."""
    scope = Scope(user_id=f"user-{number}")
    for offset, (day, text) in enumerate(statements):
        turn = Turn(
            turn_id=f"t{day}",
            scope=scope,
            messages=(Message(role="user", content=text),),
            occurred_at=START + timedelta(days=day),
            speaker="Ana",
        )
        now = START + timedelta(days=100, seconds=offset)
        await pipeline.process_turn(turn, partition=number, offset=offset, now=now)
    async with pipeline.pool.connection() as connection:
        query = "SELECT text FROM facts WHERE user_id = %s AND status = 'active'"
        return {text for (text,) in await (await connection.execute(query, [scope.user_id])).fetchall()}


async def told_in_both_orders(database: str, *conversations: Sequence[str]) -> list[tuple[set[str], set[str]]]:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:
        found = []
        for number, texts in enumerate(conversations):
            told = list(enumerate(texts))
            forwards = await active_texts(pipeline, told, 2 * number)
            found.append((forwards, await active_texts(pipeline, told[::-1], 2 * number + 1)))
        return found


async def test_backwards_comes_to_the_same_active_facts(database: str) -> None:
    found = await told_in_both_orders(database, *CONVERSATIONS)
    assert {texts: one for texts, one in zip(CONVERSATIONS, found, strict=True) if one[0] != one[1]} == {}
