"""What the offline rules make of an answer, of words that take back the message before, and of a pronoun."""

import pytest

from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message
from mnemolog.streams.offline.extract import read_turn
from mnemolog.testing import InMemoryClient
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
    assert fact.text.startswith((f'Ana, asked "{question}": {answer}', f"Ana: {answer}"))


def test_a_whole_sentence_is_read_as_if_nothing_had_been_asked() -> None:
    assert asked("Where do you live?", "I live in Bern.") == (["Ana lives in Bern."], [])


def test_after_the_words_of_a_game_a_message_fills_no_slot() -> None:
    game = EarlierMessage(turn_id="t0", role="user", content="You are the wizard and I am Bo.", at=MONDAY)
    (fact,), _ = read_turn(turn(user("I live in Rome."), speaker="Ana"), (game,))
    assert (fact.key, fact.certainty) == (None, "weak")


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


TAKES_BACK = [
    *("Scratch that.", "ignore what I just said", "never mind, I was kidding", "jk", "Oops, I meant Neu-Ulm."),
    *(
        "Forget what I told you, that was my sister.",
        "Sorry, that's not true.",
        "I lied.",
        "Actually I take that back.",
    ),
    *("That's not correct, I live in Tartu.", "wrong chat, sorry", "That was my brother typing."),
]
TAKES_NOTHING_BACK = [
    *("I take the bus.", "Ignore the noise in the flat below?", "I meant to call you.", "Scratch cards are fun."),
    *(
        "That was my favourite place.",
        "It's true that I like tea.",
        "Cancel my subscription to it",
        "I was joking around.",
    ),
]


@pytest.mark.parametrize("said", TAKES_BACK)
def test_what_takes_back_the_message_before_is_kept_with_it(said: str) -> None:
    before = EarlierMessage(turn_id="t0", role="user", name="Ana", content="Hi! I live in Ulm.", at=MONDAY)
    (fact,), omitted = read_turn(turn(user(said), speaker="Ana"), (before,))
    assert (fact.text, fact.action_hint, fact.key) == (f'Ana, after "I live in Ulm.": {said}', "retract", None)
    assert (fact.certainty, omitted) == ("explicit", [])
    spoken = EarlierMessage(turn_id="t0", role="assistant", content="Ulm is nice.", at=MONDAY)
    facts, _ = read_turn(turn(user(said), speaker="Ana"), (before, spoken))
    assert [one.certainty for one in facts] == ["weak"]
    assert not any("after" in one.text for one in read_turn(turn(user(said), speaker="Ana"))[0])


@pytest.mark.parametrize("said", TAKES_NOTHING_BACK)
def test_other_sentences_take_nothing_back(said: str) -> None:
    before = EarlierMessage(turn_id="t0", role="user", name="Ana", content="I live in Ulm.", at=MONDAY)
    assert not any("after" in one.text for one in read_turn(turn(user(said), speaker="Ana"), (before,))[0])


@pytest.mark.parametrize(
    ("known", "said", "decided"),
    [
        ("I bought a red car.", "Just kidding!", "fact_contradicted"),
        ("I'm allergic to nuts.", "Scratch that, that was my sister.", "fact_pending"),
        ("I live in Ulm.", "Sorry, I meant Neu-Ulm.", "fact_contradicted"),
        ("I bought a red car. I sold my boat.", "ignore what I just said", "fact_pending"),
        ("Can you find me a gym? I bought a red car.", "Forget that.", "fact_pending"),
    ],
)
def test_what_is_taken_back_is_believed_no_more_or_in_doubt_and_nothing_else_is(
    known: str, said: str, decided: str
) -> None:
    with InMemoryClient() as client:
        memory = client.scope(user_id="ana")
        for one in ("I like tea.", known):
            memory.add(one, speaker="Ana", wait=True)
        result = memory.add(said, speaker="Ana", wait=True)
        assert [change.event for change in result.changes] == [decided]
        assert "Ana: I like tea." in {fact.text for fact in memory.facts()}


ASSISTANT_CLAIMS = ["You are the CTO, right?", "So you live in Rome and work at Acme.", "You're vegan, aren't you?"]


@pytest.mark.parametrize("claim", ASSISTANT_CLAIMS)
@pytest.mark.parametrize("said", ["What is a CTO?", "Yes.", "Tell me more.", "Why?", "Ok, and the weather?"])
def test_what_the_assistant_says_of_the_user_fills_no_slot(claim: str, said: str) -> None:
    facts, _ = read_turn(turn(Message(role="assistant", content=claim), user(said), speaker="Ana"))
    assert {fact.key for fact in facts} <= {None}
    assert all(fact.excerpt == said for fact in facts)
