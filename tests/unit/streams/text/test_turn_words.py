"""What the text of a fact asserts beyond its turn is refused, and what follows from the turn is not."""

from pathlib import Path

import pytest

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ask import ParsedReply
from mnemolog.streams.llm.extract_reply import parse_extraction
from tests.support.builders.model_replies import facts_reply
from tests.support.builders.prompts import extracted_json, extraction, user
from tests.support.paths import ROOT

_CASES = ROOT / "tests" / "support" / "cases"


def cases(name: str) -> list[list[str]]:
    lines = Path(_CASES / name).read_text(encoding="utf-8").splitlines()
    return [line.split(" | ") for line in lines]


def parsed(said: str, text: str) -> ParsedReply[tuple[ExtractedFact, ...]]:
    reply = facts_reply(extracted_json(excerpt=said, text=text))
    return parse_extraction(reply, extraction(user(f"Well, {said}, you know."), speaker="Alice"))


def is_taken(said: str, text: str) -> bool:
    reply = parsed(said, text)
    return bool(reply.value)


@pytest.mark.parametrize(("said", "text", "complaint"), cases("harmful_extractions.txt"))
def test_a_fact_that_says_more_than_its_turn_is_left_out_and_told(said: str, text: str, complaint: str) -> None:
    reply = parsed(said, text)
    assert reply.value == ()
    (dropped,) = reply.dropped
    assert (dropped.text, dropped.reason) == (text, "unfounded")
    assert complaint in dropped.detail


@pytest.mark.parametrize(("said", "text"), cases("honest_extractions.txt"))
def test_a_fact_in_other_words_is_taken(said: str, text: str) -> None:
    reply = parsed(said, text)
    assert [fact.text for fact in reply.value or ()] == [text]


@pytest.mark.parametrize(("table", "accepted", "refused"), [("seen", 14, 3), ("unseen", 5, 1)])
def test_no_more_facts_are_judged_wrongly_than_the_page_says(table: str, accepted: int, refused: int) -> None:
    """The figures of docs/quality.md; the tables were written without sight of the rules."""
    taken = [case for case in cases(f"{table}_harmful_extractions.txt") if is_taken(*case)]
    lost = [case for case in cases(f"{table}_honest_extractions.txt") if not is_taken(*case)]
    assert (len(taken), len(lost)) == (accepted, refused), [*taken, *lost]
