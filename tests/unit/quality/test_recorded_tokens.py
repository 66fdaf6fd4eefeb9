"""What the prompts cost, by the usage that a server told with each recorded reply."""

import json

import pytest

from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION
from tests.quality.cases import SPLITS
from tests.quality.model_sources import CHAT
from tests.quality.recordings import FOLDER

TOKENS_OF_A_FACT = 60
TOKENS_OF_A_PROMPT = 900


@pytest.mark.parametrize("split", SPLITS)
def test_a_fact_takes_few_tokens_of_a_reply_and_a_question_few_of_a_prompt(split: str) -> None:
    """No case's extraction is shown known facts. A fact's tokens are its share of the characters of the replies."""
    recorded = [json.loads(line) for line in (FOLDER / split / CHAT).read_bytes().splitlines()]
    asked = [one for one in recorded if one["prompt"] == PROMPT_VERSION]
    assert len(asked) > 100
    assert max(one["usage"]["input_tokens"] for one in asked) <= TOKENS_OF_A_PROMPT
    said = [one for one in asked if one["text"].rstrip().endswith("}")]
    facts = [json.dumps(fact, ensure_ascii=False) for one in said for fact in json.loads(one["text"])["facts"]]
    token = sum(one["usage"]["output_tokens"] for one in said) / sum(len(one["text"]) for one in said)
    assert sum(map(len, facts)) * token / len(facts) <= TOKENS_OF_A_FACT
