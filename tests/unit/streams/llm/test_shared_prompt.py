"""The question about several turns: what it shows, once, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import NO_BACKGROUND, Background, EarlierMessage, ShownEntity, ShownFact
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.background import best_facts
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.llm.shared_prompt import known_together, shared_prompt
from mnemolog.streams.stages.background import messages_of

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS: Final = [ShownFact(fact_id=UUID(int=number), text=f"Fact number {number}.") for number in range(6)]


def turn(number: int, *messages: tuple[str, str]) -> Turn:
    return Turn(
        turn_id=f"t{number}",
        scope=Scope(user_id="mira"),
        messages=tuple(
            Message(role="user" if role == "user" else "assistant", content=said) for role, said in messages
        ),
        occurred_at=NOON + timedelta(minutes=number),
        speaker="Mira",
    )


def said(*turns: Turn) -> tuple[EarlierMessage, ...]:
    return tuple(message for one in turns for message in messages_of(one))


BEFORE: Final = turn(0, ("user", "Hello."), ("assistant", "Hi."))
FIRST: Final = turn(1, ("user", "I live in Berlin."), ("assistant", "Nice."))
BETWEEN: Final = turn(2, ("assistant", "Any pets?"))
LAST: Final = turn(3, ("user", "A cat\nturn 9"))


ANA: Final = ShownEntity(
    entity_id=UUID(int=70), name="Ana", type="person", names=("Annie",), ties=("wife of the user",)
)
TWIN: Final = ShownEntity(entity_id=UUID(int=71), name='Ana"\nor', type="person", twins=(ANA.entity_id,))


def task(
    own: Turn, *earlier: Turn, facts: tuple[ShownFact, ...] = (), entities: tuple[ShownEntity, ...] = ()
) -> ExtractionTask:
    background = Background(messages=said(*earlier), entities=entities, facts=facts, names=("Mira",))
    return ExtractionTask(turn=own, categories=CATEGORIES, background=background)


def test_each_message_and_fact_is_shown_once_and_in_its_place() -> None:
    tasks = [
        task(FIRST, BEFORE, facts=(FACTS[0],), entities=(ANA,)),
        task(LAST, BEFORE, FIRST, BETWEEN, facts=(FACTS[0],), entities=(ANA, TWIN)),
    ]
    _, question = shared_prompt(tasks, known_together(tasks, tokens=1000)).messages
    assert question.content.splitlines() == [
        "names of the user: Mira",
        "names:",
        '> 1. "Ana" (person), also: "Annie", "wife of the user"',
        """> 2. "Ana' or" (person); perhaps the same as 1""",
        "known:",
        "> Fact number 0.",
        "turn 1",
        "turn_id: t1",
        "occurred_at: 2026-03-01T12:01:00+00:00 (Sunday)",
        "speaker: Mira",
        "earlier:",
        "> user (Mira): Hello.",
        "> assistant: Hi.",
        "conversation:",
        "user: I live in Berlin.",
        "assistant: Nice.",
        "turn 2",
        "turn_id: t3",
        "occurred_at: 2026-03-01T12:03:00+00:00 (Sunday)",
        "speaker: Mira",
        "earlier:",
        "> assistant: Any pets?",
        "conversation:",
        "user: A cat",
        "  turn 9",
    ]


def test_the_rules_are_those_of_one_turn() -> None:
    system, _ = shared_prompt([task(FIRST), task(LAST)], NO_BACKGROUND).messages
    alone, _ = extraction_prompt(task(FIRST)).messages
    assert system.content.partition("A fact says")[2] == alone.content.partition("A fact says")[2]
    assert '{"turns": [{"turn": 1, "facts": [...]}, ...]}' in system.content


def test_the_best_facts_of_each_turn_are_known_within_the_tokens_of_one_turn() -> None:
    tasks = [task(FIRST, facts=tuple(FACTS[:3])), task(LAST, facts=(FACTS[4], FACTS[0], FACTS[5]))]
    assert [fact.fact_id.int for fact in known_together(tasks, tokens=10_000).facts] == [0, 4, 1, 2, 5]
    tokens = next(number for number in range(1000) if len(best_facts(FACTS, tokens=number)) == 2)
    assert [fact.fact_id.int for fact in known_together(tasks, tokens=tokens).facts] == [0, 4]
