"""The newest origins that a stage has processed, so that repeats are dropped."""

from collections import OrderedDict
from typing import Final

DEFAULT_SIZE: Final = 65_536


class SeenOrigins:
    """The newest `size` origins, each `topic/partition/offset` of the record that a record came from.

    Add an origin when its output is durable, never before. What is no longer remembered, or was processed by another
    process, is processed again; deterministic ids make that harmless.
    """

    # A set, not the highest offset: the origins of one user can come in any order.

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._size = size
        self._origins: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, origin: str) -> bool:
        if origin not in self._origins:
            return False
        self._origins.move_to_end(origin)
        return True

    def __len__(self) -> int:
        return len(self._origins)

    def add(self, origin: str) -> None:
        self._origins[origin] = None
        self._origins.move_to_end(origin)
        if len(self._origins) > self._size:
            self._origins.popitem(last=False)
