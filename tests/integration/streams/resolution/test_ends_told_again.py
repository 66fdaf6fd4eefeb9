"""An event is not a sentence: an end in equal words ends what has begun since, by the offline rules too."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.support.harnesses.in_process_pipeline import in_process_pipeline

pytestmark = pytest.mark.postgres
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
DOG, HAMSTER = ("My dog died.", "My hamster died.")
ACME, ROME = ("I don't work at Acme anymore.", "I don't live in Rome anymore.")


@pytest.mark.parametrize(
    ("said", "ended", "holds"),
    [
        (("I have a dog called Rex.", DOG, "I have a dog called Max.", DOG), ["Rex", "Max"], []),
        (("I have a hamster called Pip.", HAMSTER, "I have a hamster called Pip.", HAMSTER), ["Pip", "Pip"], []),
        (("I work at Acme.", ACME, "I work at Acme again.", ACME), ["works at Acme", "works at Acme"], []),
        (("I live in Rome.", ROME, "I live in Rome again.", ROME), ["lives in Rome", "lives in Rome"], []),
        (("I have a dog called Rex.", DOG, DOG), ["Rex"], []),
        (("I have a dog called Rex.", DOG, "I have a cat called Max."), ["Rex"], ["Max"]),
    ],
)
async def test_an_end_in_equal_words_is_another_end(
    database: str, said: tuple[str, ...], ended: list[str], holds: list[str]
) -> None:
    settings, scope = StreamsSettings(provider="offline", postgres=database), Scope(user_id="sam")
    async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:
        for day, text in enumerate(said):
            at = START + timedelta(days=day)
            messages = (Message(role="user", content=text),)
            turn = Turn(turn_id=f"t{day}", scope=scope, messages=messages, occurred_at=at, speaker="Sam")
            await pipeline.process_turn(turn, partition=0, offset=day, now=at + timedelta(seconds=3))
        query = "SELECT text, true_to IS NOT NULL FROM facts WHERE action_hint <> 'retract' ORDER BY true_from"
        async with pipeline.pool.connection() as connection:
            found = await (await connection.execute(query)).fetchall()
    texts = {is_ended: [text for text, one in found if one == is_ended] for is_ended in (True, False)}
    for expected, is_ended in ((ended, True), (holds, False)):
        assert len(texts[is_ended]) == len(expected), found
        assert all(part in text for part, text in zip(expected, texts[is_ended], strict=True)), found
