"""How entities are shown: with what the next command needs to name them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.cli.show_decisions import show_why_not
from mnemolog.cli.show_facts import (
    show_entities,
    show_entity,
    show_graph,
    show_neighbours,
    show_pending,
    show_relations,
    show_who,
)
from mnemolog.projections.queries.entities import (
    Entity,
    EntityDetails,
    EntityMoment,
    EntityName,
    EntityProfile,
    EntityRelation,
)
from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.queries.trace import TracedName
from mnemolog.projections.queries.write_result import WhyNot

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


def test_the_names_of_a_turn_are_shown_with_what_became_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    found = TracedName(name="Tom", entity_id=ANA, entity="Thomas", step="diminutive", compared=("Tommy",), fact_id=TWIN)
    nobody = TracedName(name="Bob", entity_id=None, entity=None, step=None, left_out="not_said")
    user = TracedName(name=None, entity_id=TWIN, entity="Alice", step="user")
    show_why_not(WhyNot(turn_id="t1", status="facts", facts=1, missing=(), names=(user, found, nobody)))
    shown = " ".join(capsys.readouterr().out.split())
    assert "every statement became a fact 2 names read" in shown
    assert f"{str(ANA)[:8]} Tom: Thomas is a short form of its name, or the other way round, and not Tommy" in shown
    assert "Bob left out: nobody said this name in the turn" in shown


def test_a_list_says_whose_merge_is_pending(capsys: pytest.CaptureFixture[str]) -> None:
    show_entities([entity(ANA, "Ana", pending_merges=[TWIN]), entity(TWIN, "my wife")])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Ana: person, in 1 fact 1 pending merge" in shown
    assert shown.count("pending merge") == 1


def test_a_pending_merge_is_shown_with_what_settles_it(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {"tenant": "default", "user_id": "alice", "agent_id": None, "app_id": None, "run_id": None}
    waiting = PendingMerge(
        event_id=TWIN,
        merged=ANA,
        into=TWIN,
        merged_name="my wife",
        into_name="Ana",
        reason="it was said",
        decided_by="policy",
        source_id="t1",
        since=AT,
        age=timedelta(days=2),
        **scope,
    )
    show_pending([waiting])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{TWIN} my wife may be Ana it was said waiting for 2 days" in shown
    assert f"confirm {TWIN} --user alice" in shown
    assert shown.endswith(f"reject {TWIN} --user alice")


def test_a_list_has_the_names_and_the_beginnings_of_ids(capsys: pytest.CaptureFixture[str]) -> None:
    show_entities([entity(ANA, "Ana", aliases=["my wife"], facts=2), entity(TWIN, "Ana", possible_twins=[ANA])])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("2 entities")
    assert f"{str(ANA)[:8]} Ana: person, in 2 facts also my wife" in shown
    assert f"{str(TWIN)[:8]} Ana: person, in 1 fact 1 possible twin" in shown


def test_without_entities_it_says_how_there_will_be_some(capsys: pytest.CaptureFixture[str]) -> None:
    show_entities([])
    assert "check the scope" in capsys.readouterr().out


def test_who_tells_that_nobody_is_it_and_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    show_who([])
    assert "nobody and nothing known is that: `mnemolog relations`" in " ".join(capsys.readouterr().out.split())
    show_who([entity(ANA, "Ana")])
    assert "Ana: person" in capsys.readouterr().out


def test_one_has_its_names_facts_and_twins(capsys: pytest.CaptureFixture[str]) -> None:
    names = [EntityName(name=name, kind="name", recorded_at=AT, event_id=ANA) for name in ("Ana", "Ana Keller")]
    show_entity(EntityDetails(entity=entity(ANA, "Ana"), names=names, facts=[], twins=[entity(TWIN, "Ana")]))
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == f"Ana, person ({ANA})"
    for part in ("2 names", "Ana Keller", "no facts", "may be the same as", str(TWIN)[:8]):
        assert part in shown


def test_one_has_its_values_and_what_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    timeline = [
        EntityMoment(at=AT, change="learned", text="Ana lives in Rome.", fact_id=ANA),
        EntityMoment(at=AT, change="ended", text="Ana lives in Rome.", fact_id=ANA),
        EntityMoment(at=AT, change="relation_ended", text="Ana lives_in Rome", fact_id=ANA),
    ]
    profile = EntityProfile(values={"home_city": "Oslo"}, texts=["Ana lives in Oslo."])
    details = EntityDetails(entity=entity(ANA, "Ana"), names=[], facts=[], twins=[], profile=profile, timeline=timeline)
    show_entity(details)
    shown = " ".join(capsys.readouterr().out.split())
    assert "home_city = Oslo" in shown
    assert "2 ends 2026-03-01 00:00 UTC Ana lives in Rome. ended 2026-03-01 00:00 UTC Ana lives_in Rome over" in shown


def relation(subject: str, predicate: str, object_: str, **fields: Any) -> EntityRelation:
    scope: dict[str, Any] = {"tenant": "default", "user_id": "alice", "agent_id": None, "app_id": None, "run_id": None}
    told: dict[str, Any] = {
        "is_active": True,
        "is_mirror": False,
        "is_contested": False,
        "strength": "strong",
        "since": AT,
        "until": None,
        "evidence": [ANA],
        "endings": [],
    }
    ends = {"subject_id": ANA, "object_id": TWIN, "subject": subject, "object": object_}
    return EntityRelation(predicate=predicate, recorded_at=AT, **scope | told | ends | fields)


def test_relations_say_what_they_are_how_and_since_when(capsys: pytest.CaptureFixture[str]) -> None:
    over = relation("Alice", "employer", "Acme", is_active=False, until=AT, strength="medium")
    show_relations([relation("Alice", "lives_in", "Bern", is_contested=True), over])
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 relations" in shown
    assert "Alice: lives in Bern strong, since 2026-03-01" in shown
    assert "another one holds as well" in shown
    assert "Alice: employer Acme medium, holds no longer" in shown
    assert str(ANA) in shown


def test_neighbours_are_shown_with_the_path_to_them(capsys: pytest.CaptureFixture[str]) -> None:
    path = [relation("Alice", "spouse", "Ana"), relation("Ana", "manager", "Eva")]
    show_neighbours([Neighbour(entity=entity(TWIN, "Eva"), hops=2, path=path)])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"1 neighbour {str(TWIN)[:8]} Eva: person Alice: spouse Ana Ana: manager Eva" in shown


def test_a_graph_is_printed_as_it_is_however_long_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lives = relation("Alice", "lives_in", "Bern")
    graph = EntityGraph(entities=[entity(ANA, "A" * 100), entity(TWIN, "[red]T")], relations=[lives])
    show_graph(graph)
    assert capsys.readouterr().out == graph.mermaid
    assert '    e0 -->|"lives in"| e1' in graph.mermaid.splitlines()


@pytest.mark.parametrize("show", [show_relations, show_neighbours])
def test_without_any_it_says_so(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    show([])
    assert capsys.readouterr().out.startswith("no ")
