"""Long statements, as they are sent."""

from psycopg.sql import SQL

from mnemolog.projections.database import numbered
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search_query


def test_parameters_are_numbered_by_their_first_place() -> None:
    text = SQL("SELECT %(b)s, %(a)s, %(b)s::text WHERE x LIKE '5%%'").as_string()
    assert numbered(text) == ("SELECT $1, $2, $1::text WHERE x LIKE '5%'", ("b", "a"))


def test_the_parameters_of_a_search_are_looked_for_once() -> None:
    numbered.cache_clear()
    for user in ("a", "b"):
        query, _ = search_query([ScopeFilter(user_id=user)], SearchOptions())
        numbered(query.as_string())
    assert (numbered.cache_info().misses, numbered.cache_info().hits) == (1, 1)
