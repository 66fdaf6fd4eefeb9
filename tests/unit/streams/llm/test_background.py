"""Which entities a text may name, and what fits into the tokens that a prompt has for it."""

from uuid import UUID

import pytest

from mnemolog.common.tokens import estimate_tokens
from mnemolog.schemas.stored import EarlierMessage, ShownFact
from mnemolog.streams.llm.background import MAX_HEADS, best_shown, last_messages, names_said_in
from tests.support.builders.commits import day


@pytest.mark.parametrize(
    ("text", "heads", "ties", "predicates"),
    [
        ("I met Ana Keller", {"i", "met", "ana", "kel"}, (), ()),
        ("ÁNA's dog", {"ana", "s", "dog"}, (), ()),
        ("Al Gore is here", {"al", "gor"}, (), ()),
        ("my wife sings", {"wif", "sin"}, ("@wife",), ("spouse",)),
        ("my son sings", {"son", "sin"}, ("@son",), ("child",)),
        ("田中さん", {"田中さ", "田中", "中さん"}, (), ()),
    ],
)
def test_heads_and_ties_are_found(
    text: str, heads: set[str], ties: tuple[str, ...], predicates: tuple[str, ...]
) -> None:
    found = names_said_in(text)
    assert heads <= {*found.heads}, found.heads
    assert (found.ties, found.predicates) == (ties, predicates)


def test_words_are_also_told_as_names_are_compared_and_heads_are_limited() -> None:
    assert "ana s dog" in names_said_in("ÁNA's dog").text
    text = " ".join(f"{chr(97 + one)}{chr(97 + two)}q" for one in range(26) for two in range(26))
    assert len(names_said_in(text).heads) == MAX_HEADS


def message(content: str) -> EarlierMessage:
    return EarlierMessage(turn_id="t", role="user", content=content, at=day(0))


SHORT = [message(f"Message number {number}.") for number in range(9)]


def test_the_last_ones_stay_in_their_order() -> None:
    assert last_messages(SHORT, count=3, tokens=1000) == tuple(SHORT[-3:])
    assert last_messages(SHORT, count=0, tokens=1000) == ()
    kept = last_messages(SHORT, count=9, tokens=70)
    assert 0 < len(kept) < len(SHORT)
    assert kept == tuple(SHORT[-len(kept) :])


@pytest.mark.parametrize("tokens", [40, 80, 200, 500])
def test_of_one_that_is_too_long_the_end_is_shown(tokens: int) -> None:
    essay = message(" ".join(f"word{number}" for number in range(2000)) + " Shall I note that?")
    (kept,) = last_messages([*SHORT, essay], count=9, tokens=tokens)
    assert kept.content.startswith("… ")
    assert kept.content.endswith("Shall I note that?")
    assert estimate_tokens(kept.content) <= tokens
    (word,) = last_messages([message("x" * 4000)], count=1, tokens=tokens)
    assert len(word.content) <= 4 * tokens


def test_facts_that_do_not_fit_are_left_out_from_the_end() -> None:
    facts = [ShownFact(fact_id=UUID(int=number), text=f"Ana likes tea number {number}.") for number in range(9)]
    kept = best_shown((), facts, tokens=100)[1]
    assert 0 < len(kept) < len(facts)
    assert kept == tuple(facts[: len(kept)])
    assert best_shown((), facts, tokens=0)[1] == ()
