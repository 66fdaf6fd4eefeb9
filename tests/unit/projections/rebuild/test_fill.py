"""How partitions are divided among processes, and how errors come back from them."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.projections.errors import LogGapError, LogTooShortError, RebuildRunningError
from mnemolog.projections.rebuild.fill import divide
from mnemolog.schemas.errors import MnemologError, UnsupportedVersionError

SIZES = st.dictionaries(st.integers(0, 63), st.integers(0, 10_000))


@given(SIZES, st.integers(0, 16))
def test_each_partition_with_records_is_in_one_share(sizes: dict[int, int], shares: int) -> None:
    divided = divide(sizes, shares)
    assert len(divided) <= shares
    assert all(divided)
    expected = sorted(partition for partition, records in sizes.items() if records) if shares else []
    assert sorted(partition for share in divided for partition in share) == expected


@given(SIZES, st.integers(1, 16))
def test_no_share_exceeds_another_by_more_than_one_partition(sizes: dict[int, int], shares: int) -> None:
    totals = [(sum(sizes[one] for one in share), min(sizes[one] for one in share)) for share in divide(sizes, shares)]
    lightest = min((total for total, _ in totals), default=0) if len(totals) == shares else 0
    assert all(total - smallest <= lightest for total, smallest in totals)


@pytest.mark.parametrize(
    "error",
    [
        LogGapError(1, 5, 6),
        LogTooShortError(1, 4, 10),
        RebuildRunningError(),
        UnsupportedVersionError("Commit", 9, 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: MnemologError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - written here
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
