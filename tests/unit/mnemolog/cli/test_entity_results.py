"""How entities are shown: with what the next command needs to name them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.cli.results import show_entities, show_entity
from mnemolog.projections.lists.entities import Entity, EntityDetails, EntityName

AT = datetime(2026, 3, 1, tzinfo=UTC)
ANA, TWIN = UUID(int=10**37), UUID(int=2 * 10**37)


def entity(entity_id: UUID, name: str, **fields: Any) -> Entity:
    scope: dict[str, Any] = {"tenant": "default", "user_id": "alice", "agent_id": None, "app_id": None, "run_id": None}
    told: dict[str, Any] = {
        "type": "person",
        "is_user": False,
        "aliases": [],
        "facts": 1,
        "possible_twins": [],
        "source_id": "t1",
    }
    return Entity(entity_id=entity_id, name=name, recorded_at=AT, **scope | told | fields)


def test_a_list_has_the_names_and_the_beginnings_of_ids(capsys: pytest.CaptureFixture[str]) -> None:
    show_entities([entity(ANA, "Ana", aliases=["my wife"], facts=2), entity(TWIN, "Ana", possible_twins=[ANA])])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("2 entities")
    assert f"{str(ANA)[:8]} Ana: person, in 2 facts also my wife" in shown
    assert f"{str(TWIN)[:8]} Ana: person, in 1 fact 1 possible twin" in shown


def test_without_entities_it_says_how_there_will_be_some(capsys: pytest.CaptureFixture[str]) -> None:
    show_entities([])
    assert "check the scope" in capsys.readouterr().out


def test_one_has_its_names_facts_and_twins(capsys: pytest.CaptureFixture[str]) -> None:
    names = [EntityName(name=name, kind="name", recorded_at=AT, event_id=ANA) for name in ("Ana", "Ana Keller")]
    show_entity(EntityDetails(entity=entity(ANA, "Ana"), names=names, facts=[], twins=[entity(TWIN, "Ana")]))
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == f"Ana, person ({ANA})"
    for part in ("2 names", "Ana Keller", "no facts", "may be the same as", str(TWIN)[:8]):
        assert part in shown
