"""What a measurement tells while it runs."""

import sys
import time
from collections.abc import Callable


def timed_steps() -> Callable[[str], None]:
    """Writes each step to standard error, with the seconds since this was called."""
    started = time.perf_counter()

    def tell(step: str) -> None:
        sys.stderr.write(f"{time.perf_counter() - started:6.0f} s  {step}\n")

    return tell
