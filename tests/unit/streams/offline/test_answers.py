"""What the offline rules make of an answer and of a pronoun."""

import pytest

from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message
from mnemolog.streams.offline.extract import read_turn
from tests.support.builders.prompts import MONDAY, turn, user


def read(*messages: Message, earlier: tuple[EarlierMessage, ...] = ()) -> tuple[list[str], list[str | None]]:
    facts, omitted = read_turn(turn(*messages, speaker="Ana"), earlier)
    return [fact.text for fact in facts], [one.omitted for one in omitted]


def asked(question: str, answer: str) -> tuple[list[str], list[str | None]]:
    """The same whether the question is in the turn or before it."""
    within = read(Message(role="assistant", content=question), user(answer))
    message = EarlierMessage(turn_id="t0", role="assistant", content=question, at=MONDAY)
    assert read(user(answer), earlier=(message,)) == within
    return within


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        ("Where do you live?", "Berlin.", "Ana lives in Berlin."),
        ("Nice! And where do you live now?", "In Berlin", "Ana lives in Berlin."),
        ("What's your name?", "Mia", "Ana is called Mia."),
        ("What is your dog called?", "Rex", "Ana has a dog called Rex."),
        ("When is your birthday?", "June 14", "Ana's birthday is June 14."),
        ("Shall I note that you are vegan?", "Yes", "Ana is vegan."),
        ("You live in Rome. Is that right?", "Yes", "Ana lives in Rome."),
        ("So you live in Rome, right?", "Right.", "Ana lives in Rome."),
        ("Are you vegan?", "No.", 'Ana, asked "Are you vegan?": No.'),
        ("What's your favourite colour?", "Blue.", 'Ana, asked "What\'s your favourite colour?": Blue.'),
        ("Where do you live?", "Not in Berlin.", "Ana: Not in Berlin."),
    ],
)
def test_an_answer_states_what_was_asked(question: str, answer: str, text: str) -> None:
    assert asked(question, answer) == ([text], [])


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("Shall I note that you are vegan?", "No", "undecided"),
        ("Are you vegan?", "Maybe", "undecided"),
        ("Are you vegan?", "Why do you ask?", "question"),
        ("Can I help you with anything else?", "Yes", "greeting"),
        ("I noted that.", "Never", "undecided"),
    ],
)
def test_what_decides_nothing_states_nothing(question: str, answer: str, reason: str) -> None:
    assert asked(question, answer) == ([], [reason])


def test_only_the_first_sentence_answers_and_only_what_is_right_before() -> None:
    about_ida = Message(role="assistant", content="How is your sister Ida?")
    assert read(about_ida, user("She moved to Bern.")) == (["Ana: She (Ana's sister Ida) moved to Bern."], [])
    question = Message(role="assistant", content="Where do you live?")
    assert read(question, user("Why not. Berlin.")) == (["Ana: Why not.", "Ana: Berlin."], [])
    assert read(question, user("Hello."), user("Berlin.")) == (["Ana: Berlin."], ["greeting"])


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("My sister Ida came. Nice, how is that? She moved to Bern.", "Ana: She (Ana's sister Ida) moved to Bern."),
        ("My brother is called Tom. Yesterday he fell.", "Ana: Yesterday (2023-05-07) he (Ana's brother Tom) fell."),
        ("My sister is Liz. She moved to Bern.", "Ana: She (Ana's sister Liz) moved to Bern."),
        ("My sister is Catholic. She moved to Bern.", "Ana: She moved to Bern."),
        ("My mom lives in Rome. She loves it.", "Ana: She (Ana's mom) loves it."),
        ("My brother Tom called. She moved to Bern.", "Ana: She moved to Bern."),
        ("My sister and my mother came. She moved to Bern.", "Ana: She moved to Bern."),
        ("I met Maria at the house of my sister. She moved to Bern.", "Ana: She moved to Bern."),
        ("My friend Kim called. She moved to Bern.", "Ana: She moved to Bern."),
        ("I moved to Bern. She stayed.", "Ana: She stayed."),
    ],
)
def test_a_pronoun_is_explained_only_where_it_is_clear(said: str, text: str) -> None:
    facts, _ = read_turn(turn(user(said), speaker="Ana"))
    assert facts[-1].text == text
    person = text[text.index("(Ana") + 1 : text.index(")", text.index("(Ana"))] if "(Ana" in text else "Ana"
    assert facts[-1].subject == person
