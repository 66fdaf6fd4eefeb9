"""The reply to a question about several turns is divided among them, and so are the tokens that it took."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.base import known_sum
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import Background, ShownEntity
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm import shared_prompt as reply_parts
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask, Reply, Usage
from mnemolog.streams.llm.shared_prompt import divide, divide_reply, divide_usage
from mnemolog.streams.text.readings import Reading, read
from tests.support.builders.model_replies import fact_json

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SAID = ("I live in Berlin.", "My cat is called Tom.", "I work at Acme.")
TOKENS = st.integers(0, 100_000)
WEIGHTS = st.lists(st.integers(0, 5000), min_size=1, max_size=40)


def task(said: str, **fields: Any) -> ExtractionTask:
    messages = (Message(role="user", content=said), Message(role="assistant", content="Tom eats fish."))
    turn = Turn(turn_id=said, scope=Scope(user_id="mira"), messages=messages, occurred_at=NOON, **fields)
    return ExtractionTask(turn=turn, categories=CATEGORIES)


TASKS = [task(said) for said in SAID]


def reply(*parts: tuple[int, list[dict[str, Any]]], usage: Usage = Usage()) -> Reply:  # noqa: B008 -- frozen
    turns = [{"turn": number, "facts": facts} for number, facts in parts]
    return Reply(text=json.dumps({"turns": turns}), model="m", usage=usage)


def texts(parts: list[Reply | None]) -> list[list[str] | None]:
    return [None if part is None else [fact["text"] for fact in json.loads(part.text)["facts"]] for part in parts]


def fact(text: str, excerpt: str) -> dict[str, Any]:
    return fact_json(text, excerpt=excerpt)


BERLIN, CAT, ACME = (fact(said, said) for said in SAID)


def test_each_turn_gets_its_facts_as_a_valid_reply_to_its_own_question() -> None:
    parts = divide_reply(reply((1, [BERLIN]), (2, []), (3, [ACME])), TASKS)
    assert texts(parts) == [[SAID[0]], [], [SAID[2]]]
    for part, own in zip(parts, TASKS, strict=True):
        assert part is not None
        assert parse_extraction(part.text, own).complaints == ()


def test_a_fact_goes_to_the_turn_that_its_excerpt_is_in_and_is_one_fact_where_two_turns_are_given_it() -> None:
    parts = divide_reply(reply((1, [CAT, ACME]), (2, [CAT]), (3, [BERLIN])), TASKS)
    assert texts(parts) == [[SAID[0]], [SAID[1]], [SAID[2]]]


def test_of_two_turns_that_say_it_the_stated_one_has_the_fact() -> None:
    twice = [task("Berlin."), task("Yes."), task("Berlin.")]
    for stated in (1, 3):
        parts = divide_reply(reply((1, []), (2, []), (stated, [fact("Lives there.", "Berlin.")])), twice)
        assert [bool(one) for one in texts(parts)] == [stated == 1, False, stated == 3]


NUTS = "I am allergic to nuts."


@pytest.mark.parametrize(
    ("first", "second", "excerpt"),
    [
        (task("I like art."), task("We had an early start."), "art"),
        (task(NUTS), task(NUTS, recalled=(NUTS,)), NUTS),
        (task("No"), task("I moved to Norway."), "No"),
    ],
    ids=["part of a word", "recalled", "short answer"],
)
def test_a_part_of_a_word_and_recalled_memory_are_no_excerpt(
    first: ExtractionTask, second: ExtractionTask, excerpt: str
) -> None:
    parts = divide_reply(reply((1, []), (2, [fact("It is so.", excerpt)])), [first, second])
    assert texts(parts) == [["It is so."], []]


ANA = "The user's sister Ana Keller"
TOM = ShownEntity(entity_id=UUID(int=1), name="Tom", type="person", ties=("cousin of Carla",))
CARLAS = {"text": "Carla's cousin Tom moved to Bern.", "subject": "Carla's cousin Tom"}
TOLD = Background(names=("Basel", "Ana Keller"), entities=(TOM,))


@pytest.mark.parametrize(
    ("said", "later", "named"),
    [
        ("I moved to Bern.", "No, to Basel.", {"key": "home_city", "value": "Basel"}),
        ("She moved to Bern.", "My sister Ana Keller is a doctor.", {"subject": ANA}),
        ("She moved.", "My sister Ana is a doctor.", {"entities": [{"name": "Ana", "type": "x", "role": "subject"}]}),
        ("Tom moved to Bern.", "Tom is the cousin of Carla.", CARLAS),
    ],
    ids=["value", "subject", "entity", "tie of a known entity"],
)
def test_a_turn_whose_facts_name_what_only_a_later_turn_says_is_asked_about_alone(
    said: str, later: str, named: dict[str, Any]
) -> None:
    replied = reply((1, [fact("As a later turn has it.", said) | named]), (2, []))
    assert texts(divide_reply(replied, [task(said), task(later)])) == [None, []]
    assert texts(divide_reply(replied, [replace(task(said), background=TOLD), task(later)]))[0] is not None
    assert texts(divide_reply(replied, [task(said, recalled=(later,)), task(later)]))[0] is not None


@pytest.mark.parametrize(
    ("said", "later", "text"),
    [
        ("I have a dog.", "And a black cat.", "Mira has a dog and a cat."),
        ("I run a lot.", "My run takes 40 minutes.", "Mira runs for 40 minutes."),
        ("我养了一只狗。", "还有一只猫。", "米拉养了一只狗和一只猫。"),
    ],
    ids=["word", "number", "sign"],
)
def test_a_turn_whose_fact_has_a_word_that_only_a_later_turn_says_is_asked_about_alone(
    said: str, later: str, text: str
) -> None:
    replied = reply((1, [fact(text, said)]), (2, []))
    assert texts(divide_reply(replied, [task(said), task(later)])) == [None, []]
    assert texts(divide_reply(replied, [task(said, recalled=(later,)), task(later)]))[0] == [text]
    behind = reply((1, []), (2, [fact(text, said)]))
    assert texts(divide_reply(behind, [task(later), task(said)])) == [[], [text]]


@pytest.mark.parametrize(("later", "is_alone"), [("I live in Bern.", True), ("Bern is nice.", False)])
def test_words_that_no_later_turn_says_are_those_of_the_model(later: str, is_alone: bool) -> None:
    replied = reply((1, [fact("Mira lives with a parrot.", "I have a bird.")]), (2, []))
    assert (texts(divide_reply(replied, [task("I have a bird."), task(later)]))[0] is None) == is_alone


@pytest.mark.parametrize("excerpt", ["I live in Rome.", "Tom eats fish."])
def test_a_fact_that_no_turn_says_stays_where_it_was_stated_and_is_dropped_there(excerpt: str) -> None:
    parts = divide_reply(reply((1, []), (2, [fact("Tom eats fish.", excerpt)]), (3, [])), TASKS)
    assert texts(parts)[1] == ["Tom eats fish."]
    assert parts[1] is not None
    parsed = parse_extraction(parts[1].text, TASKS[1])
    assert (parsed.value, [one.reason for one in parsed.dropped]) == ((), ["excerpt_not_found"])


@pytest.mark.parametrize(
    "text",
    [
        '{"turns": [{"turn": 1, "facts": []}, {"turn": 3, "facts": []}]}',
        '{"turns": [{"turn": 1, "facts": []}, {"turn": 2, "facts": null}, {"turn": 3, "facts": []}]}',
        '{"turns": [{"turn": true, "facts": [1]}, {"turn": 1, "facts": []}, {"turn": 3, "facts": []}]}',
        '{"turns": [{"turn": 1, "facts": []}, {"turn": "2", "facts": []}, {"turn": 3, "facts": []}, 5]}',
    ],
)
def test_a_turn_that_the_reply_has_no_part_for_gets_none(text: str) -> None:
    assert texts(divide_reply(Reply(text=text, model="m"), TASKS)) == [[], None, []]


def test_of_a_reply_that_was_cut_off_the_last_turn_gets_nothing() -> None:
    whole = reply((1, [BERLIN]), (2, [CAT]), (3, [ACME])).text
    cut = whole[: whole.index("Acme")]
    assert texts(divide_reply(Reply(text=cut, model="m"), TASKS)) == [[SAID[0]], [SAID[1]], None]


@pytest.mark.parametrize(
    "text",
    [
        *("", "no", "[]", '{"turns": 5}', '{"facts": []}', '{"turns": []}'),
        *(reply((1, [BERLIN]), (2, [CAT]), (number, [ACME])).text for number in (0, 4, 10**30)),
    ],
)
def test_a_reply_without_parts_of_these_turns_goes_to_the_first_with_all_that_it_took(text: str) -> None:
    usage = Usage(input_tokens=1000, output_tokens=7)
    first, *others = divide_reply(Reply(text=text, model="m", usage=usage), TASKS)
    assert first is not None
    assert (first.usage, others) == (usage, [None, None])
    assert parse_extraction(first.text, TASKS[0]).value is None


@pytest.mark.parametrize("number", [10**30, float("nan"), float("-inf")])
def test_a_number_that_json_has_no_room_for_is_a_fault_of_its_own_turn(number: float) -> None:
    parts = divide_reply(reply((1, [BERLIN]), (2, [CAT | {"value": number}]), (3, [])), TASKS)
    assert texts(parts) == [[SAID[0]], [SAID[1]], []]
    first, *_ = divide_reply(Reply(text="no \ud800", model="m"), TASKS)  # half a sign
    assert first is not None
    assert json.loads(first.text) == {"undivided": "no ?"}


def test_turns_without_a_part_take_no_tokens() -> None:
    usage = Usage(input_tokens=999, output_tokens=50, cached_tokens=333)
    parts = divide_reply(reply((1, [BERLIN]), (3, [ACME]), usage=usage), TASKS)
    assert parts[1] is None
    kept = [part.usage for part in parts if part is not None]
    assert sum(one.input_tokens for one in kept) == usage.input_tokens
    assert sum(one.output_tokens for one in kept) == usage.output_tokens
    assert known_sum(one.cached_tokens for one in kept) == usage.cached_tokens


@given(total=TOKENS, weights=WEIGHTS)
def test_shares_are_whole_and_lose_nothing(total: int, weights: list[int]) -> None:
    shares = divide(total, weights)
    assert (len(shares), sum(shares)) == (len(weights), total)
    assert min(shares) >= 0
    if any(weights):
        exact = [total * weight / sum(weights) for weight in weights]
        assert all(abs(share - own) < 1 for share, own in zip(shares, exact, strict=True))
        assert all(share == 0 for share, weight in zip(shares, weights, strict=True) if not weight)


@given(asked=TOKENS, said=TOKENS, cached=st.none() | TOKENS, weights=WEIGHTS)
def test_the_shares_of_a_call_add_up_to_it(asked: int, said: int, cached: int | None, weights: list[int]) -> None:
    usage = Usage(input_tokens=asked, output_tokens=said, cached_tokens=cached)
    shares = divide_usage(usage, weights, weights[::-1])
    assert sum(shares[1:], shares[0]) == usage
    if cached is not None and cached <= asked:
        assert all((share.cached_tokens or 0) <= share.input_tokens for share in shares)


def test_what_turns_say_is_read_as_often_as_there_are_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read again for each turn, twenty of them would hold up all other work of the process."""
    signs: list[int] = []

    def noted(text: str) -> Reading:
        signs.append(len(text))
        return read(text)

    monkeypatch.setattr(reply_parts, "read", noted)
    taken = []
    for count in (10, 40):
        signs.clear()
        said = [f"I met person{number} in town{number}." for number in range(count)]
        parts = reply(*((number, [fact(text, text)]) for number, text in enumerate(said, 1)))
        assert all(divide_reply(parts, list(map(task, said))))
        taken.append(sum(signs))
    assert taken[1] < 5 * taken[0]
