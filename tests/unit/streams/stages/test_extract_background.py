"""What an extraction is shown beside its turn, and what it remembers for the next one."""

import pytest

from mnemolog.schemas.command import Command, CommandPayload, Delete, DeleteAll, Edit, Reject, Undo, Update
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import Background, EarlierMessage, ShownFact
from mnemolog.schemas.turn import Message
from tests.support.harnesses.extract_harness import FACTS, NOON, ScriptedModel, Shown, extracted, replied, turn

EARLIER = EarlierMessage(turn_id="t0", role="assistant", content="Where do you live?", at=NOON)


async def test_what_was_shown_is_in_the_prompt_and_in_the_step() -> None:
    known = ShownFact(fact_id=FACTS[0], text="Mira lives in Ulm.", key="home_city", value="Ulm")
    shown = Background(messages=(EARLIER,), facts=(known,), names=("Mira",), notes=("slow",))
    model = ScriptedModel(replied("Mira lives in Berlin.", quote="Berlin."))
    answer = turn(messages=(Message(role="user", content="Berlin."),)).to_bytes()
    output = await extracted(model, answer, backgrounds=Shown(shown))
    assert [fact.excerpt for fact in output.facts] == ["Berlin."]
    content = model.questions[0].messages[1].content
    assert (
        "names of the user: Mira\nknown:\n> Mira lives in Ulm. [home_city: Ulm]\nearlier:\n> assistant: Where"
        in content
    )
    (step,) = output.steps
    assert (step.conversation, step.known, step.notes) == (("t0",), (FACTS[0],), ("slow",))


async def test_a_turn_of_the_assistant_alone_costs_no_call_and_explains_the_next_one() -> None:
    shown, model = Shown(), ScriptedModel()
    messages = (Message(role="system", content="Be kind."), Message(role="assistant", content="Where do you live?"))
    output = await extracted(model, turn(messages=messages).to_bytes(), backgrounds=shown)
    assert output.end is not None
    assert output.end.outcome == "no_facts"
    assert model.questions == []
    assert shown.turns == [("t1", NOON, 2)]


@pytest.mark.parametrize(
    ("order", "ends"),
    [
        (Delete(fact_ids=FACTS), True),
        (DeleteAll(), True),
        (Reject(fact_ids=FACTS), True),
        (Undo(source_id="t1"), True),
        (Update(edits=(Edit(fact_id=FACTS[0], text="Mira likes tea."),)), False),
    ],
)
async def test_what_takes_something_back_ends_the_conversation(order: CommandPayload, ends: bool) -> None:
    shown = Shown()
    command = Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=NOON, order=order)
    await extracted(ScriptedModel(), command.to_bytes(), backgrounds=shown)
    assert shown.deletions == ([("default/mira", NOON)] if ends else [])
    assert shown.turns == []
