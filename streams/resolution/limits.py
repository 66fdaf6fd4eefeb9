"""Checks a turn against the limits of its scope and tenant; one over a limit is rejected and may be published again."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from mnemolog.schemas.command import Import, Promote
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, TurnUsage, exceeded_turn_size
from mnemolog.schemas.scope import Scope

if TYPE_CHECKING:
    from mnemolog.projections.stores.turns import LimitReservations


class LimitEnforcer:
    """The limits of a scope and of its tenant, each by itself. Of commands only an import has one: that of facts.

    Active and pending facts are counted: a confirmation is then never over the limit. A turn without facts still
    counts toward turns_per_minute; one rejected for a limit does not. Tokens count where they were used, by rejected
    turns as well.

    Without `reserves` nothing is written: a turn is only checked, and does not count.
    """

    def __init__(self, reservations: "LimitReservations", *, reserves: bool = True) -> None:
        self._reservations = reservations
        self._check = reservations.reserve if reserves else reservations.check

    async def precheck(
        self, scope: Scope, rules: EffectivePolicy, size: int, published_at: datetime
    ) -> LimitHit | None:
        """The limit for which a turn of `size` bytes is rejected before any model is called: nothing is left of it.

        It knows only what is projected and reserved; `exceeded_limit` is exact.
        """
        return exceeded_turn_size(rules, size) or await self._reservations.exhausted_limit(scope, rules, published_at)

    async def exceeded_limit(
        self, envelope: MatchedFacts, rules: EffectivePolicy, *, facts: int, tokens: int
    ) -> LimitHit | None:
        """The limit that a turn, an import or a promotion would break with so many more facts and tokens used.

        To be called right before the commit, when the owner's earlier commits are projected; a turn that is let through
        counts from now on, also before its commit is projected. None where it breaks none; no round trip where none is
        set.

        Budgets of the day are checked here only where a turn over one is to be rejected: what is paid for is else kept.
        """
        is_turn = envelope.source_kind == "turn"
        if envelope.scope is None or not (is_turn or (isinstance(envelope.order, Import | Promote) and facts > 0)):
            return None
        usage = TurnUsage(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=envelope.scope,
            published_at=envelope.published_at,
            facts=facts,
            tokens=tokens,
            turns=int(is_turn),
        )
        too_large = exceeded_turn_size(rules, envelope.size) if is_turn else None
        checked = rules if rules.when_spent == "reject" else rules.without_budgets
        return too_large or await self._check(usage, checked)


def added_facts(events: Sequence[MemoryEvent], at: datetime) -> int:
    """How many more facts are open `at` that time, history left out; an announced end has not come yet."""
    ended = {fact_id for event in events if (event.end_time or at) <= at for fact_id in event.ended_ids}
    return sum(event.new_fact is not None for event in events) - len(ended)
