"""What the prompts cost, by the usage that a server told with each recorded reply."""

import pytest

from tests.quality.cases import SPLITS, Split
from tests.quality.model_page import ExtractionTokens

TOKENS_OF_A_FACT = 50
TOKENS_OF_A_PROMPT = 900


@pytest.mark.parametrize("split", SPLITS)
def test_a_fact_takes_few_tokens_of_a_reply_and_a_question_few_of_a_prompt(split: Split) -> None:
    tokens = ExtractionTokens.of(split)
    assert tokens.replies > 100
    assert tokens.prompt <= TOKENS_OF_A_PROMPT
    assert tokens.framed <= TOKENS_OF_A_FACT
