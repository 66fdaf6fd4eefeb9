"""Property 1: in whatever order the turns of a conversation arrive, the same is known to be true, at every time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hypothesis import strategies as st

from tests.properties.conversations import Act, SpokenTurn, acts, told_turns
from tests.properties.harness import Harness, History
from tests.properties.oracle import OracleReader
from tests.properties.sentences import read

FORMS: Final = frozenset({"state", "change", "end", "call_off", "plan", "term", "detail", "announcement"})
"""Without denials of what never was so: these are held back, and then the order counts (docs/policy.md)."""
LONG_AFTER: Final = timedelta(days=200)
Truth = tuple[datetime, frozenset[tuple[object, ...]]]


@dataclass(frozen=True)
class Permuted:
    """A conversation, and the order in which its turns arrive."""

    acts: tuple[Act, ...]
    order: tuple[int, ...]

    @property
    def turns(self) -> list[SpokenTurn]:
        return told_turns(self.acts, FORMS)

    def __repr__(self) -> str:
        arrived = [self.turns[place] for place in self.order]
        return "\n  ".join(["as told:", *map(str, self.turns), f"arriving: {' '.join(turn.turn_id for turn in arrived)}"])


@st.composite
def permuted(draw: st.DrawFn, most: int = 6) -> Permuted:
    chosen = tuple(draw(acts(most)))
    count = len(told_turns(chosen, FORMS))
    order = draw(st.permutations(range(count)))
    return Permuted(chosen, tuple(order))


async def check_order_independence(harness: Harness, example: Permuted) -> None:
    """Compare what is true at every time after the turns came in their order with what is after they came as drawn."""
    turns = example.turns
    told = await known_truth(harness, turns, turns)
    arrived = await known_truth(harness, turns, [turns[place] for place in example.order])
    for (at, expected), (_, found) in zip(told, arrived, strict=True):
        assert found == expected, (
            f"at {at:%m-%d %H:%M} told in order: {sorted(map(str, expected - found))}; "
            f"as they arrived: {sorted(map(str, found - expected))}\n  {example!r}"
        )


async def known_truth(harness: Harness, turns: Sequence[SpokenTurn], arriving: Sequence[SpokenTurn]) -> list[Truth]:
    """What is true after these turns have arrived, from each of their times on; the first is what holds in the end."""
    reader = OracleReader({turn.turn_id: [one.extraction() for one in turn.said] for turn in turns})
    history = await harness.start_history(reader)
    end = max(turn.at for turn in turns) + LONG_AFTER
    in_order = [turn.turn_id for turn in turns] == [turn.turn_id for turn in arriving]
    for place, turn in enumerate(arriving):
        now = turn.at + timedelta(seconds=3) if in_order else end + timedelta(seconds=place)
        await history.publish_turn(turn.as_turn(history.scope), now=now)
    await history.run_timer(now=end + timedelta(days=1))
    times = [turn.at for turn in turns]
    meanings = [one.meaning for turn in turns for one in turn.said]
    times += [time for meaning in meanings for time in (meaning.begins, meaning.until) if time]
    return await truths_at(history, [end + timedelta(days=1), *(time + timedelta(minutes=1) for time in sorted(times))])


async def truths_at(history: History, times: Sequence[datetime]) -> list[Truth]:
    query = """
        SELECT text, subject, true_from, least(true_to, valid_until) FROM facts
        WHERE user_id = %s AND believed_from IS NOT NULL AND believed_to IS NULL
    """
    rows = await history.harness.rows(query, history.scope.user_id)
    return [(at, _claims([row[:2] for row in rows if row[2] <= at and (row[3] is None or row[3] > at)])) for at in times]


def _claims(texts: Sequence[tuple[str, str | None]]) -> frozenset[tuple[object, ...]]:
    """What holds: by person, key and value, with all details that are told of it."""
    details: dict[tuple[str, str, str], set[str]] = {}
    for text, subject in texts:
        meaning = read(text, subject)
        assert meaning is not None, text
        if meaning.holds:
            details.setdefault(meaning.topic, set()).update(meaning.details)
    return frozenset((*topic, tuple(sorted(more))) for topic, more in details.items())
