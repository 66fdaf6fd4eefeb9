"""Faults of calls that turns share: each can be put back."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.windows.waiting_records import WaitingRecords
from mnemolog.streams.llm.cached_models import CachedChatModel
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply
from mnemolog.streams.shared_calls import call_sharer
from mnemolog.streams.shared_calls.reply_parts import divide_reply
from mnemolog.streams.shared_conflicts import conflict_prompt
from mnemolog.streams.shared_conflicts.predicted_facts import PredictedFacts
from tests.simulation.fault import Fault


def turns_of_a_call_end_with_its_first() -> AbstractContextManager[object]:
    original = WaitingRecords.records_behind

    async def take(
        self: WaitingRecords, record: KafkaRecord, *, enough: int, most: int, seconds: float
    ) -> Sequence[KafkaRecord]:
        found = await original(self, record, enough=enough, most=most, seconds=seconds)
        queue = self._queue_of(record)
        for _ in found if queue else ():
            entry = queue.waiting.popleft()  # type: ignore[union-attr] # there is one
            self._partitions[record.topic_partition].finish([entry])
        return found

    return patch.object(WaitingRecords, "records_behind", take)


def parts_are_mixed_up() -> AbstractContextManager[object]:
    def divide(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
        first, *others = divide_reply(reply, tasks)
        return [*others, first]

    return patch.object(call_sharer, "divide_reply", divide)


def answers_count_for_other_questions() -> AbstractContextManager[object]:
    original = CachedChatModel._version

    def version(self: CachedChatModel, question: Prompt) -> str:
        found = original(self, question)
        return found.rpartition("/")[0] if question.purpose == "resolve" else found

    return patch.object(CachedChatModel, "_version", version)


def turns_that_depend_are_asked_about_ahead() -> AbstractContextManager[object]:
    return patch.object(PredictedFacts, "is_open", lambda _self, _prepared: False)


def a_decision_counts_for_the_turn_it_stands_under() -> AbstractContextManager[object]:
    def own(number: int, _before: int, count: int) -> int:
        return (number - 1) % count + 1

    return patch.object(conflict_prompt, "_own", own)


SHARED_CALL_FAULTS: Final = (
    Fault(
        "shared_call_ends",
        "the turns that are asked about together with one count as finished with it",
        turns_of_a_call_end_with_its_first,
    ),
    Fault("mixed_parts", "a turn gets the part of a reply that is another turn's", parts_are_mixed_up),
    Fault(
        "answer_to_another_question",
        "an answer that was asked for ahead counts though the question has changed",
        answers_count_for_other_questions,
    ),
    Fault(
        "dependent_asked_ahead",
        "a turn is asked about ahead though it depends on an earlier one",
        turns_that_depend_are_asked_about_ahead,
    ),
    Fault(
        "decision_of_another_turn",
        "a decision on another turn counts for the turn that it stands under",
        a_decision_counts_for_the_turn_it_stands_under,
    ),
)
