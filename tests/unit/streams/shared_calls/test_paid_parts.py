"""What the turns of shared calls paid for is, in sum, what the model was asked for, however often they come."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from mnemolog.schemas.instructions import Instructions
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Step
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import Usage
from tests.support.harnesses.shared_queue import SAID, CountingModel, Queue, facts, turns

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
