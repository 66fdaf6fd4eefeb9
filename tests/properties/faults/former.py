"""Faults that the project once had: each is found by one of the properties, or the table says so."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

DECISIONS: Final = "tests/integration/streams/resolution/test_"
UNIT: Final = "tests/unit/streams/resolution/test_"
STAGES: Final = "tests/unit/streams/stages/test_"
ENTITIES: Final = "tests/integration/streams/entities/test_"
COMMANDS: Final = "tests/integration/streams/commands/test_"
QUERIES: Final = "tests/integration/projections/queries/test_"
NAMESAKES: Final = "tests/unit/streams/entities/test_namesakes.py"
REPLIES: Final = "tests/unit/streams/llm/test_"
PatchedPlaces = Sequence[tuple[Any, str, Any]]
"""What is replaced: where, its name, and what it was while it was faulty."""


@dataclass(frozen=True)
class Fault:
    """A fault in words, the property that looks for it, and how to put it back.

    `example` is a test that fails while it is back: so it is known that it is. Without one the property is the test.
    """

    name: str
    what: str
    example: str
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
    what: str, example: str = "", *, found_by: str = "facts"
) -> Callable[[Callable[[], PatchedPlaces]], Callable[[], PatchedPlaces]]:
    """Have a function that gives the places of a fault be a row of the table."""

    def noted(places: Callable[[], PatchedPlaces]) -> Callable[[], PatchedPlaces]:
        FAULTS.append(Fault(places.__name__, what, example, found_by, places))
        return places

    return noted
