"""How long a turn waits for others to share its call."""

from dataclasses import dataclass
from typing import Final

MAX_ARRIVING_SECONDS: Final = 5.0
FRESH_SECONDS: Final = 1.0
"""A turn that was published so short a time ago is no backlog: it does not wait until its partition is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWait:
    """The seconds that a turn waits for others: `linger` for any, `arriving` for those that are sure to come."""

    linger: float = 0.0
    arriving: float = 0.0

    @classmethod
    def of_extraction(cls, waited: float, *, linger: float) -> "CallWait":
        """That of a turn that was published `waited` seconds ago, which are a part of `linger`."""
        arriving = arriving_seconds(waited) if waited > FRESH_SECONDS else 0.0
        return cls(linger=min(linger, max(0.0, linger - waited)), arriving=arriving)

    def __bool__(self) -> bool:
        return bool(self.linger or self.arriving)


def arriving_seconds(waited: float) -> float:
    """How long a turn waits for others that are sure to come: no longer than it has waited since its publication."""
    return min(max(0.0, waited), MAX_ARRIVING_SECONDS)
