"""What a stage hands on in memory is what the next one would have read from the topic between them."""

from dataclasses import replace

import pytest

from mnemolog.projections.database import open_pool
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.base import Versioned
from mnemolog.schemas.command import Command, Edit, Update
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.worker import utc_now
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.extract import parse_source
from mnemolog.streams.stages.processor import envelope_reader
from tests.support.harnesses.worker_harness import MONDAY, publish_records, running_worker, user_turn, wait_for_outcomes

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

EARLIER = (
    user_turn("t1", "I live in Bern and my sister is called Ida.", "I am allergic to peanuts."),
    user_turn("t2", "I like green tea.", infer=False),
)
EDIT = Edit(fact_id="6f0e8f2e-6a5c-5f0c-8b5e-0e6d0c3f9a11", text="I live in Basel.")  # type: ignore[arg-type] # parsed
SOURCES: tuple[Turn | Command, ...] = (
    user_turn("t3", "I moved to Rome last week, and my sister Ida is 31.", "I like black tea now."),
    user_turn("t4", "I like green tea.", infer=False, metadata={"app": {"n": 1.5}}),
    user_turn("t5", "Hello!"),
    Command(command_id="c1", scope=EARLIER[0].scope, issued_at=MONDAY, actor="support", order=Update(edits=(EDIT,))),
)


def assert_equal_on_the_wire(kind: type[Versioned], output: Versioned) -> None:
    assert isinstance(output, kind)
    assert kind.from_bytes(output.to_bytes()) == output


async def test_each_output_is_equal_to_what_is_read_from_its_bytes(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_records(settings, *EARLIER)
        await wait_for_outcomes(database, len(EARLIER))
    async with open_pool(database, min_size=1, max_size=2, application_name="test") as pool:
        models = StageModels(settings, ReplyStore(pool))
        stages, found = DecisionStages(Stores.of_pool(pool, settings), models, settings, clock=utc_now), 0
        for offset, source in enumerate(SOURCES):
            record = KafkaRecord(
                topic="t", partition=0, offset=offset, key=source.scope.key, value=source.to_bytes(), timestamp=1.8e9
            )
            extracted = await stages.extract(parse_source(record, max_bytes=100_000), record)
            assert_equal_on_the_wire(ExtractedFacts, extracted)
            embedded = await stages.embed(envelope_reader(ExtractedFacts)(replace(record, content=extracted)), record)
            assert_equal_on_the_wire(EmbeddedFacts, embedded)
            matched = await stages.match(envelope_reader(EmbeddedFacts)(replace(record, content=embedded)), record)
            assert_equal_on_the_wire(MatchedFacts, matched)
            found += sum(len(fact.candidates) for fact in matched.facts)
        await models.close()
    assert found
