"""What a turn gets does not depend on who shares its call, and not under which number a model writes its facts.

Nor does it get what a part of its sentence says and the whole of it does not, or what only an earlier turn says.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final

from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import Background, EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask, Reply
from mnemolog.streams.llm.shared_prompt import divide_reply
from tests.properties.harness import Harness
from tests.properties.steps import on_day
from tests.support.builders.model_replies import fact_json, facts_reply

TALK: Final = (
    ("Do you smoke?", "Yes.", "Alice smokes."),
    ("Do you have a dog?", "Yes.", "Alice has a dog."),
    ("Are you allergic to nuts?", "Yes.", "Alice is allergic to nuts."),
    ("Do you like jazz?", "No.", "Alice does not like jazz."),
    ("Do you eat meat?", "No.", "Alice does not eat meat."),
    ("Where do you live?", "Rome.", "Alice lives in Rome."),
    ("Where were you born?", "Rome.", "Alice was born in Rome."),
    (None, "I like tea.", "Alice likes tea."),
    (None, "I like teaching.", "Alice likes teaching."),
    (None, "I work at Acme with Tom.", "Alice works at Acme with Tom."),
    (None, "Tom plays chess.", "Tom plays chess."),
)
"""A question, an answer or a statement, and the fact of it."""

INVENTED: Final = (
    ({"Alice": "I do not eat meat."}, "eat meat", "Alice eats meat."),
    ({"Alice": "I am no longer working at Acme."}, "working at Acme", "Alice works at Acme."),
    ({"Alice": "I never lived in Rome."}, "lived in Rome", "Alice lived in Rome."),
    ({"Alice": "I like teaching.", "Bob": "I like tea."}, "I like tea", "Alice likes tea."),
    ({"Alice": "I work at Rometech.", "Bob": "Rome"}, "Rome", "Alice lives in Rome."),
)
"""Who says what, an excerpt of it, and what Alice does not say with it."""


async def check_shared(_harness: Harness, random: Random) -> None:
    """Divide a reply to some turns, right or with facts under the numbers of other turns: each gets its own or asks."""
    check_grounding(*random.choice(INVENTED))
    check_conversation(random.choice(TALK), random.choice(TALK))
    said = random.sample(TALK, random.randint(2, 4))
    numbers = list(range(1, len(said) + 1))
    if len({answer for _, answer, _ in said}) < len(said):  # swapped ones cannot be told apart
        numbers = random.choice([numbers, [random.choice(numbers)] * len(said)])
    elif random.random() < 0.7:
        numbers = [random.choice(numbers) for _ in said]
    check_division(said, numbers)


def check_grounding(said: Mapping[str, str], excerpt: str, text: str) -> None:
    """What the whole sentence does not say, or somebody else says, is no fact."""
    messages = [Message(role="user", content=sentence, name=name) for name, sentence in said.items()]
    stated = facts_reply(fact_json(text, excerpt=excerpt, category="other", subject="Alice"))
    assert text not in (_texts(stated, _task(0, *messages)) or ()), f"{said} say that {text!r}"


def check_conversation(said: tuple[str | None, str, str], before: tuple[str | None, str, str]) -> None:
    """A question explains its answer from an earlier turn as from this one; an earlier turn's statement is no fact."""
    question, answer, text = said
    asked, reply = Message(role="assistant", content=question or "Go on."), Message(role="user", content=answer)
    talk = [Message(role="user", content=before[1]), asked]
    facts = [fact_json(one, excerpt=excerpt, category="other", subject="Alice") for _, excerpt, one in (said, before)]
    alone = _texts(facts_reply(facts[0]), _task(0, asked, reply))
    found = _texts(facts_reply(*facts), _task(0, reply, before=talk))
    if before[1] != answer:  # else the model says that the answer is one to another question
        assert found in (None, alone), f"{answer!r} after {[one.content for one in talk]} gets {found}, alone {alone}"
    assert alone in (None, [text])


def check_division(said: Sequence[tuple[str | None, str, str]], numbers: Sequence[int]) -> None:
    """Each turn gets its own fact, wherever among the `numbers` of the turns the reply has it."""
    asked = [(Message(role="assistant", content=question),) if question else () for question, _, _ in said]
    answers = (Message(role="user", content=answer) for _, answer, _ in said)
    tasks = [_task(place, *before, answer) for place, (before, answer) in enumerate(zip(asked, answers, strict=True))]
    facts = [fact_json(text, excerpt=answer, category="other", subject="Alice") for _, answer, text in said]
    stated = [fact | {"line": at} for fact, at in zip(facts, numbers, strict=True)]
    parts = divide_reply(Reply(text=json.dumps({"facts": stated}), model="m"), tasks)
    for task, fact, part, (_, answer, _) in zip(tasks, facts, parts, said, strict=True):
        alone = _texts(facts_reply(fact), task)
        shared = None if part is None else _texts(part.text, task)
        assert shared in (None, alone), (  # without a part, or with one that is no valid reply, it is asked alone
            f"{answer!r} gets {shared} instead of {alone}, of {list(zip(numbers, said, strict=True))}"
        )


def _task(place: int, *messages: Message, before: Sequence[Message] = ()) -> ExtractionTask:
    at = on_day(0) + timedelta(minutes=place)
    earlier = [
        EarlierMessage.model_validate({"turn_id": "before", "role": one.role, "content": one.content, "at": at})
        for one in before
    ]
    turn = Turn(
        turn_id=f"t{place}",
        scope=Scope(user_id="alice"),
        messages=messages,
        occurred_at=at,
        speaker="Alice",
    )
    return ExtractionTask(turn=turn, categories=CATEGORIES, background=Background(messages=tuple(earlier)))


def _texts(reply: str, task: ExtractionTask) -> Any:
    found = parse_extraction(reply, task).value
    return None if found is None else [fact.text for fact in found]
