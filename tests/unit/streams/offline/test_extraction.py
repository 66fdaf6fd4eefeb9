from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.extract_prompt import extraction_prompt, parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.offline import RuleModel
from tests.support.builders.prompts import extraction, user


async def facts_of(subject: ExtractionTask) -> tuple[ExtractedFact, ...]:
    """What the rules say, through the parser that a language model's reply goes through."""
    reply = await RuleModel().complete(extraction_prompt(subject))
    parsed = parse_extraction(reply.text, subject)
    assert parsed.complaints == ()
    assert parsed.value is not None
    return parsed.value


async def read(sentence: str) -> tuple[ExtractedFact, ...]:
    return await facts_of(extraction(user(sentence), speaker="Alice"))


@pytest.mark.parametrize(
    ("sentence", "text", "key", "value", "category"),
    [
        ("My name is Ana Silva.", "Alice is called Ana Silva.", "name", "Ana Silva", "identity"),
        ("I'm 34 years old", "Alice is 34 years old.", "age", "34", "identity"),
        ("My birthday is on March 5th.", "Alice's birthday is March 5th.", "birthday", "March 5th", "identity"),
        ("I was born in Lisbon.", "Alice was born in Lisbon.", "birth_place", "Lisbon", "identity"),
        ("Well, I live in St. Gallen now.", "Alice lives in St. Gallen.", "home_city", "St. Gallen", "identity"),
        ("We live in Berlin with my mum.", "Alice lives in Berlin with their mum.", "home_city", "Berlin", "identity"),
        ("I've moved from Berlin to Bonn.", "Alice lives in Bonn.", "home_city", "Bonn", "identity"),
        ("I'm from Brazil originally.", "Alice is from Brazil.", "home_town", "Brazil", "identity"),
        ("I speak German and French.", "Alice speaks German and French.", None, "German and French", "identity"),
        ("I'm learning Spanish.", "Alice is learning Spanish.", None, "Spanish", "task_context"),
        ("I work at ACME.", "Alice works at ACME.", "employer", "ACME", "professional"),
        ("I work for Dr. Who as a nurse", "Alice works at Dr. Who as a nurse.", "employer", "Dr. Who", "professional"),
        ("I'm an architect.", "Alice works as an architect.", "job_title", "architect", "professional"),
        ("I joined Siemens!", "Alice works at Siemens.", "employer", "Siemens", "professional"),
        ("I left ACME.", "Alice left ACME.", None, "no longer ACME", "professional"),
        ("I study physics at MIT.", "Alice studies physics at MIT.", "field_of_study", "physics", "professional"),
        ("I'm allergic to peanuts.", "Alice is allergic to peanuts.", "allergy", "peanuts", "health"),
        ("I'm not allergic to nuts.", "Alice is not allergic to nuts.", None, "not nuts", "health"),
        ("I was diagnosed with asthma", "Alice has asthma.", None, "asthma", "health"),
        ("I'm vegetarian.", "Alice is vegetarian.", "diet", "vegetarian", "hard_preference"),
        ("I never eat meat.", "Alice never eats meat.", None, "never eats meat", "hard_preference"),
        ("My sister is called Maria.", "Alice's sister is called Maria.", "sister", "Maria", "relationship"),
        ("I have two kids.", "Alice has two kids.", "children", "two kids", "relationship"),
        ("I'm married to Bo.", "Alice is married to Bo.", "marital_status", "married", "relationship"),
        ("I have a dog called Rex.", "Alice has a dog called Rex.", "dog", "Rex", "other"),
        ("My salary is 50,000 euros.", "Alice's salary is 50,000 euros.", "salary", "50,000 euros", "finance"),
        ("I bank with N26.", "Alice's bank is N26.", "bank", "N26", "finance"),
        ("I really love hiking.", "Alice loves hiking.", None, "hiking", "soft_preference"),
        ("I hate Mondays.", "Alice hates Mondays.", None, "not Mondays", "soft_preference"),
        ("I don\u2019t like tea.", "Alice does not like tea.", None, "not tea", "soft_preference"),
        ("I prefer tea to coffee.", "Alice prefers tea to coffee.", None, "tea", "soft_preference"),
        (
            "My favorite color is blue.",
            "Alice's favourite color is blue.",
            "favourite_color",
            "blue",
            "soft_preference",
        ),
        ("I use Firefox.", "Alice uses Firefox.", "browser", "Firefox", "soft_preference"),
        ("I play the guitar.", "Alice plays guitar.", None, "guitar", "soft_preference"),
        ("I go to the gym every Monday.", "Alice goes to the gym every Monday.", None, None, "other"),
        ("My team meets every Monday at 10 a.m.", "Alice's team meets every Monday at 10 a.m.", None, None, "other"),
        ("I drive a Volvo.", "Alice drives a Volvo.", "car", "a Volvo", "other"),
        ("I'm going to Paris.", "Alice is going to Paris.", None, "going to Paris", "task_context"),
        ("I need to buy milk.", "Alice needs to buy milk.", None, "buy milk", "task_context"),
    ],
)
async def test_a_statement_becomes_a_fact(
    sentence: str, text: str, key: str | None, value: str | None, category: str
) -> None:
    (fact,) = await read(sentence)
    assert (fact.text, fact.key, fact.category) == (text, key, category)
    assert value is None or fact.value == value
    assert fact.search_text.startswith(text)
    assert fact.text.startswith(fact.subject or "-")
    assert fact.certainty == "explicit"


@pytest.mark.parametrize(
    ("sentence", "text", "event_time", "valid_until"),
    [
        ("I moved to Bonn yesterday.", "Alice lives in Bonn since 2023-05-07.", (2023, 5, 7), None),
        ("Last week, we went to Oslo.", "Alice went to Oslo in the week of 2023-05-01.", (2023, 5, 1), None),
        ("I work at ACME since 2019.", "Alice works at ACME since 2019.", (2019, 1, 1), None),
        ("I ran a marathon two years ago.", "Alice ran a marathon in 2021.", (2021, 1, 1), None),
        ("I met Tom on Friday.", "Alice met Tom on 2023-05-05.", (2023, 5, 5), None),
        ("I'm flying to Oslo on Friday.", "Alice is flying to Oslo on 2023-05-12.", None, (2023, 5, 13)),
        ("I plan to visit Rome in May.", "Alice plans to visit Rome in May 2023.", None, (2023, 6, 1)),
        (
            "I have to finish my thesis by June 3rd",
            "Alice has to finish their thesis by 2023-06-03.",
            None,
            (2023, 6, 4),
        ),
        ("My deadline is next Friday.", "Alice's deadline is on 2023-05-12.", None, (2023, 5, 13)),
        ("I live in Rome until 2024-01-31.", "Alice lives in Rome until 2024-01-31.", None, (2024, 2, 1)),
    ],
)
async def test_times_are_counted_from_when_it_was_said(
    sentence: str, text: str, event_time: tuple[int, int, int] | None, valid_until: tuple[int, int, int] | None
) -> None:
    (fact,) = await read(sentence)
    assert fact.text == text
    assert fact.event_time == (datetime(*event_time, tzinfo=UTC) if event_time else None)
    assert fact.valid_until == (datetime(*valid_until, tzinfo=UTC) if valid_until else None)


async def test_an_appointment_is_told_with_its_hour_and_has_not_happened() -> None:
    (fact,) = await read("I have a dentist appointment tomorrow at 3 pm.")
    assert fact.text == "Alice has a dentist appointment at 3 pm on 2023-05-09."
    assert fact.event_time is None
    assert fact.valid_until == datetime(2023, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("I live in Berlin and work at ACME.", ["Alice lives in Berlin.", "Alice works at ACME."]),
        ("I hate tea but love coffee", ["Alice hates tea.", "Alice loves coffee."]),
        ("I like tea. I like tea!\nI have a cat.", ["Alice likes tea.", "Alice has a cat."]),
        ("I don't live in Rome anymore, I moved to Bonn", ["Alice no longer lives in Rome.", "Alice lives in Bonn."]),
        ("My wife Ana and I live in Oslo.", ["Alice's wife is called Ana.", "Alice lives in Oslo."]),
        (
            "I switched from VS Code to Cursor. Love the AI features.",
            ["Alice uses Cursor (switched from VS Code).", "Alice loves the AI features."],
        ),
        ('Bo said "I like jam." I like tea.', ["Alice likes tea."]),
        ("Caroline: I moved to Oslo.\nI like tea.", ["Caroline lives in Oslo.", "Alice likes tea."]),
    ],
)
async def test_several_statements_are_several_facts(content: str, texts: list[str]) -> None:
    assert [fact.text for fact in await read(content)] == texts


@pytest.mark.parametrize(
    "content",
    [
        "Do I live in Rome?",
        "If I lived in Rome, I'd work at ACME.",
        "I would love to visit Rome.",
        "I wish I had a dog.",
        'My boss told me "listen, I live in Rome".',
        'She said: "I am old. I live in Rome. I like tea."',
        'I love the song "My Way".',
        "> I live in Rome",
        "```\nI live in Rome\n```",
        "Hey Mel! Good to see you!",
        "I have a question.",
        "I'm so happy for you!",
        "I'll let you know.",
        "I bought this.",
        "Ich wohne in Berlin.",
        "She lives in Rome.",
        "",
        "I like " + "very " * 100 + "long sentences.",
        "Oh sure, I love getting up at five.",
        "I moved to Mars. Just kidding!",
        "Yeah right, I'm a vegetarian.",
        "I almost bought a boat.",
        "I'm thinking of moving to Oslo.",
        "In the novel I live in Rome.",
        "My brother says I hate jazz.",
        "It's not that I don't like my job.",
        "I have no idea.",
        "I'm in a hurry.",
        "I haven't read it.",
    ],
)
async def test_what_states_nothing_about_the_speaker_gives_no_fact(content: str) -> None:
    assert await read(content) == ()


@pytest.mark.parametrize(
    ("sentence", "text", "hint"),
    [
        ("I no longer live in Rome.", "Alice no longer lives in Rome.", "retract"),
        ("I used to work at ACME.", "Alice no longer works at ACME.", "retract"),
        ("Actually, I have never lived in Rome.", "Alice never lived in Rome.", "retract"),
        ("I was never allergic to nuts.", "Alice was never allergic to nuts.", "retract"),
        ("Sorry, I'm not vegan.", "Alice is not vegan.", "retract"),
        ("I don't like tea.", "Alice does not like tea.", "new"),
        ("I moved to Bonn.", "Alice lives in Bonn.", "update"),
    ],
)
async def test_denials_and_updates_say_so(sentence: str, text: str, hint: str) -> None:
    (fact,) = await read(sentence)
    assert (fact.text, fact.action_hint) == (text, hint)
    assert hint == "update" or fact.key is None


@pytest.mark.parametrize(
    ("sentence", "text", "hint"),
    [
        ("I sold my Volvo.", "Alice sold their Volvo.", "retract"),
        ("I have given up smoking.", "Alice no longer smokes.", "retract"),
        ("I quit smoking two weeks ago.", "Alice no longer smokes since the week of 2023-04-24.", "retract"),
        ("I've gone off jazz.", "Alice no longer likes jazz.", "retract"),
        ("I was fired by ACME.", "Alice no longer works at ACME.", "retract"),
        ("I retired.", "Alice retired.", "update"),
        ("Ana and I broke up.", "Alice broke up with Ana.", "retract"),
        ("My dog Rex died.", "Alice's dog Rex died.", "retract"),
        ("I don't smoke.", "Alice does not smoke.", "new"),
        ("I have no car.", "Alice has no car.", "new"),
    ],
)
async def test_ends_are_told(sentence: str, text: str, hint: str) -> None:
    (fact,) = await read(sentence)
    assert (fact.text, fact.action_hint) == (text, hint)


@pytest.mark.parametrize(
    ("sentence", "text", "until"),
    [
        ("My contract at ACME ends on 31 August.", "Alice's contract at ACME ends on 2023-08-31.", (2023, 9, 1)),
        ("My lease runs out at the end of May.", "Alice's lease ends on 2023-05-31.", (2023, 6, 1)),
        ("I'm leaving ACME in June.", "Alice is leaving ACME in June 2023.", (2023, 7, 1)),
        ("This week I'm in Rome.", "Alice is in Rome in the week of 2023-05-08.", (2023, 5, 15)),
        ("I live in Rome this month.", "Alice lives in Rome in May 2023.", (2023, 6, 1)),
        ("I work at ACME for the next two weeks.", "Alice works at ACME until 2023-05-22.", (2023, 5, 23)),
    ],
)
async def test_what_will_end_says_when_and_fills_no_slot(sentence: str, text: str, until: tuple[int, int, int]) -> None:
    (fact,) = await read(sentence)
    assert (fact.text, fact.key, fact.valid_until) == (text, None, datetime(*until, tzinfo=UTC))


async def test_an_announced_end_has_not_happened() -> None:
    (fact,) = await read("My contract at ACME ends on 31 August.")
    assert (fact.event_time, fact.action_hint) == (None, "retract")


async def test_what_holds_meanwhile_says_so() -> None:
    (fact,) = await read("While my car is in repair, I take the bus.")
    assert (fact.text, fact.key) == ("Alice takes the bus while their car is in repair.", None)


@pytest.mark.parametrize(
    ("sentence", "text", "subject", "key"),
    [
        (
            "My brother Tom lives in Rome.",
            "Alice's brother Tom lives in Rome.",
            "Alice's brother Tom",
            "brother_home_city",
        ),
        ("Tom, my boss, moved to Oslo.", "Alice's boss Tom lives in Oslo.", "Alice's boss Tom", "boss_home_city"),
        ("Tom from my choir is a vegan.", "Tom from Alice's choir is vegan.", "Tom from Alice's choir", None),
        ("My sister no longer works at ACME.", "Alice's sister no longer works at ACME.", "Alice's sister", None),
        ("My parents live in Rome.", "Alice's parents live in Rome.", "Alice's parents", "parents_home_city"),
        ("Tom speaks French.", "Tom speaks French.", "Tom", None),
        ("My office is in Bonn.", "Alice's office is in Bonn.", "Alice's office", "office_location"),
        ("My middle name is Zoe.", "Alice's middle name is Zoe.", "Alice's middle name", "middle_name"),
    ],
)
async def test_what_is_said_of_others_is_theirs(sentence: str, text: str, subject: str, key: str | None) -> None:
    fact = (await read(sentence))[0]
    assert (fact.text, fact.subject) == (text, subject)
    assert key is None or (fact.key, fact.single_valued) == (key, True)
    assert fact.category in ("relationship", "other")


async def test_he_and_she_are_the_last_one_spoken_of() -> None:
    texts = [fact.text for fact in await read("My sister works at ACME. She lives in Rome and speaks French.")]
    assert texts == ["Alice's sister works at ACME.", "Alice's sister lives in Rome.", "Alice's sister speaks French."]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Rome.", "Rome is where I live."),
        ("I live in Rome.", "My home is in Rome."),
        ("I work at ACME.", "ACME is my employer."),
        ("My boss is Eva.", "Eva is my boss."),
        ("I was born in Rome.", "I was not born in Bonn but in Rome."),
        ("I take 5 mg of ramipril.", "It's 5 mg of ramipril that I take."),
        ("I run every morning.", "Every morning I run."),
    ],
)
async def test_one_statement_in_several_orders_is_one_text(one: str, other: str) -> None:
    assert [fact.text for fact in await read(one)] == [fact.text for fact in await read(other)]


@pytest.mark.parametrize(
    "content", ["Correction: I live in Rome.", "I live in Rome. I was wrong yesterday.", "I meant I live in Rome."]
)
async def test_who_corrects_is_quoted_with_the_correction(content: str) -> None:
    assert (await read(content))[0].excerpt == content.strip()


async def test_doubt_weakens_certainty() -> None:
    (fact,) = await read("I think I like jazz.")
    assert fact.certainty == "weak"


@pytest.mark.parametrize(
    ("name", "speaker", "subject"), [("Bo", "Alice", "Bo"), (None, "Alice", "Alice"), (None, None, "The user")]
)
async def test_the_subject_is_whoever_is_known_to_speak(name: str | None, speaker: str | None, subject: str) -> None:
    (fact,) = await facts_of(extraction(user("I like tea.", name), speaker=speaker))
    assert fact.text == f"{subject} likes tea."


async def test_only_users_are_read_and_recalled_text_is_not() -> None:
    assistant = Message(role="assistant", content="I live in Rome.")
    assert await facts_of(extraction(assistant, user("Fine."), recalled=["I live in Rome."])) == ()


async def test_an_unknown_category_falls_back_to_a_configured_one() -> None:
    subject = ExtractionTask(turn=extraction(user("I like tea.")).turn, categories=("work", "rest"))
    (fact,) = await facts_of(subject)
    assert fact.category == "rest"


async def test_no_more_facts_than_a_reply_may_hold() -> None:
    assert len(await read(" ".join(f"I like tea {number}." for number in range(200)))) == 100


_PIECES = st.sampled_from(
    [
        "I ",
        "my ",
        "live in ",
        "Rome",
        ". ",
        ", and ",
        "do not ",
        "yesterday ",
        "at 3 pm ",
        "wife Ana ",
        "on Friday ",
        "\n",
    ]
)


@given(st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=25).map("".join))
async def test_whatever_is_said_the_reply_is_valid(content: str) -> None:
    await read(content.replace("\x00", ""))
