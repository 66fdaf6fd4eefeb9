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
    ("question", "answer"),
    [
        *(("Where do you live?", said) for said in ("Berlin.", "In Berlin", "Everywhere.", "With my parents")),
        *(("What's your name?", said) for said in ("Mia", "Nobody.", "Doctor Who")),
        *(("Where do you work?", said) for said in ("Retired.", "At night", "Acme until May")),
        ("What is your dog called?", "Rex"),
        ("When is your birthday?", "June 14"),
        ("What are you allergic to?", "Nuts"),
        ("Are you vegetarian or vegan?", "Vegan."),
        ("Are you vegan?", "Yes, I am."),
        ("Are you vegan?", "No."),
        ("So you live in Rome, right?", "Right."),
        ("Do you like hiking?", "Yes"),
        ("What's your favourite colour?", "Blue."),
        ("Where would you like to live?", "Rome."),
        ("Where did you live before?", "Rome."),
        ("Which city are you flying to?", "Rome."),
    ],
)
def test_another_answer_is_kept_with_its_question(question: str, answer: str) -> None:
    (fact,), omitted = read_turn(turn(Message(role="assistant", content=question), user(answer), speaker="Ana"))
    assert (fact.key, omitted) == (None, [])
    assert fact.text in {f'Ana, asked "{question}": {answer}', f"Ana: {answer}"}


@pytest.mark.parametrize("again", ["And seriously?", "Really?", "Come on, seriously?"])
def test_an_answer_to_a_question_that_is_asked_again_has_the_first_one(again: str) -> None:
    first, second = (Message(role="assistant", content=one) for one in ("What are you allergic to?", again))
    texts, _ = read(first, user("Bad jokes."), second, user("Shellfish."))
    assert texts[-1] == 'Ana, asked "What are you allergic to?": Shellfish.'


def test_a_whole_sentence_is_read_as_if_nothing_had_been_asked() -> None:
    assert asked("Where do you live?", "I live in Bern.") == (["Ana lives in Bern."], [])


def test_no_denies_the_question() -> None:
    (fact,), _ = read_turn(turn(Message(role="assistant", content="Are you vegan?"), user("No."), speaker="Ana"))
    assert (fact.text, fact.action_hint) == ('Ana, asked "Are you vegan?": No.', "retract")


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("Shall I note it?", "No", "greeting"),
        ("Are you vegan?", "Maybe", "undecided"),
        ("Are you vegan?", "Why do you ask?", "question"),
        ("Can I help you with anything else?", "Yes", "greeting"),
        ("Are you ready?", "Yes", "greeting"),
        ("I noted that.", "Never", "undecided"),
    ],
)
def test_an_answer_that_decides_nothing_states_nothing(question: str, answer: str, reason: str) -> None:
    assert asked(question, answer) == ([], [reason])


def test_only_the_first_sentence_answers_and_only_what_is_right_before() -> None:
    question = Message(role="assistant", content="Where do you live?")
    first = 'Ana, asked "Where do you live?": Why not.'
    assert read(question, user("Why not. Berlin.")) == ([first, "Ana: Berlin."], [])
    assert read(question, user("Hello."), user("Berlin.")) == (["Ana: Berlin."], ["greeting"])


@pytest.mark.parametrize("said", ["She moved to Bern.", "He died.", "Yesterday she fell."])
def test_a_pronoun_stays_a_word(said: str) -> None:
    """Whoever was named before: "My wife Eva and her mother visited us. She lives in Bonn."."""
    facts, _ = read_turn(turn(user(f"My sister Ida came. {said}"), speaker="Ana"))
    assert (facts[-1].excerpt, facts[-1].subject, facts[-1].relations) == (said, "Ana", ())
