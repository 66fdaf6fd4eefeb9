"""What fills a slot; and what looks like it and fills none."""

from datetime import UTC, datetime

import pytest

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.offline.extract import read_turn
from tests.support.builders.prompts import MONDAY, turn, user

SLOTS: dict[str, list[tuple[str, str]]] = {
    "name": [
        ("My name is Priya.", "Priya"),
        ("Call me Bob.", "Bob"),
    ],
    "home_city": [
        ("I live in Bern.", "Bern"),
        ("i'm based in New York", "New York"),
        ("We moved from Berlin to Ulm last week!", "Ulm"),
        ("I moved to Paris", "Paris"),
        ("I've moved to Frankfurt", "Frankfurt"),
        ("I relocated to Ulm", "Ulm"),
        ("As I said, I live in Lyon.", "Lyon"),
    ],
    "employer": [
        ("I work at Acme.", "Acme"),
        ("I work for Home Depot", "Home Depot"),
        ("I started a new job at Bosch yesterday.", "Bosch"),
        ("Acme is my new employer", "Acme"),
    ],
    "allergy": [
        ("I'm severely allergic to peanuts", "peanuts"),
        ("Remember that I'm allergic to penicillin.", "penicillin"),
    ],
    "diet": [
        ("I'm vegan", "vegan"),
        ("I'm a vegetarian now", "vegetarian"),
    ],
    "birthday": [
        ("My birthday is on June 14.", "June 14"),
        ("I was born on 3 May 1990", "3 May 1990"),
    ],
    "dog": [
        ("I have a dog called Rex.", "Rex"),
        ("My dog's name is Rex", "Rex"),
    ],
    "cat": [("We have a little cat named Miso", "Miso")],
    "sister": [
        ("My sister is called Lena", "Lena"),
    ],
    "husband": [("My husband's name is Arun", "Arun"), ("Can is my husband.", "Can")],
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


@pytest.mark.parametrize("text", ["I work for Tom", "Call me Bob", "My employer is German", "Netflix is my boyfriend"])
def test_what_only_may_be_a_value_is_weakly_certain(text: str) -> None:
    assert [(fact.certainty, fact.action_hint) for fact in read(text)] == [("weak", "new")]


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
        ("I live in Bern; my name is Ana", ["Alice lives in Bern.", "Alice is called Ana."]),
        (
            "I quit my job at Nestle and I work at Roche now.",
            ["Alice works at Roche.", "Alice: I quit my job at Nestle and I work at Roche now."],
        ),
        (
            "No, my sister lives in Rome, I live in Milan.",
            ["Alice lives in Milan.", "Alice: No, my sister lives in Rome, I live in Milan."],
        ),
    ],
)
def test_the_rest_of_a_sentence_is_never_lost(text: str, texts: list[str]) -> None:
    assert [fact.text for fact in read(text)] == texts


@pytest.mark.parametrize(
    "text",
    [
        "I live in Bristol. I meant Bath, not Bristol.",
        "I live in Rome, no wait, Milan",
        "I work at Apple. Well, at an apple farm.",
        "I'm vegan. Just kidding!",
        "I live in Oslo! Actually, near Oslo.",
        "I live in Rome... sorry, in Milan.",
        "I live in Oslo - well, Bergen.",
        "I have a cat called Miso - correction, Mimo.",
    ],
)
def test_what_is_taken_back_in_the_same_message_fills_no_slot(text: str) -> None:
    assert {fact.key for fact in read(text)} <= {None}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "I moved to Oslo. Then I moved to Rome.",
            "I moved to Oslo; now I'm back in Turin.",
            "I live in Oslo. I live in Bern.",
        ),
        *("I moved to Oslo last month but I'm back.", "I moved to Oslo last month. I moved back after a week."),
        *(
            "I moved to Oslo for two years.",
            "I relocated to Ulm for a semester.",
            "I started a job at Acme for six months.",
        ),
        *("I got a new job at Globex. I turned it down.", "I got a new job at Acme. The offer fell through."),
        "I started a job at Acme. It was terrible, so I went back to Globex.",
        *(
            "I quit Acme. They talked me out of it.",
            "I quit Acme. In the end I stayed.",
            "I left Acme. They kept me on.",
        ),
        *("I no longer work at Globex. Wait, I do until Friday.", "I no longer work at Acme. I work at Acme."),
        *("I moved to Oslo and hated it, so I'm back in Bern.", "I moved from Oslo to Bern and back."),
        *("I'm no longer vegan. Hold on, I am.", "I'm vegan. I changed my mind.", "I'm vegan. I'm vegetarian."),
        *(
            "We moved to Graz. It lasted a month.",
            "I moved to Lyon, but only on paper.",
            "I moved to Ulm. We returned home.",
        ),
    ],
)
def test_what_the_same_message_takes_back_or_continues_fills_and_ends_nothing(text: str) -> None:
    assert {(fact.key, fact.action_hint) for fact in read(text)} == {(None, "new")}


@pytest.mark.parametrize(
    "text",
    [
        *("How do you say this in Spanish? I moved to Oslo.", "Can you translate this to French? I quit Acme."),
        *("Fix the grammar please. I moved to Oslo.", "Can you rephrase this? I no longer live in Oslo."),
        *("Is this correct English? I live in Oslo now.", "Translate this. I am allergic to nuts."),
        *("Make this more polite. I quit Acme.", "Here's my sister's bio. I live in Oslo. I am vegan."),
        *("Got this from a stranger. I live in Oslo.", "Could you translate the note he left?\nI moved to Oslo."),
        *("What does this mean? I moved to Oslo.", "Does this sound natural? I am vegan.", "Otto's bio. I am vegan."),
        *("Write this on the card. My name is Viktor.", "I live in Oslo. I am vegan. Could you shorten it?"),
        *(
            "Found this on the train. I moved to Rome.",
            "Is the spelling ok? I live in Oslo now.",
            "Thoughts on this? I quit Acme.",
        ),
        *("Text my mum. I moved to Oslo.", "Read this. I am vegan.", "This is his profile. I work at Acme."),
        *("She was like, I moved to Oslo.", "They were all like, we moved to Bern.", "He just went, I work at Acme."),
        *("The first line should be: I live in Oslo now.", "I want the first line to be: My name is Viktor."),
        *("Write on the card: My name is Viktor.", "The guy next to me: I work at Acme.", "He goes - I quit Acme."),
        *("The caption should read: I am vegan.", "Their slogan: We live in Bern.", "And he went... I work at Acme."),
    ],
)
def test_a_text_that_others_may_have_written_fills_and_ends_nothing(text: str) -> None:
    assert {(fact.key, fact.action_hint) for fact in read(text)} <= {(None, "new")}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("I no longer live in Rome. I live in Bern now.", {None, "home_city"}),
        ("Update: I moved to Oslo.", {"home_city"}),
        ("I moved back to Oslo.", {"home_city"}),
        ("I moved to Oslo this year. I'm vegan.", {"home_city", "diet"}),
        ("I moved to Oslo. I work as a translator at Acme.", {None, "home_city"}),
        ("I work at Acme and I live in Bern.", {"employer", "home_city"}),
        ("I live in Oslo. I'm allergic to nuts. I'm allergic to milk.", {"home_city", "allergy"}),
        ("I moved to Oslo. Can you recommend a gym?", {"home_city"}),
        ("I have been working at Acme for two years.", {"employer"}),
    ],
)
def test_what_goes_with_a_statement_takes_nothing_from_it(text: str, keys: set[str | None]) -> None:
    assert {fact.key for fact in read(text)} == keys


@pytest.mark.parametrize("text", ["Otto\nI live in Oslo now.\nRita\nI am vegan.", "I live in Oslo\nI am vegan"])
def test_lines_without_an_end_may_be_of_several_and_fill_no_slot(text: str) -> None:
    assert {(fact.key, fact.action_hint) for fact in read(text)} == {(None, "new")}


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
