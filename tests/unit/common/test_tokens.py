"""The estimate of tokens against what six vocabularies counted."""

import json
from typing import Any

import pytest

from mnemolog.common.tokens import estimate_tokens
from tests.support.paths import ROOT

SAMPLES: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests/support/cases/token_counts.jsonl").read_text().splitlines()
]
"""Texts, each with its tokens by `cl100k`, `o200k`, and the vocabularies of Llama 2 and 3, Mistral and Claude 2."""
KINDS = {sample["kind"] for sample in SAMPLES}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_estimate_is_never_below_any_vocabulary(kind: str) -> None:
    for sample in SAMPLES:
        if sample["kind"] == kind:
            assert estimate_tokens(sample["text"]) >= max(sample["tokens"].values()), sample["text"]


def test_the_samples_have_every_kind_of_text_that_a_page_promises() -> None:
    assert {"english docs", "german", "chinese", "emoji", "code python", "ids", "random lower"} <= KINDS


def test_english_is_estimated_within_twice_the_largest_count() -> None:
    english = [sample for sample in SAMPLES if sample["kind"] == "english docs"]
    counted = sum(max(sample["tokens"].values()) for sample in english)
    assert sum(estimate_tokens(sample["text"]) for sample in english) < 2 * counted
