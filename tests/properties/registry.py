"""The properties by their names."""

from typing import Final

from tests.properties.honest_readers import check_honest_readers
from tests.properties.nothing_vanishes import check_nothing_vanishes
from tests.properties.order_independence import check_order_independence, permuted
from tests.properties.runs import Property
from tests.properties.stories import stories

PROPERTIES: Final = (
    Property("order", permuted(), check_order_independence),
    Property("vanish", stories(10), check_nothing_vanishes),
    Property("readers", stories(10), check_honest_readers),
)
