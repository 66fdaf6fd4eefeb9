import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import CATEGORIES, ExtractedFact
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.evidence import Evidence
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.stages.extract import drop_recalled_echoes
from mnemolog.streams.text.tokens import has_words
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
        ((user("It says: \u201cAlice lives in Berlin\u201d"),), "lives in Berlin\u201d", ['"Alice lives in Berlin"']),
        ((user("Yes, lives in Berlin!"),), "lives in Berlin", [BERLIN]),
        ((user("Hello."), user_says("You live in Berlin, so take the U8.")), "You live in Berlin", [BERLIN]),
        ((user("Which train?"), user_says("Alice has a dog, hasn't she?")), "Alice has a dog", [BERLIN]),
        ((Message(role="tool", content="profile: home Berlin"), user("Hi.")), "home Berlin", ["likes tea"]),
    ],
    ids=[
        "the user's message carries the memory",
        "however it is typed",
        "whatever quotes it has",
        "the user repeats its words",
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


@pytest.mark.parametrize(
    ("question", "answer", "text", "recalled"),
    [
        ("Do you still smoke?", "No.", "Alice no longer smokes.", "Alice knows Bob from Norway."),
        ("Are you allergic to penicillin?", "Yes", "Alice is allergic to penicillin.", "Yesterday Alice met Bob."),
        ("Where do you live now?", "Berlin", "Alice lives in Berlin.", "Alice moved from Berlin to Rome in 2019."),
        ("Where do you live now?", "Berlin", "Alice lives in Berlin.", "Berlin"),
        ("Where do you live now?", "Berlin, since May", "Alice lives in Berlin.", "Berlin"),
        ("Where do you live now?", "in Berlin", "Alice lives in Berlin.", "Alice's brother lives in Berlin."),
        ("How many kids do you have?", "2", "Alice has 2 kids.", "Alice was born in 1992."),
        ("How many kids do you have?", "2", "Alice has 2 kids.", "Alice has 2 cats."),
        ("Wo wohnst du?", "In Rom", "Alice wohnt in Rom.", "Alice liest gern in Romanen."),
        ("Und jetzt?", "nicht in Berlin", "Alice wohnt nicht in Berlin.", "Alice ist nicht in Berlin geboren."),
        ("どこに住んでいますか", "東京", "アリスは東京に住んでいる", "アリスは東京で生まれた"),
    ],
)
def test_a_short_answer_is_news_although_the_memory_has_its_words(
    question: str, answer: str, text: str, recalled: str
) -> None:
    messages = (user_says(question), user(answer))
    kept, dropped = drop_recalled_echoes([stated(answer, text)], turn(*messages, recalled=[recalled]))
    assert [found.text for found in kept] == [text]
    assert dropped == ()


@pytest.mark.parametrize(
    ("message", "excerpt", "text", "recalled"),
    [
        ("The user likes Turkey.", "Turkey", "The user likes Turkey.", "The user likes turkey."),
        ("The user likes turkey.", "turkey", "The user likes turkey.", "The user likes Turkey."),
        ("Alice works for Apple", "works for Apple", "Alice works for Apple.", "Alice works for apple"),
        ("Er sammelt Polish.", "Polish", "Er sammelt Polish.", "Er sammelt polish."),
    ],
)
def test_what_differs_from_the_memory_in_the_capitals_of_a_name_is_no_copy_of_it(
    message: str, excerpt: str, text: str, recalled: str
) -> None:
    said = turn(user(message), recalled=[recalled])
    kept, dropped = drop_recalled_echoes([stated(excerpt, text)], said)
    assert ([found.text for found in kept], dropped) == ([text], ())
    supporting, faults = Evidence(ExtractionTask(turn=said, categories=CATEGORIES)).support(text, excerpt)
    assert (list(supporting), faults) == ([*said.messages], [])


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
    st.sampled_from([BERLIN, "Alice has 2 cats.", "アリスは東京に住んでいる"]),
)
def test_what_says_something_else_than_the_memory_and_is_a_message_of_its_own_is_kept(said: str, recalled: str) -> None:
    if has_words(said, said):
        (kept, dropped) = drop_recalled_echoes([stated(said, "Alice sails.")], turn(user(said), recalled=[recalled]))
        assert (len(kept), dropped) == (1, ())


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
