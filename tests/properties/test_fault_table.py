"""The table of former faults, without a search."""

from tests.properties.faults import FAULTS
from tests.properties.faults.table import table_with
from tests.properties.runs import Found


def test_the_rows_of_some_faults_stand_in_order_and_those_of_others_stay() -> None:
    first, second, third = [fault.what for fault in FAULTS if fault.found_by == "facts"][:3]
    before = table_with("", {third: Found(6, AssertionError()), second: Found(6, AssertionError())})
    table = table_with(before, {second: Found(1, AssertionError()), first: Found(2000)})
    rows = [f"| {first} | none | 2000 |", f"| {second} | facts | 2 |", f"| {third} | facts | 7 |"]
    assert table.splitlines()[2:] == rows
