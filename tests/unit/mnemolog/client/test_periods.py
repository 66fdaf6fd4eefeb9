"""The period of a search, as a caller writes it."""

from datetime import UTC, date, datetime

import pytest

from mnemolog import QueryError
from mnemolog.client.search_arguments import search_options

FIRST, LAST = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "given", [("2026-03-01", "2026-04-01"), [date(2026, 3, 1), LAST], [FIRST, "2026-04-01T00:00:00Z"]]
)
def test_days_and_times_are_taken_as_everywhere(given: list[str]) -> None:
    assert search_options({"period": given}).period == (FIRST, LAST)


@pytest.mark.parametrize("given", [[1, 2], ["2026-03-01T00:00:00", "2026-04-01"], ["soon", "later"]])
def test_what_is_no_time_is_named(given: list[str]) -> None:
    with pytest.raises(QueryError, match=r"period\.0"):
        search_options({"period": given})
