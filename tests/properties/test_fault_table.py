"""The table of former faults, without a search."""

from tests.properties.faults import FAULTS
from tests.properties.faults.table import Search, table_with


def test_the_rows_of_some_faults_stand_in_order_and_those_of_others_stay() -> None:
    first, second, third = (Search(fault, "people", 7, "", 1.0) for fault in FAULTS[:3])
    before = table_with("", [third, second])
    found_sooner = Search(second.fault, "facts", 2, "", 1.0)
    *_, one, other, last = table_with(before, [found_sooner, first]).splitlines()
    assert (one, other, last) == (first.row, found_sooner.row, third.row)


def test_a_fault_that_is_not_found_says_so() -> None:
    assert table_with("", [Search(FAULTS[0], None, 2000, "", 1.0)]).endswith(f"| {FAULTS[0].what} | none | 2000 |")
