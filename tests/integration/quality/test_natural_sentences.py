"""What people say in their own way: nearly all of it is kept, nearly nothing is wrong, and nothing is overwritten."""

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.quality.natural_sentences import FOLDER, SPLITS, load, run_people, score
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


@pytest.mark.postgres
@pytest.mark.parametrize("split", SPLITS)
async def test_the_rates_are_within_their_limits(database: str, split: str) -> None:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        made = score(await run_people(running, load(FOLDER / split)))
    assert made.complaints() == [], "\n".join(made.failures)


@pytest.mark.postgres
async def test_what_fails_is_named(database: str) -> None:
    """Labels that are turned round: each of them is a failure of its kind."""
    wrong = [sentence.model_copy(update={"keep": not sentence.keep, "slots": {}, "ends": ()}) for sentence in load()]
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        made = score(await run_people(running, wrong))
    assert (made.kept.count, made.kept.of) == (0, 2)
    assert made.wrong_facts.rate == 1
    assert (made.wrong_overwrites.count, made.wrong_overwrites.of) == (
        2,
        2,
    )  # the home, and the sentence that states it
    kinds = [line.split()[0] for line in made.failures]
    assert {"not", "wrong"} == set(kinds)
    assert len(made.complaints()) == 3
