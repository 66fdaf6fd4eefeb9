"""What the checks refuse is wrong, and what they let through is said: both sides, on labelled replies."""

import json
from typing import Any

import pytest

from mnemolog.streams.llm.extract_reply import parse_extraction
from tests.quality.recordings import FOLDER
from tests.quality.reply_checks import Refused, by_check, by_table, judged
from tests.support.builders.prompts import extraction, user

LEAST_RATIO = 9
"""Harmful replies that a check refuses for an honest one; one that refuses none may be rare."""


@pytest.mark.parametrize("found", by_check(), ids=lambda found: found.group)
def test_a_check_refuses_at_least_nine_harmful_replies_for_an_honest_one(found: Refused) -> None:
    assert found.harmful >= LEAST_RATIO * found.honest


def test_honest_merges_and_repetitions_pass_and_the_seeds_own() -> None:
    refused = [one.shown for one in judged() if one.table == "decisions" and one.is_honest and one.checks]
    assert len(refused) <= 5, refused  # of 100
    assert not [one for one in refused if "TypeScript" in one or "Located in Berlin" in one]


@pytest.mark.parametrize(
    ("table", "harmful", "honest"),
    [
        *(("facts", 133, 0), ("blind facts", 56, 3), ("last facts", 26, 0), ("decisions", 49, 4)),
        *(("fresh facts", 84, 1), ("later facts", 15, 0), ("values facts", 74, 5)),
        *(("older facts", 64, 5), ("older decisions", 284, 3)),
    ],
)
def test_no_fewer_replies_are_judged_rightly_than_the_page_says(table: str, harmful: int, honest: int) -> None:
    found = next(one for one in by_table() if one.group == table)
    assert (found.harmful >= harmful, found.honest <= honest) == (True, True), found


WITHOUT_SCHEMA = [json.loads(line) for line in (FOLDER / "without_schema.jsonl").read_text().splitlines()]
"""Replies of the model of docs/model.md to requests without `response_format`; those with a `complaint` are answers to
the bare question, without the instructions of an extraction."""


@pytest.mark.parametrize("recorded", WITHOUT_SCHEMA, ids=lambda recorded: recorded["said"][:30])
def test_replies_without_a_schema_come_to_what_they_came_to(recorded: dict[str, Any]) -> None:
    parsed = parse_extraction(recorded["reply"], extraction(user(recorded["said"]), speaker="Ada"))
    assert [fact.text for fact in parsed.value or ()] == recorded["facts"]
    assert [one.text for one in parsed.dropped] == recorded["dropped"]
    assert parsed.complaints == ((recorded["complaint"],) if "complaint" in recorded else ())
