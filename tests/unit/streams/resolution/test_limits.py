"""What a turn adds to the facts that limits count."""

from uuid import UUID

from mnemolog.streams.resolution.limits import added_facts
from tests.support.builders.commits import added, commit, day, expired, merged, pending, replaced, skipped

FIRST, SECOND = UUID(int=1), UUID(int=2)


def test_a_turn_adds_its_new_facts_without_those_that_it_ends() -> None:
    assert added_facts(commit("t1", added("one"), pending("two", FIRST), skipped(FIRST)).events, day(5)) == 2
    assert added_facts(commit("t1", replaced("new", FIRST), added("one")).events, day(5)) == 1
    assert added_facts(commit("t1", merged("both", FIRST, SECOND)).events, day(5)) == -1
    assert added_facts(commit("t1", added("late", ended_at=day(1), ended_by=FIRST)).events, day(5)) == 0


def test_an_announced_end_has_not_come_yet() -> None:
    announced = commit("t1", expired(FIRST, ended_at=day(9), text="The lease ends.")).events
    assert [added_facts(announced, day(at)) for at in (5, 9)] == [1, 0]
