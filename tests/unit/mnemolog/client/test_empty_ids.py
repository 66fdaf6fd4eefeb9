"""An id that is empty means nobody: it never makes a scope wider."""

import pytest

from mnemolog import QueryError
from mnemolog.client.inputs import scope_and_filter, wide_filter


def test_a_filter_does_not_take_the_place_of_an_empty_id() -> None:
    with pytest.raises(QueryError, match="an id in the scope is empty"):
        scope_and_filter({"tenant": "default", "user_id": ""}, {"OR": [{"user_id": "bob"}]})


def test_an_empty_id_is_not_any_id() -> None:
    with pytest.raises(QueryError, match="an id in the scope is empty"):
        wide_filter({"tenant": "default", "user_id": ""})
    assert wide_filter({"tenant": "default", "user_id": "ann"}).run_id == "**"
