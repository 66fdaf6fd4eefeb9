"""What two statements mean for each other, through the prompt and the parser of a language model's reply."""

from datetime import timedelta

import pytest

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.reply_checks import ParsedDecision
from mnemolog.streams.llm.resolve_prompt import parse_resolution, question_prompt
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.model import RuleModel
from mnemolog.testing import InMemoryClient
from tests.support.builders.prompts import MONDAY, known_fact, turn, user
from tests.support.builders.questions import number_conflicts

VERDICTS = {
    "KEEP": [
        ("I live in Bern.", "As I said, I live in Bern."),
        ("My birthday is on June 14.", "My birthday is on the 14th of June."),
        ("I run 15 kilometres a week", "I run fifteen kilometres a week"),
    ],
    "REPLACE": [
        ("I live in Berlin.", "I moved from Berlin to Munich."),
        ("I live in Berlin.", "I live in Munich now."),
        ("I live in Berlin.", "I moved to Munich."),
        ("I live in Berlin.", "I live in Munich."),  # held by the guard high_risk
        ("I work at Acme.", "I started working at Bosch."),
        ("I'm vegetarian.", "I'm vegan now."),
        ("I like tea.", "I don't like tea."),
        ("I like tea.", "I like tea, not."),
        ("Tea I like.", "No, tea I don't like."),
        ("i like Turkey.", "I don't like Turkey at all!"),
        ("I don't like aniseed.", "I like aniseed now."),
        ("I love aniseed.", "I hate aniseed."),
        ("I'm not religious.", "I am religious."),
        ("I no longer work at Acme.", "I work at Acme again."),
        ("I'm not allergic to nuts.", "I'm allergic to nuts."),
        ("I'm not vegan.", "I'm vegan."),
        ("I don't live in Rome.", "I live in Rome."),
        ("I don't work at Acme.", "I work at Acme."),
    ],
    "RETRACT": [
        ("I work at Acme.", "I no longer work at Acme."),
        ("I work at Acme.", "I quit my job at Acme."),
        ("I have a dog called Rex.", "Rex passed away."),
        ("My cat is called Miso.", "My cat Miso died last week."),
        ("I'm vegan.", "I'm no longer vegan."),
        ("I work at Bosch.", "I quit at Bosch."),
        ("I work at Bosch.", "Bosch let me go."),
        ("I have a horse called Fury.", "I sold my horse."),
        ("My dog is called Rudi.", "Rudi had to be put down."),
        ("My girlfriend is called Olga.", "Olga left me."),
        ("My wife is called Ana Keller.", "Ana is no longer my wife."),
        ("My girlfriend is called Olga.", "Olga is my ex now."),
        ("My girlfriend is called Olga.", "Olga and I aren't together anymore."),
        ("I live in Graz with my aunt.", "I no longer live in Graz."),
        ("My cat is called Minka.", "We had to put Minka down."),
        ("I have a horse called Fury.", "We sold Fury."),
        ("My girlfriend is called Olga.", "Olga and I broke up on Friday."),
        ("My girlfriend is called Olga.", "Olga broke up with me."),
        ("My girlfriend is called Olga.", "We broke up."),
        ("My girlfriend is called Olga.", "We are not together any more."),
        ("My partner is called Sam.", "My partner Sam and I have split up."),
        ("My wife is called Ines.", "We got divorced."),
        ("My husband is called Ivo.", "I divorced my husband."),
    ],
    "CONTRADICT": [
        ("I live in Rome.", "I don't live in Rome."),
        ("I have an exam on Monday.", "I have no exam on Monday."),
        ("I start at Acme on 1 December.", "I don't start at Acme on 1 December."),
        ("I'm flying to Rome on Friday.", "I'm not flying to Rome on Friday."),
        ("I will marry in July.", "I will not marry in July."),
        ("I'm allergic to nuts.", "I'm not allergic to nuts after all."),
        ("I'm allergic to nuts.", "Update: I'm no longer allergic to nuts, tested today"),
        ("My birthday is on June 14.", "My birthday is on June 15."),
        ("My name is Sam.", "My name is Tom."),
    ],
    "ADD": [
        ("Tom died.", "I have a dog called Tom."),
        ("My dog Rex passed away.", "My dog is called Rex."),
        ("the dog bites my brother Tom", "my brother Tom bites the dog"),
        ("I like turkey.", "I don't like Turkey."),
        ("I visit China.", "I don't visit china."),
        ("I hate polish.", "I love Polish."),
        ("I know Tom.", "I don't know, Tom."),
        ("I don't eat, Mum.", "I eat Mum."),
        ("I need mark.", "I no longer need Mark."),
        ("I love running.", "I can't run anymore."),
        ("I drink coffee every day.", "I no longer drink coffee in the evening."),
        ("I like my job.", "It's not that I don't like my job."),
        ("I drink coffee.", "She doesn't drink coffee."),
        ("I drink coffee.", "I don't always drink coffee."),
        ("I drink coffee.", "I don't drink coffee after 5."),
        ("I like my job.", "I don't like her job."),
        ("My sister is called Lena.", "It's not Lena, it's Lea"),
        ("I live in Bristol.", "I meant Bath, not Bristol."),
        ("I live in Rome.", "It was Milan, not Rome."),
        ("My husband is called Ivo.", "Ivo is no longer my husband, the divorce is final."),
        ("I have a sailing boat.", "We sold the sailing boat last summer."),
        ("I like horror films.", "I no longer like horror films, they keep me awake."),
        ("My cat is called Miso.", "My cat Miso died last week, she was old."),
        ("I live in Berlin.", "I have lived in Bern since 2010."),
        ("I like tea.", "Translate this. I don't like tea."),
        ("I like tea.", "How do you say this in Spanish? I hate tea."),
        ("My girlfriend is called Olga.", "My band is over. We broke up."),
        ("My girlfriend is called Olga.", "My girlfriend and I broke up last year."),
        ("My dog is called Rex.", "My dog died last year."),
        ("My dog is called Rex.", "Rex died two months ago."),
        ("I live in Rome.", "I used to live in Rome, and I still do."),
        ("I work at Acme.", "I used to work at Acme. I still do."),
        ("I work at Acme.", "I quit smoking."),
        ("I work at Acme.", "I nearly quit at Acme."),
        ("I have a dog called Rex.", "Rex died laughing."),
        ("I have a dog called Rex.", "Rex nearly died."),
        ("I have a dog called Rex.", "We gave Rex to the vet for a day."),
        ("I have a dog called Rex.", "Rex is dead tired."),
        ("My girlfriend is called Olga.", "Olga and I broke up the ice."),
        ("My girlfriend is called Olga.", "Olga and I split up to find the cat."),
        ("My girlfriend is called Olga.", "Olga and I almost broke up."),
        ("My girlfriend is called Olga.", "Olga and I broke up ten years ago."),
        ("My girlfriend is called Olga.", "My sister said Olga and I broke up."),
        ("My girlfriend is called Olga.", "My parents divorced."),
        ("My girlfriend is called Olga.", "Olga left me a note."),
        ("My girlfriend is called Olga.", "Olga and I are not together right now."),
        ("My dog is called Rudi.", "We had to put our dog in the car."),
        ("My dog is called Rudi.", "My neighbour's dog died."),
        ("I work at Bosch.", "Bosch let me go home early."),
        ("My girlfriend is called Olga.", "My girlfriend, so to speak, and I split up the bill."),
        ("My girlfriend is called Olga.", "My girlfriend's parents split up."),
        ("My sister is called Olga.", "Olga and I broke up."),
        ("My wife is called Ines.", "We broke up."),
        ("My wife is called Ines.", "Ines is divorced."),
        ("My husband is called Ivo.", "Ivo is no longer my boss."),
        ("My husband is called Ivo.", "Ivo is no longer my husband, the doctors say."),
        ("it's fine", "it's not fine"),
        ("I work at Acme.", "I work for Tom now."),
        *(
            ("I work at Acme.", text)
            for text in ("I work at New Relic.", "I work at Switched On", "I work at Bosch since 2010.")
        ),
        ("I work at Acme.", "My new employer is British."),
        ("I work at Acme.", "I started working with Kubernetes."),
        ("I work at Acme.", "I started working at Acme Labs."),
        ("I work at Acme.", "I don't just work at Acme, I own it."),
        ("I work at Acme.", "I don't work at Acme because of the money."),
        ("I work at Acme.", "I resigned from Acme and withdrew it."),
        ("I work at Acme.", "I work at Bosch now and then."),
        ("I work at Acme.", "I lost Acme."),
        ("I work at Acme.", "I started a job at Bosch ten years ago."),
        ("I'm vegetarian.", "I'm not a vegetarian because of animals."),
        ("I have a dog called Rex.", "Our previous dog Rex died."),
        ("I live in Berlin.", "I moved to the marketing team."),
        ("I work at Acme.", "I work with Kubernetes."),
        ("I live in Berlin.", "I moved in with Sam."),
        ("I live in Berlin.", "I'm in Rome until Friday."),
        ("I live in Berlin.", "My sister lives in Munich."),
        ("I live in Munich.", "I moved from Pasing to Sendling."),
        ("My brother is called Rex.", "Rex passed away."),
        ("I'm allergic to nuts.", "I'm not allergic to cats."),
        ("I work at Acme.", "I left Bosch."),
        ("I live in Paris.", "I don't live in Paris, Texas."),
        ("I live in London, Ontario.", "I live in London."),
        ("I have a dog called Rex.", "I have a dog called Bit."),
    ],
}


def said(content: str, speaker: str = "Alice") -> list[ExtractedFact]:
    return read_turn(turn(user(content), speaker=speaker))[0]


def remembered(content: str, speaker: str = "Alice") -> tuple[Candidate, ...]:
    kept = ("key", "value", "category", "subject", "excerpt", "valid_until", "single_valued", "action_hint")
    return tuple(
        known_fact(
            index,
            fact.text,
            **{name: getattr(fact, name) for name in kept},
            **({"event_time": fact.event_time, "true_from": fact.event_time} if fact.event_time else {}),
        )
        for index, fact in enumerate(said(content, speaker), start=1)
    )


async def verdicts(new: list[ExtractedFact], old: tuple[Candidate, ...]) -> tuple[ParsedDecision, ...]:
    conflicts = number_conflicts([(fact, old) for fact in new], said_at=MONDAY)
    reply = await RuleModel().complete(question_prompt(conflicts))
    parsed = parse_resolution(reply.text, conflicts)
    assert parsed.complaints == ()
    assert parsed.value is not None
    return parsed.value


@pytest.mark.parametrize(
    ("verdict", "known", "new"), [(verdict, *pair) for verdict in VERDICTS for pair in VERDICTS[verdict]]
)
async def test_a_new_statement_beside_a_known_one(verdict: str, known: str, new: str) -> None:
    assert {one.verdict for one in await verdicts(said(new), remembered(known))} == {verdict}


@pytest.mark.parametrize(
    ("known", "new", "is_told"),
    [
        *(("I'm vegan.", said, False) for said in ("I'm not vegan anymore :)", "By the way, I'm not vegan anymore!")),
        *(("I'm vegan.", said, False) for said in ("I'm not vegan anymore, I eat fish.", "I'm not vegan after all.")),
        *(("I'm vegan.", said, False) for said in ("I used to be vegan.", "I gave up being vegan, it was too hard.")),
        *(("I'm vegan.", said, False) for said in ("I was vegan until May.", "I was vegan for years, but no longer.")),
        (
            "I'm allergic to nuts.",
            "I outgrew it, I'm not allergic to nuts anymore!",
            False,
        ),  # it waits, and is disputed
        *(("I'm vegan.", said, True) for said in ("Tom says I'm not vegan.", "Translate: I'm not vegan anymore.")),
        *(("I'm vegan.", said, True) for said in ("I used to be vegan and still am.", "I'm not vegan because of it.")),
        *(("I'm vegan.", said, True) for said in ("I'm not vegan, I'm vegan!", "My sister is not vegan anymore.")),
        ("I'm allergic to nuts.", "I'm not allergic to cats :)", True),
    ],
)
def test_a_diet_that_is_over_must_not_be_respected_whatever_else_its_message_says(
    known: str, new: str, *, is_told: bool
) -> None:
    with InMemoryClient() as client:
        memory = client.scope(user_id="alice")
        for said_one in (known, new):
            memory.add(said_one, speaker="Alice", wait=True)
        assert ("must be respected" in memory.context("What do I eat?").text.casefold()) == is_told


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("I'm vegetarian.", "Tom texted me, I'm not vegetarian anymore, can you believe it?"),
        ("I'm vegetarian.", "I'm not vegetarian, said nobody in my family ever."),
        ("I'm vegetarian.", "If the doctor insists, I'm no longer vegetarian."),
        ("I'm vegetarian.", "You be the doctor and I'm the patient: I'm not vegetarian anymore, what now?"),
        ("I'm allergic to nuts.", "I can eat nuts again."),
    ],
)
def test_what_calls_a_fact_in_question_ends_it_not_even_when_it_is_sent_again(known: str, said: str) -> None:
    with InMemoryClient() as client:
        memory = client.scope(user_id="alice")
        for said_one in (known, said, said):
            memory.add(said_one, speaker="Alice", wait=True)
        (fact, *_) = memory.facts()
        assert (fact.text, fact.status) == (known.replace("I'm", "Alice is"), "active")


async def test_a_statement_of_somebody_else_ends_nothing() -> None:
    found = await verdicts(said("I no longer work at Acme."), remembered("I work at Acme.", "Bob"))
    assert {one.verdict for one in found} == {"ADD"}


async def test_an_end_that_came_about_before_the_known_fact_was_said_is_one() -> None:
    known = [
        one.model_copy(update={"true_from": MONDAY, "said_at": MONDAY}) for one in remembered("My cat is called Minka.")
    ]
    (ended,) = await verdicts(said("Minka died on Friday."), tuple(known))
    assert ended.verdict == "RETRACT"


async def test_a_parting_without_a_name_ends_nothing_where_it_may_be_from_two() -> None:
    known = remembered("My girlfriend is called Olga. My boyfriend is called Nils.")
    assert len(known) == 2
    assert {one.verdict for one in await verdicts(said("We broke up."), known)} == {"ADD"}
    (parted,) = await verdicts(said("I broke up with my boyfriend."), known)
    assert (parted.verdict, len(parted.targets)) == ("RETRACT", 1)


@pytest.mark.parametrize(
    ("other", "verdict", "ended"), [("Olga Keller", "ADD", 0), ("Olga", "ADD", 0), ("Nils", "RETRACT", 1)]
)
async def test_a_first_name_ends_what_is_of_the_only_one_whom_it_may_mean(other: str, verdict: str, ended: int) -> None:
    known = remembered(f"My girlfriend is called Olga Novak. My partner is called {other}.")
    (parted,) = await verdicts(said("Olga left me."), known)
    assert (parted.verdict, len(parted.targets)) == (verdict, ended)


@pytest.mark.parametrize("other", ["I have a cat called Max.", "My brother is called Max."])
async def test_a_name_that_two_have_ends_neither(other: str) -> None:
    (died,) = await verdicts(said("Max died."), remembered(f"I have a dog called Max. {other}"))
    assert died.verdict == "ADD"


async def test_what_one_statement_ends_serves_no_other() -> None:
    joined, quit_ = await verdicts(
        said("I quit my job at Acme and I work at Roche now."), remembered("I work at Acme.")
    )
    assert (joined.verdict, quit_.verdict, quit_.targets) == ("REPLACE", "ADD", ())


async def test_what_was_said_before_the_known_end_becomes_history() -> None:
    """The guard for late news makes history of a REPLACE by an older statement."""
    known = [one.model_copy(update={"true_from": MONDAY + timedelta(days=9)}) for one in remembered("I left Acme.")]
    (late,) = await verdicts(said("I work at Acme."), tuple(known))
    assert late.verdict == "REPLACE"


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        *((text, "strong") for text in ("I live in Munich.", "We live in Munich.")),
        *((text, "strong") for text in ("I live in New York.", "I live in New Orleans.", "I'm based in New Haven")),
        *((text, "strong") for text in ("I live in Oslo since 2010.", "We live in Bern since 1999")),
        *(
            (text, "explicit")
            for text in ("I live in Munich now.", "I relocated to Munich.", "I live in New York now.")
        ),
    ],
)
def test_a_home_that_is_only_stated_is_not_certain_enough_to_replace_one(text: str, certainty: str) -> None:
    assert [fact.certainty for fact in said(text)] == [certainty]


@pytest.mark.parametrize(
    ("known", "question", "answer", "verdict"),
    [
        ("I live in Rome.", "Where do you live?", "Rome.", "ADD"),
        ("I live in Berlin.", "Where do you live?", "Paris.", "ADD"),
        ("I live in Berlin.", "Where do you live?", "Munich.", "ADD"),
        ("I work at Acme.", "Where do you work?", "Bosch", "ADD"),
    ],
)
async def test_an_answer_beside_a_known_fact(known: str, question: str, answer: str, verdict: str) -> None:
    new, _ = read_turn(turn(Message(role="assistant", content=question), user(answer), speaker="Alice"))
    assert {one.verdict for one in await verdicts(new, remembered(known))} == {verdict}


async def test_one_answer_to_two_questions_is_two_facts() -> None:
    answer = user("Polish and a bit of Greek.")
    asked = [
        read_turn(turn(Message(role="assistant", content=question), answer, speaker="Alice"))[0]
        for question in ("What languages do you speak?", "Which languages are you learning?")
    ]
    (known,), second = asked
    old = (known_fact(1, known.text, excerpt=known.excerpt, subject=known.subject),)
    assert "KEEP" not in {one.verdict for one in await verdicts(second, old)}
