"""What a fault is that can be put back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """A fault in words, and a way to put it back for as long as the context is open."""

    name: str
    words: str
    put_back: Callable[[], AbstractContextManager[object]]


@contextmanager
def all_of(*patches: Any) -> Iterator[None]:
    """Several patches as one."""
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
