"""What stages ask of their surroundings, so that they need not know who answers."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from mnemolog.schemas.policy import EffectivePolicy, LimitHit, StoredPolicies
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides

ThresholdsFor = Callable[[str, Overrides], Thresholds]
"""The thresholds for an embedding model and a turn's overrides."""
RulesFor = Callable[[Scope, Overrides], Awaitable[EffectivePolicy]]
"""The rules for a scope and a turn's overrides."""
Precheck = Callable[[Scope, EffectivePolicy, int, datetime], Awaitable[LimitHit | None]]
"""The limit for which a turn of so many bytes, published then, is rejected before any model is called."""
WaitUntilProjected = Callable[[str, int], Awaitable[None]]
"""Returns when the tables hold all that was committed for an owner, whose log is the partition."""


class TurnSettings(Protocol):
    """The thresholds and rules for one turn."""

    def thresholds_for(self, model: str, overrides: Overrides) -> Thresholds: ...

    async def rules_for(self, scope: Scope, overrides: Overrides) -> EffectivePolicy: ...

    def rules_from(self, policies: StoredPolicies, overrides: Overrides) -> EffectivePolicy:
        """As `rules_for`, without looking the policies up."""
