"""Adapters to frameworks for agents; each module imports its own framework, which is to be installed beside.

docs/how-to/frameworks.md has an example of each.
"""

from mnemolog.errors import MnemologError
from mnemolog.projections.queries.results import Result


def check_done(result: Result) -> None:
    """Raise `MnemologError` where a turn or command did not succeed."""
    if not result.success:
        raise MnemologError(f"the memory did not change: {result.error}")
