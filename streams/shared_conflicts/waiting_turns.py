"""What turns that wait will ask about their conflicts, as far as it does not depend on what is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.entities.doubtful.doubtful_names import DoubtfulNames
from mnemolog.streams.entities.subject_relations import with_subject_relations
from mnemolog.streams.entities.turn_entities import TurnEntities
from mnemolog.streams.llm.ports import SourceQuestion
from mnemolog.streams.resolution.turn import PreparedTurn, TurnDecider
from mnemolog.streams.shared_conflicts.predicted_facts import PredictedFacts

_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedTurn:
    """A turn with its candidates as they are now, and what it is decided by.

    `named` are its entities, and `names` those names of which it asks whom they mean.
    """

    turn: MatchedFacts
    rules: EffectivePolicy
    thresholds: Thresholds
    is_late: bool
    named: TurnEntities | None
    names: DoubtfulNames | None


async def questions_ahead(
    leader: PreparedTurn, waiting: Sequence[UndecidedTurn], decider: TurnDecider, clock: Callable[[], datetime]
) -> list[tuple[MatchedFacts, SourceQuestion]]:
    """What each of `waiting`, in their order, will ask once those before it are decided; `leader` is before all.

    Those whose question depends on what the model says of an earlier one are left out, and so are turns that ask about
    names, or have settings of their own.
    """
    predicted, found = PredictedFacts(), []
    predicted.add(leader)
    for one in waiting:
        turn = predicted.with_candidates(one.turn, one.thresholds, one.rules)
        turn = with_subject_relations(turn, one.named) if one.named else turn
        prepared = await decider.prepare(
            turn, one.rules, one.thresholds, is_late=one.is_late, now=clock(), named=one.named
        )
        question = None if one.names else prepared.question
        if question is not None and turn.overrides == _NO_OVERRIDES and not predicted.is_open(prepared):
            found.append((turn, question))
        predicted.add(prepared)
    return found
