"""What decides in a simulated worker: the product's own decider, and limits for some turns."""

from datetime import datetime
from typing import Final

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Thresholds
from mnemolog.streams.resolution.turn import PreparedTurn, TurnDecider

_SPENT: Final = LimitHit(name="active_facts", level="scope", count=2, limit=1)
_LIMITED: Final = (2, 1)
"""Divisor and remainder of the numbers of turns that are rejected for a limit."""


class AskedDecider(TurnDecider):
    """Asks about the conflicts of raw turns too: a hot owner has nothing but these."""

    async def prepare(
        self, envelope: MatchedFacts, rules: EffectivePolicy, thresholds: Thresholds, *, is_late: bool, now: datetime
    ) -> PreparedTurn:
        asked = envelope.model_copy(update={"infer": True})
        return await super().prepare(asked, rules, thresholds, is_late=is_late, now=now)


class TurnLimits:
    """Some turns are rejected once they are decided: what those behind them were asked about ahead is not so then."""

    async def exceeded_limit(self, envelope: MatchedFacts, *_: object, **__: object) -> LimitHit | None:
        if envelope.source_kind == "command":
            return None
        divisor, rest = _LIMITED
        return _SPENT if int(envelope.source_id.removeprefix("s")) % divisor == rest else None
