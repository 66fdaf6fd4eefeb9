import pytest

from mnemolog.projections.errors import QueryError, check_unicode
from mnemolog.projections.queries.scope_filter import ScopeFilter


@pytest.mark.parametrize("text", ["", "plain", "Zürich 💩", "語" * 1000])
def test_text_in_any_language_is_a_question(text: str) -> None:
    check_unicode(text)


def test_bytes_that_are_not_utf_8_are_told_as_such() -> None:
    with pytest.raises(QueryError, match=r"character 2 .* give text in UTF-8"):
        check_unicode("x \udcff")


def test_nor_can_they_name_a_scope() -> None:
    with pytest.raises(QueryError, match="UTF-8"):
        ScopeFilter(user_id="a\udcff")
