"""What fills a slot; and what looks like it and fills none."""

from datetime import UTC, datetime

import pytest

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.sentences import slot_statements
from mnemolog.testing import InMemoryClient
from tests.support.builders.prompts import MONDAY, turn, user

SLOTS: dict[str, list[tuple[str, str]]] = {
    "name": [
        ("My name is Priya.", "Priya"),
    ],
    "home_city": [
        ("I live in Bern.", "Bern"),
        ("i'm based in New York", "New York"),
        ("We moved from Berlin to Ulm last week!", "Ulm"),
        ("I moved to Paris", "Paris"),
        ("I've moved to Frankfurt", "Frankfurt"),
        ("I relocated to Ulm", "Ulm"),
        ("As I said, I live in Lyon.", "Lyon"),
        ("I have lived in Köln since 2010", "Köln"),
        ("We live in Paris, Texas since March 2019.", "Paris, Texas"),
    ],
    "employer": [
        ("I work at Acme.", "Acme"),
        ("I work for Home Depot", "Home Depot"),
        ("I started a new job at Bosch yesterday.", "Bosch"),
        ("I have been working at Bosch for two years", "Bosch"),
        ("Acme is my new employer", "Acme"),
        *(("Acme hired me back.", "Acme"), ("I got hired by Acme last week", "Acme")),
    ],
    "allergy": [
        ("I'm severely allergic to peanuts", "peanuts"),
        ("Remember that I'm allergic to penicillin.", "penicillin"),
    ],
    "diet": [
        ("I'm vegan", "vegan"),
        ("I'm a vegetarian now", "vegetarian"),
        ("I've been vegan since last year", "vegan"),
    ],
    "birthday": [
        ("My birthday is on June 14.", "June 14"),
        ("I was born on the 3rd of May 1990", "3rd of May 1990"),
    ],
    "dog": [
        ("I have a dog called Rex.", "Rex"),
        ("My dog's name is Rex", "Rex"),
    ],
    "cat": [("We have a little cat named Miso", "Miso")],
    "sister": [
        ("My sister is called Lena", "Lena"),
    ],
    "husband": [("My husband's name is Arun", "Arun"), ("Tim is my husband.", "Tim")],
}
NO_SLOT = [
    *("I work with Kubernetes", "I moved to Linux", "I moved to Rust last year", "I moved to the marketing team"),
    *("I moved from Java to Go", "We moved from AWS to Hetzner", "I left London for Paris", "I started at Oxford"),
    *(
        "I live in Slack",
        "I live in Excel these days",
        "We live in Jira",
        "I'm based in Figma",
        "I relocated to Notion",
    ),
    *("Acme hired me to paint a wall", "Tom hired me", "I work at Acme in Monopoly", "I got hired by Acme in The Sims"),
    *("I live in fear", "I moved in with Sam", "I work at night", "I live for music", "I'm starving", "I'm Australian"),
    *("I live in the Netherlands", "I live near Hamburg", "I LIVE IN FEAR", "I live and breathe Jazz", "work is hell"),
    *("I live in Rome this week", "I'm in Rome until Friday", "For now I live in Graz", "I'm temporarily at Bosch"),
    *(
        "My brother Tom lives in Rome",
        "Tom said he lives in Rome",
        "My sister works at Acme",
        "Tom thinks I live in Bern",
    ),
    *("When I was young I lived in Rome", "I lived in Rome", "I will live in Rome", "Starting in May I work at Bosch"),
    *("Maybe I live in Rome", "I think I'm allergic to shrimp", "I'm allergic to mornings", "I'm allergic to Mondays"),
    *("My wife is German", "My dog is Spanish", "I work from Berlin", "I called Bob", "I named my car Bertha"),
    *("I have a question called Rex", "I'm called Bob by my friends", "I also work at Bosch", "my name isn't Bob"),
    *(
        "I work at Home",
        "I live in Student Housing",
        "I live in Hotel California",
        "I live in Hope",
        "I live in House Stark",
    ),
    *("I used to live in Rome, and I still do.", "I used to work at Acme and still am there"),
    *("I live in Georgia", "I live in Washington", "I moved to Denver in 2015", "I lived in Rome as a kid"),
    *(
        "I live in Oslo on paper",
        "I moved to Rome in my mind",
        "I work at SAP and IBM",
        "I live in Oslo, well, near it",
    ),
    *(
        "I work at SAP as a contractor for IBM",
        "If anyone asks, I live in Paris",
        "I live in Bavaria",
        "I live in Texas",
        *("I live in Germany", "I moved to Sweden", "We moved to Brazil last week", "I relocated to Norway"),
        "I moved to Bavaria",
    ),
    *("I'm working at Starbucks today", "I'm vegan on Mondays", "I'm not just vegan"),
    *("I work for Tom", "Call me Bob", "My employer is German", "Netflix is my boyfriend"),
    *("Update: I moved to Oslo.", "I live in Bern; my name is Ana", "I have lived in Rome", "I have been vegan"),
    *(
        "I live in Rome for the week",
        "I live in Rome in June",
        "I live in Rome in Winter",
        "I moved to Rome with my thoughts",
        "I live in Oslo this month",
        "I live in Fairhaven",
    ),
    *(
        "I work at SAP as a guest",
        "I live in Oslo as a tourist",
        "I live in Oslo where I am bored",
        "I'm vegan \U0001f602",
        "I'm vegan...",
    ),
    *("I live in Oslo (not).", "She said I live in Oslo", "No, my sister lives in Rome, I live in Milan."),
    *("Nobody is my sister", "This is my brother", "Tom is my brother in law"),
]


def read(text: str, at: datetime = MONDAY) -> list[ExtractedFact]:
    facts, _ = read_turn(turn(user(text), speaker="Alice", occurred_at=at))
    return facts


@pytest.mark.parametrize(("key", "text", "value"), [(key, *pair) for key, pairs in SLOTS.items() for pair in pairs])
def test_a_clause_that_says_nothing_else_fills_its_slot(key: str, text: str, value: str) -> None:
    (fact,) = read(text)
    assert (fact.key, fact.value, fact.subject) == (key, value, "Alice")
    assert fact.text.startswith("Alice")
    assert value in fact.text


@pytest.mark.parametrize("text", NO_SLOT)
def test_what_only_looks_like_it_fills_no_slot_and_is_kept(text: str) -> None:
    facts = read(text)
    assert [fact.key for fact in facts] == [None]
    assert facts[0].excerpt == text


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("I live in Bern and I love hiking.", ["Alice lives in Bern.", "Alice: I live in Bern and I love hiking."]),
        (
            "I live in Zurich with my husband Arun.",
            ["Alice lives in Zurich.", "Alice: I live in Zurich with my husband Arun."],
        ),
        ("I'm allergic to nuts, milk and cats", [f"Alice is allergic to {it}." for it in ("nuts", "milk", "cats")]),
        *(
            (said, ["Alice works at Acme.", f"Alice: {said}"])
            for said in ("I work at Acme in Zurich", "Acme hired me in Peru")
        ),
        ("I live in Bern, my name is Ana", ["Alice lives in Bern.", "Alice is called Ana."]),
        (
            "I quit my job at Nestle and I work at Roche now.",
            ["Alice works at Roche.", "Alice: I quit my job at Nestle and I work at Roche now."],
        ),
    ],
)
def test_the_rest_of_a_sentence_is_never_lost(text: str, texts: list[str]) -> None:
    assert [fact.text for fact in read(text)] == texts
    with InMemoryClient() as memory:  # through the checks of replies too
        memory.add(text, user_id="alice", speaker="Alice")
        assert sorted(fact.text for fact in memory.facts(user_id="alice")) == sorted(texts)


# Written without a look at the rules: of such messages every third filled a slot when words were looked for that make a
# message doubtful, instead of words that leave it plain.
FILLS_NOTHING = [
    # Taken back, or half of it, in the same message.
    *("I moved to Oslo. That was a mistake, I'm home again.", "I'm vegan. Or was.", "I live in Rome. Well, no more."),
    *("I work at NASA. Just kidding.", "I live in Rome. Psych!", "I work at Google. I wish.", "I quit Acme. I stayed."),
    *("I live in Rome, no wait, Milan", "I'm vegan. On Mondays at least.", "I live in Bath. Until Friday."),
    *("I moved to Oslo. Then I moved to Rome.", "I live in Oslo. I live in Bern.", "I'm vegan. I'm vegetarian."),
    *("I no longer work at Acme. I work at Acme.", "I have a cat named Tom. Had, sadly.", "I'm vegan. Not!"),
    *("I moved to Oslo last month but I'm back.", "I got a new job at Acme. The offer fell through."),
    # Work on a text.
    *(
        "Can you correct my English? I moved to Oslo.",
        "I live in Madrid. What tense is that?",
        "Rephrase.\nI am vegan.",
    ),
    *("I live in Oslo. I have a dog. Who am I?", "I live in Oslo. Can you guess what I mean?"),
    *("Which is better? I live in Rome. I'm living in Rome.", "I'm vegan. Which word would sound nicer?"),
    *(
        "I live in Rome. Could you say that in Dutch?",
        "Give me more of these. My name is Eva.",
        "I'm vegan. Translate!",
    ),
    *("My teacher says there are two mistakes. I moved to Oslo.", "I quit Acme. How would I put it politely?"),
    # Somebody else's words, a role, data.
    *("Here's my sister's bio. I live in Oslo.", "Got this today. I am vegan.", "Scene one. I live in Oslo."),
    *("Voice message from my uncle. I moved to Oslo. Bye.", "hi this is Eva on Bo's phone. I live in Oslo."),
    *("You are a waiter. I'm vegan.", "Let's do a role play. I live in Oslo.", "My hero speaks. My name is Thorin."),
    *("She was like, I moved to Oslo.", "The guy next to me: I work at Acme."),
    *("Continue. I live in Oslo.", "Test. I'm vegan."),
    *("Otto\nI live in Oslo now.\nRita\nI am vegan.", "I live in Oslo\nI am vegan", "Lyrics!\nI live in Oslo."),
]


@pytest.mark.parametrize("text", FILLS_NOTHING)
def test_a_message_that_is_not_plain_as_a_whole_fills_and_ends_nothing(text: str) -> None:
    facts = read(text)
    assert {(fact.key, fact.action_hint) for fact in facts} <= {(None, "new")}
    stated = [fact for fact in facts if any(one.keys for one in slot_statements(fact.excerpt, MONDAY))]
    assert {fact.certainty for fact in stated} <= {"weak"}


GIVES_VOICE = [
    *("Translate what I write next.", "Pretend that you are my doctor.", "Let's practise an interview."),
    *("Could you draft a cover letter for my cousin?", "Fix the mistakes in what follows.", "Is this good English?"),
    *("You are a job interviewer.", "Be a receptionist, I'm the patient.", "We're doing improv.", "You start."),
    *("We play travel agency, I'm the customer.", "I'm learning Thai and this is my homework.", "I practise my part."),
    *("My grandma sent me a letter.", "Forwarded from mum", "Otto's words from last night", "She wants to say:"),
    *("Guess which one is false.", "Two truths and a lie!", "My character in the game is a bard.", "Level 3 wizard"),
    *("We're dubbing a film and I read the lead.", "I'm testing you.", "Next I paste what the client said."),
    *("My son types from here on.", "I'll write as my grandmother would.", "My husband dictates, I only type."),
    *("I'm going as a vampire.", "I want to speak as my aunt.", "It's a sketch about a vegan.", "I'm going first."),
    *("There is a man who speaks.", "I always play the elf.", "My boss is dictating.", "Otto took the phone."),
    *("My phone is with my brother.", "The kids are typing.", "I'm getting into my role."),
    *("How would my brother introduce himself?", "Fill in the visa form for my father.", "Corrige mis frases."),
]
LEAVES_VOICE = [
    *("My name is Eva.", "I bought a car.", "My landlord has raised the rent.", "We had a great summer."),
    *("Hi!", "Thanks, that was helpful!", "I love hiking.", "I twisted my knee yesterday.", "I'm vegan."),
    *(
        "It rained all day.",
        "The weather is nice today.",
        "My head hurts.",
        "I usually get up at six.",
    ),
    *("I'm going to the gym later.", "I'm looking for a new job.", "Our flat is too small.", "I want to lose weight."),
    *("What is a good restaurant near the lake?", "Can you recommend a gym?", "How do I cook rice?"),
]


@pytest.mark.parametrize(
    ("before", "key"), [*((one, None) for one in GIVES_VOICE), *((one, "allergy") for one in LEAVES_VOICE)]
)
def test_what_follows_fills_slots_only_as_long_as_the_user_speaks_as_the_user(before: str, key: str | None) -> None:
    said = [EarlierMessage(turn_id="t0", role="user", content=one, at=MONDAY) for one in (before, "I live in Bern.")]
    facts, _ = read_turn(turn(user("I'm allergic to nuts."), speaker="Alice"), said)
    assert [fact.key for fact in facts] == [key]


def test_a_short_answer_leaves_the_voice_of_the_user() -> None:
    asked = (Message(role="assistant", content="Where do you live?"), user("Bern."), user("I'm allergic to nuts."))
    facts, _ = read_turn(turn(*asked, speaker="Alice"))
    assert [fact.key for fact in facts] == [None, "allergy"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("I no longer live in Rome. I live in Bern now.", {None, "home_city"}),
        ("I moved back to Oslo.", {"home_city"}),
        ("I moved to Oslo this year. I'm vegan.", {"home_city", "diet"}),
        ("I work at Acme and I live in Bern.", {"employer", "home_city"}),
        ("I live in Oslo. I'm allergic to nuts. I'm allergic to milk.", {"home_city", "allergy"}),
        ("I moved to Oslo. Can you recommend a gym?", {"home_city"}),
        ("Hi! I'm vegan, what can I eat in Rome?", {"diet"}),
        ("I live in Oslo. I have a dog. I love hiking.", {"home_city", None}),
    ],
)
def test_what_goes_with_a_statement_takes_nothing_from_it(text: str, keys: set[str | None]) -> None:
    assert {fact.key for fact in read(text)} == keys


def test_what_is_so_since_a_year_begins_then() -> None:
    for text in ("I have lived in Bern since 2010.", "I've been vegan since 2010", "I like tea since 2010"):
        assert [fact.event_time for fact in read(text)] == [datetime(2010, 1, 1, tzinfo=UTC)]


def test_lines_that_end_as_sentences_do_are_of_the_speaker() -> None:
    assert [fact.key for fact in read("Hi there!\nI live in Oslo.\nI am vegan.")] == ["home_city", "diet"]


def test_the_fields_of_a_kept_sentence() -> None:
    (fact,) = read("Maybe my knee broke yesterday", datetime(2026, 3, 2, tzinfo=UTC))
    assert fact.text == "Alice: Maybe my knee broke yesterday (2026-03-01)"
    assert (fact.certainty, fact.category, fact.event_time) == ("weak", "health", datetime(2026, 3, 1, tzinfo=UTC))
    (plan,) = read("I have a meeting with Tom on Friday", datetime(2026, 3, 2, tzinfo=UTC))
    assert (plan.event_time, plan.valid_until) == (datetime(2026, 3, 6, tzinfo=UTC), None)
    (ended,) = read("I can't run anymore")
    assert (ended.action_hint, ended.certainty, ended.category) == ("retract", "explicit", "other")


@pytest.mark.parametrize(
    ("text", "begins", "until"),
    [
        ("I'm starting at Siemens on 1 April.", datetime(2026, 4, 1, tzinfo=UTC), None),
        ("The wedding is in three weeks.", datetime(2026, 3, 16, tzinfo=UTC), None),
        ("My visa expires on 3 May 2026.", datetime(2026, 5, 3, tzinfo=UTC), None),
        ("I'm pregnant, due in October.", None, None),
        ("I'm on holiday until Friday.", None, datetime(2026, 3, 7, tzinfo=UTC)),
        ("I lived in Rome until 2020-05-01.", None, None),
    ],
)
def test_what_lies_ahead_begins_then_and_ends_only_where_it_says_so(
    text: str, begins: datetime | None, until: datetime | None
) -> None:
    (fact,) = read(text, datetime(2026, 3, 1, 9, tzinfo=UTC))
    assert (fact.key, fact.event_time, fact.valid_until) == (None, begins, until)


def test_without_a_name_the_speaker_is_the_user() -> None:
    facts, _ = read_turn(turn(user("I like tea."), user("I live in Bern.", "Ann")))
    assert [fact.text for fact in facts] == ["The user: I like tea.", "Ann lives in Bern."]
