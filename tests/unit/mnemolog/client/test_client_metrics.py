"""How long calls that read take is measured in the application's process, by operation and outcome."""

import pytest
from prometheus_client import REGISTRY

from mnemolog import AsyncMemoryClient, MemoryClient, MnemologError
from mnemolog.client.metrics import CATALOGUE, measured, search_phase
from mnemolog.settings import Settings

NOWHERE = Settings(postgres="postgresql://127.0.0.1:1/none", kafka="127.0.0.1:1")


def counted(operation: str, outcome: str) -> float:
    labels = {"operation": operation, "outcome": outcome}
    return REGISTRY.get_sample_value("mnemolog_client_query_seconds_count", labels) or 0


@measured
class Reads:
    async def find(self) -> str:
        """Find it."""
        return "found"

    async def _find(self) -> str:
        return "found"


async def test_a_call_that_answers_is_measured_and_stays_itself() -> None:
    before = counted("find", "ok")
    assert await Reads().find() == await Reads()._find() == "found"
    assert counted("find", "ok") == before + 1
    assert Reads.find.__doc__ == "Find it."
    assert not hasattr(Reads._find, "__wrapped__")


def test_a_call_that_fails_is_measured_once_as_an_error() -> None:
    before = counted("facts", "error"), counted("facts", "ok")
    with MemoryClient(settings=NOWHERE) as memory, pytest.raises(MnemologError):
        memory.facts(user_id="alice")
    assert (counted("facts", "error"), counted("facts", "ok")) == (before[0] + 1, before[1])


def test_every_reading_method_is_measured() -> None:
    names = {"search", "context", "get", "facts", "facts_as_of", "profile", "history", "explain", "why_not", "pending"}
    names |= {"unresolved", "diff", "quality", "failed_turns", "received_turn", "short_ids"}
    assert all(hasattr(getattr(AsyncMemoryClient, name), "__wrapped__") for name in names)
    assert all(metric.name.startswith("mnemolog_client_") for metric in CATALOGUE)


def test_a_part_of_a_search_is_measured_also_where_it_fails() -> None:
    def seconds() -> float:
        return REGISTRY.get_sample_value("mnemolog_client_search_seconds_count", {"phase": "sql"}) or 0

    before = seconds()
    with search_phase("sql"):
        pass
    with pytest.raises(KeyError), search_phase("sql"):
        raise KeyError
    assert seconds() == before + 2
