"""Property 1: in whatever order the turns of a conversation arrive, the same is known to be true, at every time."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hypothesis import strategies as st

from tests.properties.conversations import Act, SpokenTurn, acts, some_forms, told_turns
from tests.properties.harness import Harness, History
from tests.properties.oracle import OracleReader
from tests.properties.sentences import read
from tests.properties.telling import told_event

FORMS: Final = frozenset({"state", "change", "end", "announcement", "call_off", "plan", "term", "detail"})
"""The forms of statements whose order does not count (docs/policy.md).

Denials of what never was so are held back.
"""
LONG_AFTER: Final = timedelta(days=200)
Truth = tuple[datetime, frozenset[tuple[object, ...]]]


@dataclass(frozen=True)
class Permuted:
    """A conversation, and the order in which its turns arrive."""

    acts: tuple[Act, ...]
    order: tuple[int, ...]
    forms: frozenset[str] = FORMS

    @property
    def turns(self) -> list[SpokenTurn]:
        return told_turns(self.acts, self.forms)

    def __repr__(self) -> str:
        arrived = [self.turns[place] for place in self.order]
        return "\n  ".join(
            ["as told:", *map(str, self.turns), f"arriving: {' '.join(turn.turn_id for turn in arrived)}"]
        )


@st.composite
def permuted(draw: st.DrawFn, most: int = 6) -> Permuted:
    chosen = tuple(draw(acts(most)))
    forms = draw(some_forms(FORMS))
    count = len(told_turns(chosen, forms))
    order = draw(st.permutations(range(count)))
    return Permuted(chosen, tuple(order), forms)


async def check_order_independence(harness: Harness, example: Permuted) -> None:
    """Compare what is true at every time after the turns came in their order with what is after they came as drawn."""
    turns = example.turns
    returns = value_returns(turns)
    told, story = await known_truth(harness, turns, turns, with_details=not returns)
    arriving = [turns[place] for place in example.order]
    arrived, other_story = await known_truth(harness, turns, arriving, with_details=not returns)
    compared = zip(told, arrived, strict=True)
    for (at, expected), (_, found) in itertools.islice(compared, 1 if returns else None):
        assert found == expected, "\n  ".join([
            f"at {at:%m-%d %H:%M}",
            f"told in order: {listed(expected - found)}; as they arrived: {listed(found - expected)}",
            *("told in order:", *story, "as they arrived:", *other_story),
        ])  # fmt: skip


def value_returns(turns: Sequence[SpokenTurn]) -> bool:
    """Whether a value holds again after it had ended.

    Where that end is told last, the two times are one fact already, with the details of both, which is not split: a
    documented exception for the time between.
    """
    ended: set[tuple[str, str, str]] = set()
    held: dict[tuple[str, str], str] = {}
    for meaning in (one.meaning for turn in turns for one in turn.said):
        place = meaning.person, meaning.key
        if meaning.holds:
            if meaning.topic in ended:
                return True
            if meaning.slot.single_valued and held.get(place, meaning.value) != meaning.value:
                ended.add((*place, held[place]))
            held[place] = meaning.value
        elif meaning.form in ("end", "announcement"):
            ended.add(meaning.topic)
    return False


def listed(claims: frozenset[tuple[object, ...]]) -> str:
    return ", ".join(sorted(" ".join(map(str, claim)) for claim in claims)) or "nothing"


async def known_truth(
    harness: Harness, turns: Sequence[SpokenTurn], arriving: Sequence[SpokenTurn], *, with_details: bool
) -> tuple[list[Truth], list[str]]:
    """What is true after these turns have arrived, from each of their times on, and what happened.

    The first is what holds in the end.
    """
    reader = OracleReader({turn.turn_id: [one.extraction() for one in turn.said] for turn in turns})
    history = await harness.start_history(reader)
    end = max(turn.at for turn in turns) + LONG_AFTER
    in_order = [turn.turn_id for turn in turns] == [turn.turn_id for turn in arriving]
    story: list[str] = []
    for place, turn in enumerate(arriving):
        now = turn.at + timedelta(seconds=3) if in_order else end + timedelta(seconds=place)
        commit = await history.publish_turn(turn.as_turn(history.scope), now=now)
        assert commit is not None
        events = commit.model_dump(mode="json")["events"]
        story += [f"  {turn}", *(f"      -> {told_event(event)}" for event in events)]
    return await final_truths(history, turns, end, with_details=with_details), story


async def final_truths(
    history: History, turns: Sequence[SpokenTurn], end: datetime, *, with_details: bool
) -> list[Truth]:
    """What is known in the end, then what was true from each time of the turns on, once the timer has run."""
    await history.run_timer(now=end + timedelta(days=1))
    times = [turn.at for turn in turns]
    meanings = [one.meaning for turn in turns for one in turn.said]
    times += [time for meaning in meanings for time in (meaning.begins, meaning.until) if time]
    asked = [end + timedelta(days=1), *(time + timedelta(minutes=1) for time in sorted(times))]
    return await truths_at(history, asked, with_details=with_details)


async def truths_at(history: History, times: Sequence[datetime], *, with_details: bool) -> list[Truth]:
    query = """
        SELECT text, subject, true_from, least(true_to, valid_until) FROM facts
        WHERE user_id = %s AND run_id = '' AND believed_from IS NOT NULL AND believed_to IS NULL
    """
    rows = await history.harness.rows(query, history.scope.user_id)
    held = [[row[:2] for row in rows if row[2] <= at and (row[3] is None or row[3] > at)] for at in times]
    return [
        (at, _claims(texts, with_details=with_details and at == times[0]))
        for at, texts in zip(times, held, strict=True)
    ]


def _claims(texts: Sequence[tuple[str, str | None]], *, with_details: bool) -> frozenset[tuple[object, ...]]:
    """What holds: by person, key and value, `with_details` with all that is told of it.

    A merged fact has its details since the first of its parents began, so they are compared for the end only.
    """
    details: dict[tuple[str, str, str], set[str]] = {}
    for text, subject in texts:
        meaning = read(text, subject)
        assert meaning is not None, text
        if meaning.holds:
            details.setdefault(meaning.topic, set()).update(meaning.details if with_details else ())
    return frozenset((*topic, tuple(sorted(more))) for topic, more in details.items())
