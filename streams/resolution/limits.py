"""How much is allowed: a turn over a limit is refused with the count and the limit, and may be published again."""

from datetime import datetime

from mnemolog.projections.stores.limits import LimitReservations
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.limits import TurnUsage, exceeded_turn_size
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.scope import Scope


class LimitEnforcer:
    """The limits of a scope and of its tenant, each by itself. Commands are not limited.

    Facts are counted that are active or wait for a confirmation: both are stored, and a confirmation is then never over
    the limit. A turn of which nothing remains is a turn of its minute all the same, one that was refused for a limit is
    not. Tokens are counted where they were used, by refused turns and by commands as well.

    Without `reserves` nothing is written: what a turn would break is told, and it does not count.
    """

    def __init__(self, reservations: LimitReservations, *, reserves: bool = True) -> None:
        self._reservations = reservations
        self._check = reservations.reserve if reserves else reservations.check

    async def precheck(
        self, scope: Scope, rules: EffectivePolicy, size: int, published_at: datetime
    ) -> LimitHit | None:
        """The limit for which a turn of `size` bytes is refused before any model is asked: nothing is left over.

        It tells only what is projected and reserved: the truth is in `refused`.
        """
        return exceeded_turn_size(rules, size) or await self._reservations.exhausted_limit(scope, rules, published_at)

    async def exceeded_limit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, *, added: int, ended: int, tokens: int
    ) -> LimitHit | None:
        """The limit that a turn would break which adds and ends so many facts and used so many tokens, or None.

        To be asked right before the commit, for one owner after the other's commit is projected; a turn that is let
        through counts from now on, also before its commit is. No round trip where no limit is set.
        """
        if envelope.source_kind == "command" or envelope.scope is None:
            return None
        claim = TurnUsage(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=envelope.scope,
            published_at=envelope.published_at,
            facts=added - ended,
            tokens=tokens,
        )
        return exceeded_turn_size(rules, envelope.size) or await self._check(claim, rules)
