"""The stage `project`: what stops one partition of a batch leaves the others going."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from mnemolog.projections.errors import LogChangedError, LogGapError
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.project import ProjectStage
from tests.support.builders.commits import BOB, commit
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


def record(partition: int, offset: int, value: bytes) -> KafkaRecord:
    return KafkaRecord(
        topic="memory_events", partition=partition, offset=offset, key=b"k", value=value, headers=(), timestamp=0.0
    )


def newer(one: KafkaRecord) -> KafkaRecord:
    return replace(one, value=(one.value or b"").replace(b'"schema_version":', b'"schema_version":9'))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lambda records: [records[0], replace(records[1], offset=2)], LogGapError),
        (lambda records: [replace(records[1], offset=0)], LogChangedError),
        (lambda records: [records[0], newer(records[1])], UnsupportedVersionError),
    ],
)
async def test_what_stops_one_partition_leaves_the_others_going(
    db: ProjectedDatabase, fault: Callable[[Sequence[KafkaRecord]], Sequence[KafkaRecord]], error: type[Exception]
) -> None:
    stopped = [record(0, offset, commit(f"a{offset}").to_bytes()) for offset in range(2)]
    sound = [record(5, offset, commit(f"b{offset}", scope=BOB).to_bytes()) for offset in range(2)]
    stage = ProjectStage(db.projector)
    await stage(stopped[:1])
    with pytest.raises(error):
        await stage([*fault(stopped), *sound])
    assert await db.projector.next_offsets() == {0: 1, 5: 2}
