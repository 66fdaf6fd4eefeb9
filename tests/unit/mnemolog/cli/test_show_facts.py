"""How facts and entities are shown: with what the next command needs to name them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.cli.show import (
    show_entities,
    show_entity,
    show_graph,
    show_names,
    show_neighbours,
    show_pending,
    show_relations,
    show_search,
    show_unresolved,
    show_who,
)
from mnemolog.client.search import SearchResult
from mnemolog.projections.queries.entities import (
    Entity,
    EntityDetails,
    EntityMoment,
    EntityName,
    EntityProfile,
    EntityRelation,
)
from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.queries.pending import PendingMerge, UnresolvedFact
from mnemolog.projections.queries.trace import TracedName
from mnemolog.projections.search.search import LeftOutHits
from tests.support.builders.hits import a_fact, a_hit, a_turn_hit

AT = datetime(2026, 3, 1, tzinfo=UTC)
ANA, TWIN = UUID(int=10**37), UUID(int=2 * 10**37)
ANA_ID, TWIN_ID = str(ANA)[:8], str(TWIN)[:8]
SCOPE: dict[str, Any] = {"tenant": "default", "user_id": "alice", "agent_id": None, "app_id": None, "run_id": None}


def entity(entity_id: UUID, name: str, **fields: Any) -> Entity:
    common: dict[str, Any] = {"type": "person", "is_user": False, "aliases": [], "facts": 1, "possible_twins": []}
    return Entity(entity_id=entity_id, name=name, recorded_at=AT, source_id="t1", **SCOPE | common | fields)


def details(**fields: Any) -> EntityDetails:
    return EntityDetails(**{"entity": entity(ANA, "Ana"), "names": [], "facts": [], "twins": [], **fields})


def relation(subject: str, predicate: str, object_: str, **fields: Any) -> EntityRelation:
    common: dict[str, Any] = {
        "is_active": True, "is_mirror": False, "is_contested": False, "strength": 0.8, "since": AT, "until": None,
        "evidence": [ANA], "endings": [], "recorded_at": AT, "subject_id": ANA, "object_id": TWIN,
    }  # fmt: skip
    return EntityRelation(subject=subject, predicate=predicate, object=object_, **SCOPE | common | fields)


def moment(change: Any, text: str) -> EntityMoment:
    return EntityMoment(at=AT, change=change, text=text, fact_id=ANA)


@pytest.mark.parametrize(
    ("show", "found", "words"),
    [
        (show_entities, [], "no entities: check the scope"),
        (show_entities, [entity(ANA, "Ana", aliases=["my wife"], facts=2), entity(TWIN, "Ana", possible_twins=[ANA])],
         f"2 entities {ANA_ID} Ana: person, in 2 facts also my wife {TWIN_ID} Ana: person, in 1 fact 1 possible twin"),
        (show_entities, [entity(ANA, "Ana", pending_merges=[TWIN]), entity(TWIN, "my wife")],
         f"{ANA_ID} Ana: person, in 1 fact 1 pending merge {TWIN_ID} my wife: person, in 1 fact"),
        (show_who, [], "nobody and nothing known is that: `mnemolog relations`"),
        (show_who, [entity(ANA, "Ana")], "Ana: person"),
        (show_entity,
         details(names=[EntityName(name=name, kind="name", recorded_at=AT, event_id=ANA) for name in ("Ana", "Annie")],
                 twins=[entity(TWIN, "Ana")]),
         (f"Ana, person ({ANA}) 2 names 2026-03-01 00:00 UTC Ana 2026-03-01 00:00 UTC Annie no facts "
         f"may be the same as {TWIN_ID} Ana")),
        (show_entity,
         details(profile=EntityProfile(values={"home_city": "Oslo"}, texts=["Ana lives in Oslo."]),
                 timeline=[moment("learned", "In Rome."), moment("ended", "In Rome."), moment("relation_ended", "R")]),
         "home_city = Oslo 2 ends 2026-03-01 00:00 UTC In Rome. ended 2026-03-01 00:00 UTC R over"),
        (show_relations, [], "no relations hold"),
        (show_relations, [relation("Alice", "lives_in", "Bern", is_contested=True)],
         f"1 relation {ANA} Alice: lives in Bern strength 0.80, since 2026-03-01 00:00 UTC, another one holds as well"),
        (show_relations, [relation("Alice", "employer", "Acme", is_active=False, until=AT, strength=0.6)],
         "Alice: employer Acme strength 0.60, holds no longer, since 2026-03-01 00:00 UTC, until 2026-03-01"),
        (show_neighbours, [], "no neighbours"),
        (show_neighbours,
         [Neighbour(entity=entity(TWIN, "Eva"), hops=2,
                    path=[relation("Alice", "spouse", "Ana"), relation("Ana", "manager", "Eva")])],
         f"1 neighbour {TWIN_ID} Eva: person Alice: spouse Ana Ana: manager Eva"),
        (show_names, [TracedName(name=None, entity_id=TWIN, entity="Alice", step="user"),
                      TracedName(name="Tom", entity_id=ANA, entity="Thomas", step="diminutive", compared=("Tommy",)),
                      TracedName(name="Bob", entity_id=None, entity=None, step=None, left_out="not_said")],
         (f"2 names read {ANA_ID} Tom: Thomas is a short form of its name, or the other way round, and not Tommy "
         "- Bob left out: nobody said this name in the turn")),
    ],
)  # fmt: skip
def test_entities_are_shown_as_the_next_command_names_them(
    show: Callable[..., None], found: Any, words: str, shown: Callable[..., str]
) -> None:
    assert words in shown(show, found)


def test_a_pending_merge_is_shown_with_what_settles_it(shown: Callable[..., str]) -> None:
    names: dict[str, Any] = {"merged_name": "my wife", "into_name": "Ana", "reason": "it was said"}
    waiting = PendingMerge(
        event_id=TWIN, merged=ANA, into=TWIN, decided_by="rule", source_id="t1", since=AT, age=timedelta(days=2),
        **names, **SCOPE,
    )  # fmt: skip
    text = shown(show_pending, [waiting])
    assert f"{TWIN} my wife may be Ana it was said waiting for 2 days" in text
    assert f"confirm {TWIN} --user alice" in text
    assert text.endswith(f"reject {TWIN} --user alice")


def test_a_graph_is_printed_as_it_is_however_long_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lives = relation("Alice", "lives_in", "Bern")
    graph = EntityGraph(entities=[entity(ANA, "A" * 100), entity(TWIN, "[red]T")], relations=[lives])
    show_graph(graph)
    assert capsys.readouterr().out == graph.mermaid
    assert '    e0 -->|"lives in"| e1' in graph.mermaid.splitlines()


def test_turns_that_were_found_come_after_the_facts(shown: Callable[..., str]) -> None:
    facts, turns = shown(
        show_search, SearchResult(hits=(a_hit(),), mode="hybrid", turns=(a_turn_hit(),))
    ).split("1 turn, found by words")  # fmt: skip
    assert "1 fact, found by meaning and words" in facts
    assert "t1 I live in Bern. score 0.300 said by Alice, 2026-03-01 09:00 UTC, 1 fact" in turns
    assert "fact, found" not in shown(show_search, SearchResult(hits=(), mode="lexical", turns=(a_turn_hit(),)))


def test_the_parts_of_a_score_and_what_is_left_out_are_shown_on_request(shown: Callable[..., str]) -> None:
    found = SearchResult(
        hits=(a_hit(text_part=0.025),), mode="hybrid", turns=(a_turn_hit(),),
        left_out={"below_threshold": LeftOutHits(facts=3, first=())}, left_out_turns={"over_limit": 1},
    )  # fmt: skip
    assert "of it" not in shown(show_search, found)
    text = shown(show_search, replace(found, explained=True))
    assert "of it vector 0.100, text 0.025" in text
    assert "of it text 0.200, names 0.100" in text
    assert "no hits: 3 facts, below threshold no hits: 1 turn, over limit" in text


@pytest.mark.parametrize(
    ("excerpt", "said"), [("I live in Bern.", 'said: "I live in Bern."'), ("", "imported: no turn says it")]
)
def test_what_nobody_has_said_is_shown_as_imported(excerpt: str, said: str, shown: Callable[..., str]) -> None:
    fact = replace(a_fact(), excerpt=excerpt, unresolved=True)
    unresolved = UnresolvedFact(fact=fact, beside=(), reason="r", model=None, since=AT, age=timedelta(1), event_id=ANA)
    text = shown(show_unresolved, [unresolved])
    assert said in text
    assert 'said: ""' not in text
