import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.turn import Message
from mnemolog.streams.stages.echo_filter import drop_recalled_echoes
from tests.support.builders.prompts import fact, turn, user

BERLIN = "Alice lives in Berlin."


def user_says(content: str) -> Message:
    return Message(role="assistant", content=content)


def stated(excerpt: str, text: str = BERLIN) -> ExtractedFact:
    return fact(text, excerpt=excerpt)


@pytest.mark.parametrize(
    ("messages", "excerpt", "recalled"),
    [
        ((user("Memory: Alice lives in Berlin. Hello!"),), "Alice lives in Berlin.", [BERLIN]),
        ((user("You know: alice  LIVES in\nberlin"),), "lives in  Berlin", [BERLIN]),
        ((user("I am \u201cat home\u201d"),), "at home\u201d", ['Alice is "at home" in Berlin']),
        ((user("Hello."), user_says("You live in Berlin, so take the U8.")), "You live in Berlin", [BERLIN]),
        ((user("Which train?"), user_says("Alice has a dog, hasn't she?")), "Alice has a dog", [BERLIN]),
        ((Message(role="tool", content="profile: home Berlin"), user("Hi.")), "home Berlin", ["likes tea"]),
    ],
    ids=[
        "the user's message carries the memory",
        "however it is typed",
        "whatever quotes it has",
        "the assistant repeats it in other words",
        "the assistant says what may be known to it",
        "a tool says it",
    ],
)
def test_an_echo_of_memory_is_dropped(messages: tuple[Message, ...], excerpt: str, recalled: list[str]) -> None:
    kept, dropped = drop_recalled_echoes([stated(excerpt)], turn(*messages, recalled=recalled))
    assert kept == ()
    assert [(echo.text, echo.reason, echo.similarity) for echo in dropped] == [(BERLIN, "recalled", None)]


@pytest.mark.parametrize(
    ("messages", "excerpt"),
    [
        ((user("Yes, I live in Berlin."),), "I live in Berlin"),
        ((user("I do, for ten years now."), user_says("So you live in Berlin.")), "I do, for ten years now"),
        ((user("Alice lives in Berlin. She moved there in 2019."),), "Alice lives in Berlin. She moved there"),
    ],
    ids=["in own words", "in an answer", "with more than the memory"],
)
def test_what_the_user_says_is_kept_although_memory_says_the_same(messages: tuple[Message, ...], excerpt: str) -> None:
    kept, dropped = drop_recalled_echoes([stated(excerpt)], turn(*messages, recalled=[BERLIN]))
    assert [found.text for found in kept] == [BERLIN]
    assert dropped == ()


@pytest.mark.parametrize("recalled", [[], [""], ["\u00ad "]])
def test_without_recalled_texts_whoever_speaks_is_heard(recalled: list[str]) -> None:
    facts = (stated("You live in Berlin"),)
    assert drop_recalled_echoes(facts, turn(user("Hi."), user_says("You live in Berlin."), recalled=recalled)) == (
        facts,
        (),
    )


def test_the_order_of_what_is_kept_stays() -> None:
    facts = [stated("I fly", "Alice flies."), stated("lives in Berlin"), stated("I sail", "Alice sails.")]
    kept, dropped = drop_recalled_echoes(facts, turn(user("I fly. I sail."), recalled=[BERLIN]))
    assert [found.text for found in kept] == ["Alice flies.", "Alice sails."]
    assert [echo.text for echo in dropped] == [BERLIN]


_WORDS = st.lists(st.sampled_from(["I", "live", "in", "Berlin", "Rome", "."]), min_size=1, max_size=6).map(" ".join)


@given(st.lists(_WORDS, max_size=5), st.lists(_WORDS, max_size=3), _WORDS)
def test_each_fact_is_kept_or_dropped_once(excerpts: list[str], recalled: list[str], said: str) -> None:
    facts = [stated(excerpt, f"{index}") for index, excerpt in enumerate(excerpts)]
    kept, dropped = drop_recalled_echoes(facts, turn(user(said), recalled=recalled))
    assert sorted([*(found.text for found in kept), *(echo.text for echo in dropped)]) == [
        found.text for found in facts
    ]
