"""How much is allowed: a turn over a limit is refused with the count and the limit, and may be published again."""

from datetime import datetime

from mnemolog.projections.limits import Claim, Reservations, too_large
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.policy import LimitHit, Rules
from mnemolog.schemas.scope import Scope


class Limiting:
    """The limits of a scope and of its tenant, each by itself. Commands are not limited.

    Facts are counted that are active or wait for a confirmation: both are stored, and a confirmation is then never over
    the limit. A turn of which nothing remains is a turn of its minute all the same, one that was refused for a limit is
    not. Tokens are counted where they were used, by refused turns and by commands as well.

    Without `reserves` nothing is written: what a turn would break is told, and it does not count.
    """

    def __init__(self, reservations: Reservations, *, reserves: bool = True) -> None:
        self._reservations = reservations
        self._refused = reservations.refused if reserves else reservations.foreseen

    async def precheck(self, scope: Scope, rules: Rules, size: int, published_at: datetime) -> LimitHit | None:
        """The limit for which a turn of `size` bytes is refused before any model is asked: nothing is left over.

        It tells only what is projected and reserved: the truth is in `refused`.
        """
        return too_large(rules, size) or await self._reservations.used_up(scope, rules, published_at)

    async def refused(
        self, envelope: MatchedFacts, rules: Rules, *, added: int, ended: int, tokens: int
    ) -> LimitHit | None:
        """The limit that a turn would break which adds and ends so many facts and used so many tokens, or None.

        To be asked right before the commit, for one owner after the other's commit is projected; a turn that is let
        through counts from now on, also before its commit is. No round trip where no limit is set.
        """
        if envelope.source_kind == "command" or envelope.scope is None:
            return None
        claim = Claim(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=envelope.scope,
            published_at=envelope.published_at,
            facts=added - ended,
            tokens=tokens,
        )
        return too_large(rules, envelope.size) or await self._refused(claim, rules)
