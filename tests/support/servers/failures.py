"""How the test server fails: as real ones do, switched on and off while it runs."""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Literal

from pydantic import BaseModel, ConfigDict

Path = Literal["chat", "embeddings"]
Mode = Literal[
    "status",  # `status` with an error body, and Retry-After where `retry_after` is set
    "error_in_200",  # the same error, but with status 200 as some gateways do
    "hang",  # no answer until the failures are cleared; then as "cut"
    "trickle",  # the right reply byte by byte, until the failures are cleared; then the rest at once
    "cut",  # closes the connection without a word
    "cut_body",  # closes it in the middle of the reply
    "html",  # a proxy's page
    "truncated",  # the model's words end early, finish_reason "length"
    "wrong_schema",  # the model's words are JSON of another form
    "refusal",
    "content_filter",
    "no_choices",
    "wrong_count",  # one embedding is missing
    "wrong_dimensions",
    "nan",
]


class Failure(BaseModel):
    """Fail the next `times` requests (None: all) on `path` (None: both) whose body has `containing` in it.

    Of them a `share`, drawn by chance, fails.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode
    times: int | None = 1
    path: Path | None = None
    containing: str = ""
    share: float = 1.0
    status: int = 500
    retry_after: str | None = None

    def applies_to(self, path: Path, body: bytes) -> bool:
        return self.path in {None, path} and self.containing.encode() in body


class Failures:
    """The failures to come, in their order; safe to change from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: deque[tuple[Failure, list[int]]] = deque()
        self._chance = random.Random(0)

    def add(self, failure: Failure) -> None:
        with self._lock:
            self._coming.append((failure, [0]))

    def clear(self) -> None:
        with self._lock:
            self._coming.clear()

    def __contains__(self, failure: Failure) -> bool:
        with self._lock:
            return any(one is failure for one, _ in self._coming)

    def next_for(self, path: Path, body: bytes) -> Failure | None:
        """The failure that applies to this request."""
        if not self._coming:
            return None
        with self._lock:
            for failure, used in self._coming:
                is_left = failure.times is None or used[0] < failure.times
                if is_left and failure.applies_to(path, body) and self._chance.random() < failure.share:
                    used[0] += 1
                    return failure
        return None
