"""Property 4: what is told in runs and promoted is known to its user as if it had been told to the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args

from hypothesis import strategies as st

from mnemolog.schemas.command import Promote
from mnemolog.schemas.scope import Scope
from tests.properties.conversations import Act, SpokenTurn, acts, some_forms, told_turns
from tests.properties.harness import Harness, History
from tests.properties.oracle import OracleReader
from tests.properties.order_independence import (
    FORMS,
    LONG_AFTER,
    Truth,
    final_truths,
    known_truth,
    listed,
    value_returns,
)
from tests.properties.telling import told_event

Way = Literal["command", "together"]
"""How facts go to the user: by a command for each turn, or by one for all."""
SINGLE_RUN: Final = "together"
LASTING: Final = FORMS - {"announcement", "term"}
"""What has no term that may pass in a run before it is promoted: what has ended there is not."""


@dataclass(frozen=True)
class ToldInRuns:
    """A conversation, which of its turns are told in a run, and how they are promoted.

    Each is of a run of its own; `together` all are of one, which knows no value twice: there it would be a mention.
    """

    acts: tuple[Act, ...]
    in_run: tuple[bool, ...]
    way: Way
    forms: frozenset[str] = FORMS

    @property
    def turns(self) -> list[SpokenTurn]:
        return told_turns(self.acts, self.forms)

    @property
    def runs(self) -> dict[str, str]:
        """The run of each turn that is told in one."""
        told = zip(self.turns, self.in_run, strict=False)
        one_run = self.way == SINGLE_RUN
        return {turn.turn_id: "r" if one_run else f"r-{turn.turn_id}" for turn, in_run in told if in_run}

    def __repr__(self) -> str:
        return "\n  ".join([f"promoted {self.way}, told in runs: {' '.join(self.runs)}", *map(str, self.turns)])


@st.composite
def told_in_runs(draw: st.DrawFn, most: int = 6) -> ToldInRuns:
    chosen = tuple(draw(acts(most)))
    in_run = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    way: Way = draw(st.sampled_from(get_args(Way)))
    return ToldInRuns(chosen, tuple(in_run), way, draw(some_forms(LASTING)))


async def check_promotions(harness: Harness, example: ToldInRuns) -> None:
    """Compare what is true at every time where all is told to the user with where some of it is promoted."""
    turns, returns = example.turns, value_returns(example.turns)
    if example.way == SINGLE_RUN and returns:
        return
    told, story = await known_truth(harness, turns, turns, with_details=not returns)
    promoted, other_story = await _promoted_truth(harness, example, with_details=not returns)
    only_end = returns or example.way == SINGLE_RUN  # what has ended in a run is not promoted
    for (at, expected), (_, found) in list(zip(told, promoted, strict=True))[: 1 if only_end else None]:
        assert found == expected, "\n  ".join([
            f"at {at:%m-%d %H:%M}, promoted {example.way}",
            f"told to the user: {listed(expected - found)}; promoted: {listed(found - expected)}",
            *("told to the user:", *story, "promoted:", *other_story),
        ])  # fmt: skip


async def _promoted_truth(
    harness: Harness, example: ToldInRuns, *, with_details: bool
) -> tuple[list[Truth], list[str]]:
    turns, runs = example.turns, example.runs
    extractions: dict[str, Sequence[Any]] = {turn.turn_id: [one.extraction() for one in turn.said] for turn in turns}
    history = await harness.start_history(OracleReader(extractions))
    for turn in turns:
        scope = history.scope.model_copy(update={"run_id": runs.get(turn.turn_id)})
        await history.publish_turn(turn.as_turn(scope), now=turn.at + timedelta(seconds=3))
    end = max(turn.at for turn in turns) + LONG_AFTER
    await _promote(history, example, end)
    story = [
        f"  {commit.source_id} {commit.scope.run_id or '' if commit.scope else ''}: {told_event(event)}"
        for commit in history.commits
        for event in commit.model_dump(mode="json")["events"]
    ]
    return await final_truths(history, turns, end, with_details=with_details), story


async def _promote(history: History, example: ToldInRuns, end: datetime) -> None:
    for place, run in enumerate(dict.fromkeys(example.runs.values())):
        source = Scope(user_id=history.scope.user_id, run_id=run)
        await history.send_command(f"promote-{run}", Promote(source=source), now=end + timedelta(seconds=place))
