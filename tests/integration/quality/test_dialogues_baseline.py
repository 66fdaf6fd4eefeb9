"""The offline provider over the labelled dialogues: no case may be worse than it was."""

import pytest

from mnemolog.schemas.provenance import Provenance, Step
from mnemolog.streams.settings import StreamsSettings
from tests.quality.dialogue_cases import FAMILIES, load
from tests.quality.dialogue_scores import run_dialogues, score, worse
from tests.quality.model_sources import chosen_models
from tests.support.builders.commits import added, commit
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


@pytest.mark.postgres
async def test_no_case_is_worse_than_the_baseline(database: str) -> None:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        scores = await run_dialogues(running, load(), at_once=4)
    assert worse(scores) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_20_cases_and_more_half_of_them_for_tuning(family: str) -> None:
    splits = [case.split for case in load() if case.family == family]
    assert len(splits) >= 20
    assert splits.count("dev") == splits.count("test")


def test_what_is_missed_and_what_is_harmful_is_told() -> None:
    case = next(one for one in load() if one.id == "confirmation-01")
    cost = Provenance(steps=(Step(stage="extract", milliseconds=1, llm_calls=1, input_tokens=90),))
    right = score(case, commit("1", added("Ana is vegan.", subject="Ana"), provenance=cost))
    assert (right.right, right.llm_calls, right.input_tokens) == (True, 1, 90)
    wrong = score(case, commit("1", added("Ana is not vegan.", subject="Tom")))
    assert (wrong.missed, wrong.harmful) == (True, True)
