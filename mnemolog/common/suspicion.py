"""Tells a call that fails by its own fault from calls that fail because of what they all need."""

import math
from dataclasses import dataclass
from typing import Final

MAX_CHANCE: Final = 1e-6
"""A call is blamed when a healthy one would have failed as often with less than this probability."""
MIN_SHARE: Final = 0.1
"""One failure never multiplies the chance by less: it takes six, so that one burst of errors convicts nobody."""
_ENOUGH: Final = -math.log10(MAX_CHANCE) - 1e-9


@dataclass(slots=True)
class Suspicion:
    """How improbable the failures of one call are if the call is healthy, in powers of ten.

    Each failed attempt is compared with the attempts of other calls that ended in the same period. If `failures` of
    them failed and `successes` did not, and all were equally likely to fail, then this attempt was one of the
    `failures + 1` among `successes + failures + 1` with the probability (failures + 1) / (successes + failures + 1).
    The product over all attempts is the chance. Nothing is assumed about the failure rate, which may change between the
    attempts. Where no other attempt succeeded, the share is 1: an outage is no suspicion.
    """

    powers_of_ten: float = 0.0

    def add_failure(self, *, successes: int, failures: int) -> None:
        """Count one failed attempt, with the outcomes of other calls in its period."""
        share = (failures + 1) / (successes + failures + 1)
        self.powers_of_ten -= math.log10(max(share, MIN_SHARE))

    @property
    def is_conclusive(self) -> bool:
        """Whether the chance has come below `MAX_CHANCE`."""
        return self.powers_of_ten >= _ENOUGH
