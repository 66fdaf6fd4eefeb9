"""Which turns pass `extract` without a call of their own, because a shared call has answered them."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MAX_OWNERS: Final = 4096


class AnsweredTurns:
    """The turns of each owner, by offset, that have a part of a shared reply and have not left `extract` yet."""

    def __init__(self) -> None:
        self._offsets: OrderedDict[str, set[int]] = OrderedDict()
        self._held_up: set[str] = set()

    def add(self, owner: str, offset: int) -> None:
        self._offsets.setdefault(owner, set()).add(offset)
        while len(self._offsets) > MAX_OWNERS:
            self._offsets.popitem(last=False)

    @contextmanager
    def passing(self, owner: str, offset: int) -> Iterator[None]:
        """While `extract` works on a turn. One that is not answered yet holds up those behind it."""
        if offset not in self._offsets.get(owner, ()):
            self._held_up.add(owner)
        try:
            yield
        finally:
            self._held_up.discard(owner)
            left = {one for one in self._offsets.pop(owner, ()) if one > offset}
            if left:
                self._offsets[owner] = left

    def behind(self, owner: str, offset: int) -> int:
        """How many turns behind this one are sure to leave `extract` soon: none while a turn holds them up."""
        if owner in self._held_up:
            return 0
        return sum(one > offset for one in self._offsets.get(owner, ()))
