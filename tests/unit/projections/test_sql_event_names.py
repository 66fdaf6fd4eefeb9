"""SQL cannot import the classes of events: its lists of their names are compared with them here."""

import re
from pathlib import Path
from typing import Final

import pytest
from pydantic import TypeAdapter

from mnemolog.projections.write.projector import OVERWRITE_EVENTS
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES
from mnemolog.schemas.events import EVENT_CLASSES, MemoryEvent

ROOT: Final = Path(__file__).parents[3]
SCHEMA: Final = ROOT / "projections/migrations/projections"
SQL_FILES: Final = sorted((ROOT / "projections").rglob("*.sql"))
_COMPARED: Final = re.compile(r"\bevent\s*(?:=\s*|(?:NOT\s+)?IN\s*\(\s*)('\w+'(?:\s*,\s*'\w+')*)")
_EVENT: Final[TypeAdapter[MemoryEvent]] = TypeAdapter(MemoryEvent)


def _examples() -> list[MemoryEvent]:
    paths = [path for name in EVENT_CLASSES for path in (ROOT / "schemas" / "examples" / name).rglob("*.json")]
    return [_EVENT.validate_json(path.read_bytes()) for path in paths]


def _name_lists(path: Path) -> list[frozenset[str]]:
    """Each list of names, or single name, that a column `event` is compared with."""
    return [frozenset(re.findall(r"'(\w+)'", names)) for names in _COMPARED.findall(path.read_text())]


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_sql_compares_events_with_names_that_there_are(path: Path) -> None:
    assert frozenset[str]().union(*_name_lists(path)) <= EVENT_CLASSES.keys() | ENTITY_EVENT_CLASSES.keys()


@pytest.mark.parametrize("file", ["tables.sql", "views.sql"])
def test_recent_changes_are_the_events_that_can_end_a_known_fact(file: str) -> None:
    ending = frozenset(event.event for event in _examples() if event.overwrite)
    assert ending in _name_lists(SCHEMA / file)


def test_the_view_of_overwrites_and_its_index_have_the_events_that_end_a_known_fact() -> None:
    assert OVERWRITE_EVENTS in _name_lists(SCHEMA / "tables.sql")
    assert OVERWRITE_EVENTS in _name_lists(SCHEMA / "views.sql")


def test_recent_changes_list_the_subject_of_an_event_that_ends_it() -> None:
    names = frozenset(name for name, event in EVENT_CLASSES.items() if event.fixed_overwrite in ("retract", "expire"))
    assert names in _name_lists(SCHEMA / "views.sql")
