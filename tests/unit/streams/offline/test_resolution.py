from datetime import UTC, datetime

import pytest

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.llm.conflict_list import number_conflicts
from mnemolog.streams.llm.resolve_prompt import ParsedDecision, parse_resolution, resolution_prompt
from mnemolog.streams.offline import RuleModel
from mnemolog.streams.offline.reading import read_turn
from tests.support.builders.prompts import MONDAY, fact, known_fact, turn, user


def said(content: str) -> tuple[ExtractedFact, ...]:
    return read_turn(turn(user(content), speaker="Alice"))


def remembered(content: str, speaker: str = "Alice") -> tuple[Candidate, ...]:
    facts = read_turn(turn(user(content), speaker=speaker))
    kept = ("key", "value", "category", "subject", "excerpt", "valid_until", "single_valued")
    return tuple(
        known_fact(index, fact.text, **{name: getattr(fact, name) for name in kept})
        for index, fact in enumerate(facts, start=1)
    )


async def verdicts(new: tuple[ExtractedFact, ...], old: tuple[Candidate, ...]) -> tuple[ParsedDecision, ...]:
    """What the rules decide, through the parser that a language model's reply goes through."""
    conflicts = number_conflicts([(fact, old) for fact in new], said_at=MONDAY)
    reply = await RuleModel().complete(resolution_prompt(conflicts))
    parsed = parse_resolution(reply.text, conflicts)
    assert parsed.complaints == ()
    assert parsed.value is not None
    return parsed.value


CASES = {
    "a move": [
        ("I live in Berlin.", "I moved to Munich.", "REPLACE"),
        ("I live in Berlin.", "I moved from Berlin to Munich last month.", "REPLACE"),
        ("I live in Berlin.", "My flat is in Munich now.", "REPLACE"),
        ("I live in Munich.", "I moved from Pasing to Sendling.", "SIMILAR"),
        ("I live in Berlin.", "My sister lives in Munich.", "ADD"),
        ("I live in Berlin.", "I live in Berlin with my cat.", "MERGE"),
    ],
    "a job": [
        ("I work at ACME.", "I work at ACME as a nurse.", "MERGE"),
        ("I work at ACME as a nurse.", "I work at ACME.", "KEEP"),
        ("I work at ACME.", "I joined Bosch.", "REPLACE"),
        ("I work at ACME.", "I also work at Bosch.", "SIMILAR"),
        ("I work as a nurse.", "I became a teacher.", "SIMILAR"),
        ("I work as a nurse.", "I work as a teacher now.", "REPLACE"),
    ],
    "a taste": [
        ("I use VS Code.", "I switched from VS Code to Cursor.", "REPLACE"),
        ("I use VS Code.", "I use Cursor now.", "REPLACE"),
        ("I like coffee.", "I switched from coffee to tea.", "REPLACE"),
        ("I like coffee.", "I don't like coffee.", "REPLACE"),
        ("I like coffee.", "I don't like coffee in the morning.", "SIMILAR"),
        ("I love coffee.", "I like coffee.", "KEEP"),
        ("I like coffee.", "I like tea.", "ADD"),
        ("I hate jazz.", "I love jazz now.", "REPLACE"),
        ("I no longer like jazz.", "I hate jazz.", "SIMILAR"),
        ("I prefer coffee.", "I prefer tea to coffee.", "REPLACE"),
        ("My favourite colour is blue.", "My favourite colour is red.", "REPLACE"),
    ],
    "more of the same": [
        ("I have a dog.", "I have a dog called Rex.", "MERGE"),
        ("I have a dog.", "My dog is called Rex.", "EXTEND"),
        ("I have a dog called Rex.", "Rex is seven years old.", "EXTEND"),
        ("I have a dog.", "I have a cat.", "ADD"),
        ("I'm a vegetarian.", "I'm a vegetarian who eats fish.", "EXTEND"),
        ("I'm planning to visit Japan.", "I'm planning to visit Japan in October.", "MERGE"),
    ],
    "what never was so": [
        ("I live in Berlin.", "Actually, I never lived in Berlin.", "CONTRADICT"),
        ("I was born in Rome.", "I was born in Milan, not in Rome.", "CONTRADICT"),
        ("My boss is Eva.", "I meant my boss is Ida.", "CONTRADICT"),
        ("My birthday is May 3.", "My birthday is May 4.", "CONTRADICT"),
        ("I'm allergic to nuts.", "I'm not allergic to nuts.", "CONTRADICT"),
        ("I have two brothers.", "I was wrong, I have three brothers.", "CONTRADICT"),
    ],
    "for a while": [
        ("I live in Berlin.", "This week I'm in Rome.", "ADD"),
        ("I live in Berlin.", "I live in Rome until Friday.", "ADD"),
        ("I drink coffee.", "I don't drink coffee this week.", "SIMILAR"),
        ("I drive a Volvo.", "While my car is in repair I take the bus.", "ADD"),
    ],
    "an end": [
        ("I live in Berlin.", "I no longer live in Berlin.", "RETRACT"),
        ("I live in Berlin since 2019.", "I don't live in Berlin anymore.", "RETRACT"),
        ("I work at ACME.", "I left ACME in March.", "RETRACT"),
        ("I work at ACME as a nurse.", "I was laid off by ACME.", "RETRACT"),
        ("I work at ACME.", "I retired.", "RETRACT"),
        ("I like coffee.", "I don't like coffee anymore.", "RETRACT"),
        ("I drink coffee every day.", "I no longer drink coffee in the evening.", "SIMILAR"),
        ("I smoke ten cigarettes a day.", "I quit smoking.", "RETRACT"),
        ("I drive a Volvo.", "I sold my Volvo.", "RETRACT"),
        ("I like Volvos.", "I sold my Volvo.", "SIMILAR"),
        ("I have a cat called Tom.", "Tom died yesterday.", "RETRACT"),
        ("My aunt is called Rosa.", "My aunt passed away.", "ADD"),
        ("My girlfriend is Lena.", "I broke up with Lena.", "ADD"),
        ("I work at ACME.", "My contract at ACME ends on 31 August.", "EXPIRE"),
        ("I like ACME.", "My contract at ACME ends on 31 August.", "SIMILAR"),
    ],
    "so again": [
        ("I no longer work at ACME.", "I work at ACME again.", "REPLACE"),
        ("I left ACME.", "I work at ACME.", "REPLACE"),
        ("I left ACME.", "I work at Bosch.", "ADD"),
    ],
    "numbers": [
        ("I have two kids.", "I have three kids.", "REPLACE"),
        ("I run 15 miles a week.", "I run fifteen miles a week.", "KEEP"),
        ("My team meets at 10.", "My team meets at 11.", "REPLACE"),
        ("I go to the gym every Monday.", "I go to the gym every Tuesday.", "SIMILAR"),
        ("My rent is 900 euros.", "My rent is 950 euros now.", "REPLACE"),
        ("My rent is 900 euros.", "My rent is 950 dollars.", "SIMILAR"),
        ("My exam is on 3 June.", "My exam was moved to 4 June.", "REPLACE"),
        ("My exam is on 3 June.", "My exam is on 4 June.", "SIMILAR"),
    ],
    "others": [
        ("My brother Tom lives in Rome.", "My brother Tom moved to Oslo.", "REPLACE"),
        ("My brother Tom lives in Rome.", "My colleague Tom lives in Oslo.", "ADD"),
        ("Tom from the gym lives in Rome.", "My brother Tom moved to Oslo.", "ADD"),
        ("My parents live in Rome.", "My parents live in Oslo now.", "REPLACE"),
        ("I love opera.", "My husband hates opera.", "ADD"),
    ],
    "the same": [
        ("I live in Berlin.", "I live in Berlin.", "KEEP"),
        ("I live in Berlin.", "Berlin is where I live.", "KEEP"),
        ("I work at ACME.", "ACME is my employer.", "KEEP"),
        ("I never eat meat.", "I do not eat meat.", "KEEP"),
        ("I'm allergic to nuts.", "I'm allergic to cats.", "SIMILAR"),
    ],
}


@pytest.mark.parametrize(("old", "new", "action"), [case for cases in CASES.values() for case in cases])
async def test_a_new_fact_stands_to_a_known_one(old: str, new: str, action: str) -> None:
    (verdict,) = await verdicts(said(new), remembered(old))
    assert verdict.verdict == action
    assert verdict.targets == (() if action == "ADD" else (1,))
    assert (verdict.text is not None) == (action == "MERGE")
    assert (verdict.ended_at is not None) == (action == "EXPIRE")


async def test_an_announced_end_is_the_end_of_its_day() -> None:
    (verdict,) = await verdicts(said("My contract at ACME ends on 31 August."), remembered("I work at ACME."))
    assert verdict.ended_at == datetime(2023, 9, 1, tzinfo=UTC)


async def test_what_began_after_an_announced_end_is_not_ended_by_it() -> None:
    later = tuple(
        candidate.model_copy(update={"true_from": datetime(2024, 1, 1, tzinfo=UTC)})
        for candidate in remembered("I work at ACME.")
    )
    (verdict,) = await verdicts(said("My contract at ACME ends on 31 August."), later)
    assert verdict.verdict != "EXPIRE"


async def test_facts_of_one_turn_are_held_against_one_another() -> None:
    new = said("I live in Berlin. I moved to Munich.")
    (verdict,) = await verdicts(new[1:], remembered("I live in Berlin."))
    assert verdict.verdict == "REPLACE"


async def test_an_end_is_told_before_what_stands_beside() -> None:
    new = said("My parents sold the house in Rome and moved to Oslo.")
    assert [verdict.verdict for verdict in await verdicts(new, remembered("My parents live in Rome."))] == [
        "ADD",
        "REPLACE",
    ]


async def test_a_known_fact_is_ended_once() -> None:
    new = said("I moved to Rome. I moved to Oslo.")
    assert [verdict.verdict for verdict in await verdicts(new, remembered("I live in Berlin."))] == ["REPLACE", "ADD"]


async def test_all_known_values_of_a_slot_are_replaced() -> None:
    (verdict,) = await verdicts(said("I moved to Oslo."), remembered("I live in Berlin. I live in Rome."))
    assert (verdict.verdict, verdict.targets) == ("REPLACE", (1, 2))


async def test_facts_about_others_are_let_alone() -> None:
    (verdict,) = await verdicts(
        said("I moved to Oslo."), (known_fact(1, "Bob lives in Rome.", key="home_city", value="Rome"),)
    )
    assert verdict.verdict == "ADD"


async def test_a_fact_without_a_subject_is_added() -> None:
    (verdict,) = await verdicts((fact("Wohnt in Berlin."),), (known_fact(1, "Wohnt in Rom."),))
    assert verdict.verdict == "ADD"
