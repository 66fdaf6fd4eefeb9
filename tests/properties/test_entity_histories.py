"""Whatever is said, decided and undone, readers see the entities that the oracle works out, and so does a rebuild."""

from random import Random

import pytest

from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.rebuild.rebuild import rebuild
from tests.properties.entity_histories import History
from tests.support.harnesses.named_people import named_people

pytestmark = pytest.mark.postgres
STEPS = 40


@pytest.mark.parametrize("seed", range(8))
async def test_entities_are_what_the_oracle_says(database: str, seed: int) -> None:
    async with named_people(database) as people:
        history = History(people, Random(seed))
        for _ in range(STEPS):
            await history.grow()
            assert await history.read() == history.expected(), history.steps
        report = await rebuild(database, TableLogSource(people.pipeline.pool), verify_only=True)
        assert report.equal
