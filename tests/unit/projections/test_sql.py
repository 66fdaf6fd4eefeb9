"""Pages of SQL: the names in them are those of the code, what readers see hides names, and statements stay short."""

import re
from itertools import chain
from typing import Final

import pytest
from psycopg.sql import SQL
from pydantic import TypeAdapter

from mnemolog.projections.database import numbered
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search_query
from mnemolog.projections.sql import queries
from mnemolog.projections.write.projector import OVERWRITE_EVENTS
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES
from mnemolog.schemas.events import EVENT_CLASSES, MemoryEvent
from tests.support.cases.entity_readers import CHECKED, EXPLAINED
from tests.support.paths import ROOT

SCHEMA: Final = ROOT / "projections/migrations/projections"
SQL_FILES: Final = sorted((ROOT / "projections").rglob("*.sql"))
COMPARED: Final = re.compile(r"\bevent\s*(?:=\s*|(?:NOT\s+)?IN\s*\(\s*)('\w+'(?:\s*,\s*'\w+')*)")
EVENT: Final[TypeAdapter[MemoryEvent]] = TypeAdapter(MemoryEvent)


def name_lists(*names: str) -> list[frozenset[str]]:
    """Each list of names, or single name, that a column `event` is compared with in these files of the schema."""
    texts = ((SCHEMA / name).read_text() for name in names)
    return [frozenset(re.findall(r"'(\w+)'", found)) for text in texts for found in COMPARED.findall(text)]


def test_sql_compares_events_with_names_that_there_are() -> None:
    known = EVENT_CLASSES.keys() | ENTITY_EVENT_CLASSES.keys()
    for path in SQL_FILES:
        compared = {name for found in COMPARED.findall(path.read_text()) for name in re.findall(r"'(\w+)'", found)}
        assert compared <= known, path


@pytest.mark.parametrize("file", ["tables.sql", "views.sql"])
def test_recent_changes_and_overwrites_are_the_events_that_end_a_known_fact(file: str) -> None:
    paths = [path for name in EVENT_CLASSES for path in (ROOT / "schemas" / "examples" / name).rglob("*.json")]
    examples = [EVENT.validate_json(path.read_bytes()) for path in paths]
    assert frozenset(event.event for event in examples if event.overwrite) in name_lists(file)
    assert OVERWRITE_EVENTS in name_lists(file)


def test_recent_changes_list_the_subject_of_an_event_that_ends_it() -> None:
    names = frozenset(name for name, event in EVENT_CLASSES.items() if event.fixed_overwrite in ("retract", "expire"))
    assert names in name_lists("views.sql")


TABLES: Final = (
    r"entities|entity_aliases|entity_changes|fact_entities|relationships|relationship_evidence|merge_proposals"
    r"|current_entity_twins|shown_entity_details|shown_relations|summary_of_entity"
)
READS: Final = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE|LATERAL)\s+(?:mnemolog\.)?({TABLES})\b")


def reads() -> dict[str, set[str]]:
    """What each query reads of entities, by its file and name."""
    found = {}
    for file in sorted((ROOT / "projections/sql").glob("*.sql")):
        for query in file.read_text().split("-- name: ")[1:]:
            name, _, text = query.partition("\n")
            if tables := set(READS.findall(re.sub("--.*", "", text))):
                found[f"{file.stem}.{name}"] = tables
    return found


def test_every_query_that_reads_entities_is_checked_to_hide_names_or_explained() -> None:
    checked = set(chain.from_iterable(CHECKED.values()))
    assert reads().keys() == checked | EXPLAINED.keys()
    assert not checked & EXPLAINED.keys()


def test_no_query_stands_in_the_code() -> None:
    product = chain.from_iterable((ROOT / name).rglob("*.py") for name in ("projections", "streams", "mnemolog"))
    assert [str(path) for path in product if READS.search(path.read_text())] == []


def test_a_checked_query_reads_what_is_shown() -> None:
    """The columns and functions that hold what readers see, and never the column of all names."""
    for name in chain.from_iterable(CHECKED.values()):
        file, _, query = name.partition(".")
        text = queries(file)[query].as_string()
        assert re.search(r"\bshown_name\b|\.shown\b|\bshown_\w+\(|\bmerge_proposals\b|\bnames_in_change\b", text), name
        assert not re.search(r"\.alias\b", text), name


REMEMBERED = 4096  # characters; Psycopg looks for the parameters of longer statements at each call
EACH_TURN = ("candidates", "conversation", "entities", "limits", "linked_facts", "policies", "replies", "shown")


@pytest.mark.parametrize("file", EACH_TURN)
def test_what_is_asked_for_every_turn_is_remembered(file: str) -> None:
    assert [name for name, query in queries(file).items() if len(query.as_string()) > REMEMBERED] == []


def test_a_statement_is_sent_without_comments_and_indentation_and_with_what_it_includes() -> None:
    for query in queries("candidates").values():
        lines = query.as_string().splitlines()
        assert lines
        assert all(line == line.strip() and line and not line.startswith("--") for line in lines)
    shown = queries("pending")["merges"].as_string()
    assert "proposed.tenant, nullif(proposed.user_id, '') AS user_id, nullif(proposed.agent_id, '')" in shown
    texts = queries("facts")["texts"].as_string()
    assert "(tenant, user_id, agent_id, app_id, run_id) = (%(tenant)s, %(user_id)s, %(agent_id)s" in texts
    holding = queries("facts")["holding"].as_string()
    assert "(f.true_to IS NULL OR f.true_to > %(at)s)" in holding


def test_parameters_are_numbered_by_their_first_place() -> None:
    text = SQL("SELECT %(b)s, %(a)s, %(b)s::text WHERE x LIKE '5%%'").as_string()
    assert numbered(text) == ("SELECT $1, $2, $1::text WHERE x LIKE '5%'", ("b", "a"))


def test_the_parameters_of_a_search_are_looked_for_once() -> None:
    numbered.cache_clear()
    for user in ("a", "b"):
        query, _ = search_query([ScopeFilter(user_id=user)], SearchOptions())
        numbered(query.as_string())
    assert (numbered.cache_info().misses, numbered.cache_info().hits) == (1, 1)
