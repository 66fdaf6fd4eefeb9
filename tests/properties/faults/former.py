"""Faults that the project once had: each is found by one of the properties, or the table says so."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

PatchedPlaces = Sequence[tuple[Any, str, Any]]
"""What is replaced: where, its name, and what it was while it was faulty."""


@dataclass(frozen=True)
class Fault:
    """A fault in words, the property that looks for it, and how to put it back."""

    name: str
    what: str
    found_by: str
    places: Callable[[], PatchedPlaces]

    @contextmanager
    def put_back(self) -> Iterator[None]:
        with ExitStack() as stack:
            for where, name, faulty in self.places():
                stack.enter_context(patch.object(where, name, faulty))
            yield


FAULTS: Final[list[Fault]] = []


def fault(
    what: str, *, found_by: str = "facts"
) -> Callable[[Callable[[], PatchedPlaces]], Callable[[], PatchedPlaces]]:
    """Have a function that gives the places of a fault be a row of the table."""

    def noted(places: Callable[[], PatchedPlaces]) -> Callable[[], PatchedPlaces]:
        FAULTS.append(Fault(places.__name__, what, found_by, places))
        return places

    return noted
