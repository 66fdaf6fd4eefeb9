"""The properties by their names."""

from typing import Final

from tests.properties.order_independence import check_order_independence, permuted
from tests.properties.runs import Property

PROPERTIES: Final = (Property("order", permuted(), check_order_independence),)
