"""Turns and commands of one partition, whichever is read first: they go on in the order of the broker's clock."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topic_merge import Merge, Reading
from mnemolog.streams.kafka.window import Delivery

TURNS, COMMANDS = "turns", "commands"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def merge(clock: Clock | None = None, **bounds: float) -> Merge:
    return Merge((TURNS, COMMANDS), clock=clock or Clock(), **bounds)  # type: ignore[arg-type]  # limit is a whole number


def record(topic: str, offset: int, at: float, partition: int = 0) -> Delivery:
    made = KafkaRecord(topic=topic, partition=partition, offset=offset, key=b"k", value=b"", timestamp=at)
    return Delivery(record=made, ack=lambda: None)


def names(deliveries: Iterable[Delivery]) -> list[str]:
    return [f"{delivery.record.topic[0]}{delivery.record.offset}" for delivery in deliveries]


def backlog(merging: Merge, turns: int, commands: int, partition: int = 0) -> None:
    merging.begin(
        {
            (TURNS, partition): Reading(next_offset=0, end=turns),
            (COMMANDS, partition): Reading(next_offset=0, end=commands),
        }
    )


def test_a_command_of_a_backlog_waits_for_the_turns_before_it() -> None:
    merging = merge()
    backlog(merging, turns=2, commands=1)
    assert names(merging.add(record(COMMANDS, 0, at=5))) == []
    assert names(merging.add(record(TURNS, 0, at=1))) == ["t0"]
    assert names(merging.add(record(TURNS, 1, at=9))) == ["c0", "t1"]


def test_a_turn_of_a_backlog_waits_for_the_commands_before_it() -> None:
    merging = merge()
    backlog(merging, turns=2, commands=1)
    assert names(merging.add(record(TURNS, 0, at=1))) == []
    assert names(merging.add(record(TURNS, 1, at=9))) == []
    assert names(merging.add(record(COMMANDS, 0, at=5))) == ["t0", "c0", "t1"]


def test_at_one_time_the_turn_goes_first() -> None:
    merging = merge()
    backlog(merging, turns=1, commands=1)
    assert names(merging.add(record(COMMANDS, 0, at=5))) == []
    assert names(merging.add(record(TURNS, 0, at=5))) == ["t0", "c0"]


def test_without_a_backlog_nothing_is_held() -> None:
    merging = merge()
    backlog(merging, turns=0, commands=0)
    assert names(merging.add(record(TURNS, 0, at=1))) == ["t0"]
    assert names(merging.add(record(COMMANDS, 0, at=2))) == ["c0"]
    assert names(merging.add(record(TURNS, 0, at=3, partition=7))) == ["t0"]


def test_a_command_waits_for_the_turns_that_are_known_to_be_under_way() -> None:
    merging = merge()
    backlog(merging, turns=0, commands=0)
    merging.expect(0, 2)
    assert names(merging.add(record(COMMANDS, 0, at=5))) == []
    assert names(merging.add(record(TURNS, 0, at=4))) == ["t0"]
    assert names(merging.add(record(TURNS, 1, at=6))) == ["c0", "t1"]


def test_a_partition_that_waits_holds_up_no_other() -> None:
    merging = merge()
    backlog(merging, turns=1, commands=1)
    assert names(merging.add(record(TURNS, 0, at=1))) == []
    assert names(merging.add(record(TURNS, 8, at=1, partition=1))) == ["t8"]


def test_a_record_that_never_comes_is_waited_for_in_patience_and_no_longer() -> None:
    clock = Clock()
    merging = merge(clock, patience=10)
    backlog(merging, turns=1, commands=3)
    assert names(merging.add(record(TURNS, 0, at=1))) == []
    clock.now = 10
    assert names(merging.overdue()) == []
    clock.now = 10.1
    assert names(merging.overdue()) == ["t0"]
    assert names(merging.add(record(TURNS, 1, at=2))) == ["t1"]
    assert names(merging.overdue()) == []


def test_no_more_is_held_than_the_limit() -> None:
    merging = merge(limit=3)
    backlog(merging, turns=9, commands=1)
    assert [names(merging.add(record(TURNS, offset, at=offset))) for offset in range(4)] == [
        *([[]] * 3),
        ["t0", "t1", "t2", "t3"],
    ]


def test_after_a_rebalance_what_was_held_is_forgotten() -> None:
    merging = merge()
    backlog(merging, turns=1, commands=1)
    assert names(merging.add(record(TURNS, 0, at=1))) == []
    backlog(merging, turns=1, commands=1)
    assert names(merging.add(record(COMMANDS, 0, at=5))) == []
    assert names(merging.add(record(TURNS, 0, at=1))) == ["t0", "c0"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20))), st.data())
def test_a_backlog_goes_on_in_the_order_of_time_however_it_is_read(
    written: list[tuple[bool, int]], data: st.DataObject
) -> None:
    times = sorted(at for _, at in written)
    topics = [TURNS if is_turn else COMMANDS for is_turn, _ in written]
    left = {
        topic: [at for place, at in zip(topics, times, strict=True) if place == topic] for topic in (TURNS, COMMANDS)
    }
    merging = merge()
    backlog(merging, turns=len(left[TURNS]), commands=len(left[COMMANDS]))
    offsets = {TURNS: 0, COMMANDS: 0}
    gone: list[tuple[float, str]] = []
    while any(left.values()):
        topic = data.draw(st.sampled_from([topic for topic, rest in left.items() if rest]))
        arrived = record(topic, offsets[topic], left[topic].pop(0))
        offsets[topic] += 1
        gone.extend((one.record.timestamp, one.record.topic) for one in merging.add(arrived))
    assert gone == sorted(gone, key=lambda one: (one[0], one[1] == COMMANDS))
    assert len(gone) == len(written)
