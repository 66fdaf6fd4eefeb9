"""What decides in a simulated worker: the product's own decider, and limits for some turns."""

from datetime import datetime
from typing import Final

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Thresholds
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.resolution.turn import PreparedTurn, TurnDecider

_SPENT: Final = LimitHit(name="active_facts", level="scope", count=2, limit=1)


class AskedDecider(TurnDecider):
    """Asks about the conflicts of raw turns too: a hot owner has nothing but these."""

    async def prepare(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        thresholds: Thresholds,
        *,
        is_late: bool,
        now: datetime,
        named: TurnEntities | None = None,
    ) -> PreparedTurn:
        asked = envelope.model_copy(update={"infer": True})
        return await super().prepare(asked, rules, thresholds, is_late=is_late, now=now, named=named)


class TurnLimits:
    """Turns of odd numbers are rejected once they are decided."""

    async def exceeded_limit(self, envelope: MatchedFacts, *_: object, **__: object) -> LimitHit | None:
        if envelope.source_kind == "command":
            return None
        return _SPENT if int(envelope.source_id.removeprefix("s")) % 2 else None
