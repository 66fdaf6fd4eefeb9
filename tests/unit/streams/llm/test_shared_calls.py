"""`extract` over a queue of waiting turns: one call for many, and each turn's own reply, limits and trace."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, cast
from uuid import UUID

import pytest

from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.schemas.command import Command, Delete
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.instructions import Instructions
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import ShownFact
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply, SharedPrompt, TaskPrompt, Usage
from mnemolog.streams.stages.background import Place
from mnemolog.streams.stages.shared_calls import CallWait
from tests.support.harnesses.shared_queue import (
    NOON,
    RULES,
    SAID,
    CountingModel,
    Queue,
    alone,
    asked_in,
    facts,
    record,
    turn,
    turns,
)


async def test_turns_that_wait_share_a_call_and_say_the_same_as_one_by_one() -> None:
    dialogue = (*SAID, "Where do I live?", "Yes.", "She is three years old.")
    shared, single = Queue(CountingModel()), alone()
    results, others = await shared.run(turns(*dialogue)), await single.run(turns(*dialogue))
    assert (shared.model.turns, single.model.turns) == ([7], [1] * 7)
    assert facts(results) == facts(others)
    assert [one.facts for one in results] == [one.facts for one in others]
    assert [one.steps[-1].dropped for one in results] == [one.steps[-1].dropped for one in others]
    assert asked_in(results) == [7] * 7
    (request,) = {one.steps[-1].request for one in results}
    assert request
    assert {one.steps[-1].prompt_version for one in results} == {f"{others[0].steps[-1].prompt_version}-turns"}


async def test_an_answer_in_a_turn_of_its_own_is_read_with_its_question() -> None:
    asked = turn(1, "", messages=(Message(role="assistant", content="Where do you live?"),))
    records = [turn(0, SAID[2]), asked, turn(2, "Berlin."), turn(3, SAID[3])]
    queue = Queue(CountingModel())
    results = await queue.run(records)
    assert (queue.model.turns, facts(results)) == ([3], facts(await alone().run(records)))
    assert "> assistant: Where do you live?" in queue.model.calls[0].messages[1].content


class Moody(CountingModel):
    """Tells the mood of each turn by a word of it."""

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        told = json.loads(reply.text)
        tasks = prompt.tasks if isinstance(prompt, SharedPrompt) else [cast("TaskPrompt", prompt).task]
        told["moods"] = []
        for task in cast("Sequence[ExtractionTask]", tasks):
            said = task.turn.messages[-1].content
            emotion = next((name for word, name in (("happy", "joy"), ("furious", "anger")) if word in said), "neutral")
            told["moods"].append({"emotion": emotion, "intensity": 0.5, "energy": "medium"})
        return replace(reply, text=json.dumps(told))


async def test_each_turn_has_its_own_mood() -> None:
    said = ("I am so happy about my new flat!", "I work at Acme.", "I am furious, my bike was stolen!")
    shared, single = (Queue(Moody(), rules, detect_mood=True) for rules in (RULES, replace(RULES, call_turns=1)))
    moods = [one.steps[-1].mood for one in await shared.run(turns(*said))]
    assert (shared.model.turns, len(set(moods))) == ([3], 3)
    assert moods == [one.steps[-1].mood for one in await single.run(turns(*said))]
    assert shared.model.calls[0].schema["required"] == ["facts", "moods"]


async def test_a_reply_to_a_complaint_without_a_mood_leaves_that_of_the_reply_before() -> None:
    class Moodless(Moody):
        async def complete(self, prompt: Prompt) -> Reply:
            reply = await super().complete(prompt)
            told = json.loads(reply.text)
            if isinstance(prompt, SharedPrompt):
                told["facts"][1]["text"] = ""
            else:
                del told["moods"]
            return replace(reply, text=json.dumps(told))

    queue = Queue(Moodless(), detect_mood=True)
    results = await queue.run(turns("I work at Acme.", "I am furious, my bike was stolen!"))
    assert queue.model.turns == [2, 1]
    assert results[1].steps[-1].mood.emotion == "anger"


async def test_what_a_call_took_is_divided_among_its_turns_and_the_call_counts_once() -> None:
    queue = Queue(CountingModel())
    results = await queue.run(turns(*SAID))
    steps = [one.steps[-1] for one in results]
    asked = sum(len(message.content) for message in queue.model.calls[0].messages) // 4
    assert sum(step.input_tokens for step in steps) == asked
    assert sum(step.cached_tokens for step in steps) == asked // 3
    assert [step.llm_calls for step in steps] == [1, 0, 0, 0]
    assert all(step.input_tokens > 0 and step.output_tokens > 0 for step in steps)


async def test_after_a_restart_no_turn_is_asked_about_again_and_others_share_the_next_call() -> None:
    queue, records = Queue(CountingModel()), turns(*SAID)
    first = await queue.process(records, 0)
    for count in (len(records), 2):
        queue.restart()
        again = await queue.run(records[:count])
        assert queue.model.turns == [4]
        assert again[0] == first
    more = [*records, *(turn(4 + place, said) for place, said in enumerate(("I have two sisters.", "I like tea.")))]
    results = await queue.run(more)
    assert (queue.model.turns, asked_in(results)) == ([4, 2], [4, 4, 4, 4, 2, 2])
    assert facts(results) == facts(await alone().run(more))


def cut_off_in_the_third(text: str) -> str:
    facts = json.loads(text)["facts"]
    return text[: text.index(facts[2]["text"]) + 5] if len(facts) > 2 else text


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_turn_that_has_no_part_is_asked_about_alone_with_what_is_known_by_then(restarts: bool) -> None:
    queue, records = Queue(CountingModel(damage=cut_off_in_the_third), EffectivePolicy()), turns(*SAID)
    await queue.process(records, 0)
    queue.known = (ShownFact(fact_id=UUID(int=1), text="Mira has a cat.", key="pet", value="cat", subject=None),)
    if restarts:
        queue.restart()
    results = await queue.run(records)
    assert asked_in(results)[:2] == [4, 4]
    assert facts(results) == facts(await alone().run(turns(*SAID)))
    assert sum(one.steps[-1].llm_calls for one in results) == len(queue.model.turns)
    assert [one.steps[-1].known for one in results] == [(), (), (UUID(int=1),), (UUID(int=1),)]
    assert "slots in use: pet" in queue.model.calls[1].messages[1].content


async def test_a_turn_whose_part_is_invalid_is_asked_about_again_alone() -> None:
    def with_an_invalid_second(text: str) -> str:
        reply = json.loads(text)
        reply["facts"][1]["text"] = ""
        return json.dumps(reply)

    queue = Queue(CountingModel(damage=with_an_invalid_second))
    results = await queue.run(turns(*SAID))
    assert queue.model.turns == [4, 1]
    assert [one.steps[-1].reprompts for one in results] == [0, 1, 0, 0]
    assert "text" in results[1].steps[-1].complaints[0]
    assert results[1].steps[-1].prompt_version == PROMPT_VERSION
    assert SAID[2] not in queue.model.calls[1].messages[1].content
    assert facts(results) == facts(await alone().run(turns(*SAID)))


async def test_after_a_reply_that_cannot_be_divided_each_turn_is_asked_about_alone() -> None:
    queue = Queue(CountingModel(damage=lambda _: "no"))
    results = await queue.run(turns(*SAID))
    assert queue.model.turns == [4, 1, 1, 1, 1]
    assert sum(one.steps[-1].llm_calls for one in results) == len(queue.model.calls)
    whole = sum(sum(len(message.content) for message in call.messages) // 4 for call in queue.model.calls)
    assert sum(one.steps[-1].input_tokens for one in results) == whole
    assert results[0].steps[-1].reprompts == 1
    assert facts(results) == facts(await alone().run(turns(*SAID)))


async def test_after_a_call_that_is_refused_each_turn_is_asked_about_alone_and_the_faulty_one_fails_alone() -> None:
    queue = Queue(CountingModel(refused=f" user: {SAID[2]}"))
    first, second, third, fourth = await queue.run(turns(*SAID))
    assert queue.model.turns == [4, 1, 1, 1, 1]
    assert isinstance(third, SourceEndedError)
    assert third.reason == "content_filter"
    expected = facts(await alone().run(turns(*SAID)))
    assert facts([first, second, fourth]) == [expected[0], expected[1], expected[3]]


async def test_a_call_that_fails_while_others_succeed_is_divided_until_the_faulty_turn_is_alone() -> None:
    said = [f"I met Ana in city number {number}." for number in range(8)]
    queue = Queue(CountingModel(refused=f"user: {said[5]}", is_quick=True))
    results = await queue.run(turns(*said))
    assert queue.model.turns == [8, 4, 4, 2, 2, 1, 1]
    assert [isinstance(one, SourceEndedError) for one in results] == [number == 5 for number in range(8)]
    whole = facts(await alone().run(turns(*said)))
    assert facts([*results[:5], *results[6:]]) == [*whole[:5], *whole[6:]]


async def test_of_a_turn_whose_conversation_cannot_be_read_no_other_turn_fails() -> None:
    queue = Queue(CountingModel(), slow="t2")
    first, second, third, fourth = await queue.run(turns(*SAID))
    assert isinstance(third, StatementTimeoutError)
    assert all(facts([first, second, fourth]))


async def test_of_waiting_turns_only_those_of_the_scope_are_remembered_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(CountingModel())
    remembered: list[str] = []
    remember = queue.recent.remember

    def noted(one: Turn, place: Place) -> None:
        remembered.append(one.turn_id)
        remember(one, place)

    monkeypatch.setattr(queue.recent, "remember", noted)
    other = turn(1, SAID[1], scope=Scope(user_id="mira", run_id="r1"))
    await queue.process([turn(0, SAID[0]), other, turn(2, SAID[2])], 0)
    assert (queue.model.turns, remembered) == ([2], ["t0", "t2"])


async def test_a_command_between_them_divides_turns_into_two_calls() -> None:
    command = Command(
        command_id="c", scope=Scope(user_id="mira"), issued_at=NOON, order=Delete(fact_ids=(UUID(int=1),)), actor=None
    )
    records = [turn(0, SAID[0]), turn(1, SAID[1]), record(2, command), turn(3, SAID[2]), turn(4, SAID[3])]
    queue = Queue(CountingModel())
    await queue.run(records)
    assert queue.model.turns == [2, 2]
    assert SAID[0] not in queue.model.calls[1].messages[1].content


@pytest.mark.parametrize("asked_again", ["after a restart", "with other instructions"])
async def test_a_turn_whose_answer_is_paid_for_is_not_stopped_by_a_limit_before_its_commit(asked_again: str) -> None:
    records, queue = turns(*SAID), Queue(CountingModel())
    await queue.process(records, 0)
    size = len(records[1].value or b"")
    queue.hits = {str(size): LimitHit(name="tokens_per_day", level="tenant", count=9, limit=9)}
    paid = cast("ExtractedFacts", await queue.process(records, 1))
    assert (paid.end, bool(paid.facts)) == (None, True)
    if asked_again == "after a restart":
        queue.restart()
    else:
        queue.rules = replace(queue.rules, instructions=Instructions(text="Only cats."))
    assert cast("ExtractedFacts", await queue.process(records, 1)).end is not None


@pytest.mark.parametrize(
    ("waited", "linger", "expected"),
    [
        (0.0, 0.0, CallWait()),
        (0.0, 5.0, CallWait(linger=5.0)),
        (3.0, 5.0, CallWait(linger=2.0, arriving=3.0)),
        (60.0, 5.0, CallWait(arriving=5.0)),
        (-1.0, 5.0, CallWait(linger=5.0)),
        (3.0, 0.0, CallWait(arriving=3.0)),
    ],
)
async def test_a_turn_waits_for_any_other_until_its_linger_is_over_and_in_a_backlog_for_what_is_read(
    waited: float, linger: float, expected: CallWait
) -> None:
    assert CallWait.of_extraction(waited, linger=linger) == expected
    queue = Queue(CountingModel(), EffectivePolicy(known_facts=0, call_linger=linger))
    queue.now = NOON + timedelta(seconds=waited)
    await queue.process(turns(*SAID), 0)
    assert (queue.waited, queue.arriving) == ([(19, expected.linger)], [expected.arriving])


async def test_a_turn_that_has_its_reply_waits_for_nobody() -> None:
    queue, records = Queue(CountingModel(), EffectivePolicy(known_facts=0, call_linger=5.0)), turns(*SAID)
    await queue.process(records, 0)
    queue.restart()
    queue.waited.clear()
    await queue.process(records, 0)
    assert (queue.waited, queue.model.turns) == ([], [4])


async def test_a_turn_whose_instructions_have_changed_meanwhile_is_asked_about_with_those() -> None:
    queue, records = Queue(CountingModel()), turns(*SAID)
    await queue.process(records, 0)
    queue.rules = replace(queue.rules, instructions=Instructions(text="Only cats."))
    result = cast("ExtractedFacts", await queue.process(records[:2], 1))
    assert queue.model.turns == [4, 1]
    assert "Only cats." in queue.model.calls[1].messages[0].content
    assert result.steps[-1].instructions == queue.rules.instructions.version  # type: ignore[union-attr] # set above


async def test_a_turn_alone_asks_what_it_asked_before() -> None:
    queue, single = Queue(CountingModel()), alone()
    results = await queue.run(turns(SAID[0]))
    assert facts(results) == facts(await single.run(turns(SAID[0])))
    assert (results[0].steps[-1].prompt_version, asked_in(results)) == (PROMPT_VERSION, [1])
    assert queue.model.calls == single.model.calls


# What the turns of shared calls pay for is, in sum, what the model was asked for, however often they come


SPENT: Final = LimitHit(name="tokens_per_day", level="tenant", count=9, limit=9)


class CountedModel(CountingModel):
    """Remembers what all its calls took."""

    took = Usage()

    async def complete(self, prompt: Any) -> Any:
        reply = await super().complete(prompt)
        self.took += reply.usage
        return reply


def steps_of(results: Sequence[Any]) -> list[Step]:
    return [step for one in results for step in one.steps]


def paid(results: Sequence[Any]) -> tuple[int, int, int]:
    steps = steps_of(results)
    return (
        sum(step.llm_calls for step in steps),
        sum(step.input_tokens for step in steps),
        sum(step.output_tokens for step in steps),
    )


def asked(model: CountingModel) -> tuple[int, int, int]:
    assert isinstance(model, CountedModel)
    return len(model.calls), model.took.input_tokens, model.took.output_tokens


def published_again(records: Sequence[KafkaRecord]) -> list[KafkaRecord]:
    return [replace(one, offset=one.offset + 100, timestamp=one.timestamp + 100) for one in records]


async def test_turns_that_are_published_again_get_their_parts_for_nothing() -> None:
    queue, records = Queue(CountedModel()), turns(*SAID)
    first = await queue.run(records)
    queue.restart()
    assert [one.steps for one in await queue.run(records)] == [one.steps for one in first]  # delivered again
    again = await queue.run(published_again(records))
    assert facts(again) == facts(first)
    assert queue.model.turns == [4]
    assert paid(first) == asked(queue.model)
    assert paid(again) == (0, 0, 0)
    assert [step.stored_replies for step in steps_of(again)] == [1, 1, 1, 1]
    assert {step.stored_replies for step in steps_of(first)} == {0}


async def test_turns_whose_replies_are_gone_are_asked_about_and_paid_for_anew() -> None:
    queue, records = Queue(CountedModel()), turns(*SAID)
    first = await queue.run(records)
    queue.replies.kept.clear()
    queue.restart()
    again = await queue.run(published_again(records))
    assert queue.model.turns == [4, 4]
    assert paid([*first, *again]) == asked(queue.model)


async def test_a_turn_that_waits_after_another_one_paid_for_its_part_counts_it_and_uses_it_later() -> None:
    queue, records = Queue(CountedModel()), turns(*SAID)
    first = await queue.process(records, 0)
    queue.restart()
    queue.hits = {str(len(one.value or b"")): SPENT for one in records[1:]}
    waiting = [await queue.process(records, place) for place in (1, 2, 3)]
    assert [one.end.reason for one in waiting] == ["limit"] * 3  # type: ignore[union-attr] # none is an error
    assert paid([first, *waiting]) == asked(queue.model)
    queue.hits = {}
    queue.restart()
    again = await queue.run(published_again(records[1:]))
    assert all(facts(again))
    assert (queue.model.turns, paid(again)) == ([4], (0, 0, 0))


async def test_a_part_that_a_turn_does_not_use_is_counted() -> None:
    queue, records = Queue(CountedModel()), turns(*SAID)
    first = await queue.process(records, 0)
    queue.rules = replace(queue.rules, instructions=Instructions(text="Only cats."))
    others = [await queue.process(records, place) for place in (1, 2, 3)]
    assert paid([first, *others]) == asked(queue.model)
    assert [note.split(":")[0] for step in steps_of(others) for note in step.notes] == ["asked ahead in vain"] * 3
