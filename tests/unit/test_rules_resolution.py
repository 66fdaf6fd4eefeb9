import pytest

from schemas.facts import Candidate, ExtractedFact
from streams.prompts.conflicts import number
from streams.prompts.resolve import Verdict, parse_resolution, resolution_prompt
from streams.providers.rules import RuleModel
from streams.providers.rules.reading import read_turn
from tests.conversations import fact, known, turn, user


def said(content: str) -> tuple[ExtractedFact, ...]:
    return read_turn(turn(user(content), speaker="Alice"))


def remembered(content: str) -> tuple[Candidate, ...]:
    return tuple(
        known(index, fact.text, key=fact.key, value=fact.value) for index, fact in enumerate(said(content), start=1)
    )


async def verdicts(new: tuple[ExtractedFact, ...], old: tuple[Candidate, ...]) -> tuple[Verdict, ...]:
    """What the rules decide, through the parser that a language model's reply goes through."""
    conflicts = number([(fact, old) for fact in new])
    reply = await RuleModel().complete(resolution_prompt(conflicts))
    parsed = parse_resolution(reply.text, conflicts)
    assert parsed.complaints == ()
    assert parsed.value is not None
    return parsed.value


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        ("I live in Berlin.", "I moved to Munich.", "REPLACE"),
        ("I live in Berlin.", "I moved from Berlin to Munich last month.", "REPLACE"),
        ("I live in Berlin.", "I no longer live in Berlin.", "REPLACE"),
        ("I live in Berlin since 2019.", "I don't live in Berlin anymore.", "REPLACE"),
        ("I live in Berlin.", "Actually, I never lived in Berlin.", "CONTRADICT"),
        ("I live in Berlin.", "I live in Berlin.", "KEEP"),
        ("I live in Berlin.", "My sister lives in Berlin.", "ADD"),
        ("I work at ACME.", "I work at ACME as a nurse.", "MERGE"),
        ("I work at ACME as a nurse.", "I work at ACME.", "KEEP"),
        ("I work at ACME.", "I left ACME in March.", "REPLACE"),
        ("I work at ACME.", "I joined Bosch.", "REPLACE"),
        ("I use VS Code.", "I switched from VS Code to Cursor.", "REPLACE"),
        ("I use VS Code.", "I use Cursor now.", "REPLACE"),
        ("I like coffee.", "I switched from coffee to tea.", "REPLACE"),
        ("I like coffee.", "I don't like coffee.", "CONTRADICT"),
        ("I like coffee.", "I don't like coffee anymore.", "REPLACE"),
        ("I like coffee.", "I don't like coffee in the morning.", "ADD"),
        ("I love coffee.", "I like coffee.", "KEEP"),
        ("I like coffee.", "I like tea.", "ADD"),
        ("I hate jazz.", "I love jazz now.", "REPLACE"),
        ("I have a dog.", "I have a cat.", "ADD"),
        ("I have a dog.", "I have a dog called Rex.", "MERGE"),
        ("I have two kids.", "I have three kids.", "REPLACE"),
        ("My birthday is May 3.", "My birthday is May 4.", "CONTRADICT"),
        ("My favourite colour is blue.", "My favourite colour is red.", "REPLACE"),
        ("I'm allergic to nuts.", "I'm not allergic to nuts.", "CONTRADICT"),
        ("I'm allergic to nuts.", "I'm allergic to cats.", "ADD"),
        ("I'm vegetarian.", "I'm not vegetarian anymore.", "REPLACE"),
        ("I never eat meat.", "I do not eat meat.", "KEEP"),
        ("I'm planning to visit Japan.", "I'm planning to visit Japan in October.", "MERGE"),
        ("I go to the gym every Monday.", "I go to the gym every Tuesday.", "ADD"),
    ],
)
async def test_a_new_fact_stands_to_a_known_one(old: str, new: str, action: str) -> None:
    (verdict,) = await verdicts(said(new), remembered(old))
    assert verdict.action == action
    assert verdict.targets == (() if action == "ADD" else (1,))
    assert (verdict.text is not None) == (action == "MERGE")


async def test_a_known_fact_is_ended_once() -> None:
    new = said("I moved to Rome. I moved to Oslo.")
    assert [verdict.action for verdict in await verdicts(new, remembered("I live in Berlin."))] == ["REPLACE", "ADD"]


async def test_all_known_values_of_a_slot_are_replaced() -> None:
    (verdict,) = await verdicts(said("I moved to Oslo."), remembered("I live in Berlin. I live in Rome."))
    assert (verdict.action, verdict.targets) == ("REPLACE", (1, 2))


async def test_facts_about_others_are_let_alone() -> None:
    (verdict,) = await verdicts(
        said("I moved to Oslo."), (known(1, "Bob lives in Rome.", key="home_city", value="Rome"),)
    )
    assert verdict.action == "ADD"


async def test_a_fact_without_a_subject_is_added() -> None:
    (verdict,) = await verdicts((fact("Wohnt in Berlin."),), (known(1, "Wohnt in Rom."),))
    assert verdict.action == "ADD"
