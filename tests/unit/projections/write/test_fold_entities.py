"""Entities of the log become rows; what an event says of another scope, or of nobody known, does not."""

from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import TypeAdapter

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import AliasRow, Changes, EntityRow, EvidenceRow, LinkRow, LogPosition
from mnemolog.schemas import ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Alias
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES, AnyEntityEvent, EntityChange
from tests.support.builders.commits import BOB, added, commit, confirmed, day, fact_id_at
from tests.support.builders.entity_events import (
    EntityDraft,
    alias_added,
    entity_id_at,
    linked,
    name_alias,
    registered,
    relation_ended,
    relation_stated,
    with_entities,
)
from tests.support.harnesses.fold_harness import next_state
from tests.support.paths import ROOT

HERE = LogPosition(partition=0, offset=0)
FIRST = with_entities(
    commit("t1", added("Ana lives in Bern.")), registered("Ana"), registered("Bern", place=1, kind="place")
)
ANA, BERN = entity_id_at(FIRST), entity_id_at(FIRST, 1)
FACT = fact_id_at(FIRST)
BOBS = commit("b1", added("Bob sails."), scope=BOB)
WIFE = Alias(text="my wife", kind="tie", key=f"wife of {BERN}")
EXAMPLES = [
    path for name in ENTITY_EVENT_CLASSES for path in sorted((ROOT / "schemas" / "examples" / name).glob("*/*.json"))
]
EVENT: TypeAdapter[AnyEntityEvent] = TypeAdapter(AnyEntityEvent)


def folded(*commits: Commit) -> Changes:
    """The changes of the last one."""
    state = FoldState()
    for one in commits:
        changes = fold(state, one, HERE, one.to_bytes())
        state = next_state(state, changes)
    return changes


def second(*drafts: EntityDraft) -> Commit:
    return with_entities(commit("t2", added("Ana sails.")), *drafts)


def test_a_registered_entity_is_a_row_with_its_names() -> None:
    changes = folded(with_entities(commit("t1", added("Ana sails.")), registered("Ana", WIFE)))
    entity, *aliases = changes.entities
    assert isinstance(entity, EntityRow)
    assert (entity.event.name, entity.event.entity_id) == ("Ana", entity_id_at(FIRST))
    assert [(row.alias, row.place) for row in aliases if isinstance(row, AliasRow)] == [
        (name_alias("Ana"), 0),
        (WIFE, 1),
    ]


def test_links_are_to_entities_and_facts_of_the_same_or_an_earlier_commit() -> None:
    changes = folded(FIRST, second(registered("Sea"), linked(0, ANA, entity_id_at(second())), linked(FACT, BERN)))
    links = [(row.fact_id, row.link.entity_id) for row in changes.entities if isinstance(row, LinkRow)]
    assert links == [(fact_id_at(second()), ANA), (fact_id_at(second()), entity_id_at(second())), (FACT, BERN)]
    assert changes.rejections == []


def test_an_entity_that_is_linked_twice_in_one_role_is_one_row() -> None:
    changes = folded(FIRST, second(linked(0, ANA, ANA)))
    assert len(changes.entities) == 1


def test_twins_of_another_scope_are_left_out() -> None:
    theirs = entity_id_at(BOBS)
    for twins, kept in ((ANA, ANA), (theirs, None)):
        commits = (FIRST, with_entities(BOBS, registered("Tom")), second(registered("Ana", twins=(twins,))))
        (row,) = (row for row in folded(*commits).entities if isinstance(row, EntityRow))
        assert row.possible_twins == ((kept,) if kept else ())


def test_a_relation_is_one_of_known_entities_and_of_a_fact() -> None:
    changes = folded(FIRST, second(relation_stated(FACT, ANA, "lives_in", BERN, strength="weak")))
    (row,) = changes.entities
    assert isinstance(row, EvidenceRow)
    assert (row.relation_id, row.event.fact_id) == (ids.relation_id(ANA, "lives_in", BERN), FACT)
    assert changes.rejections == []


def test_what_a_repetition_tells_names_its_event_and_what_it_repeats() -> None:
    said = commit("t2", confirmed(FACT), added("Bern rains."))
    told = with_entities(
        said,
        alias_added(ANA, WIFE),
        alias_added(BERN, name_alias("Berne")),
        linked(FACT, ANA),
        linked(fact_id_at(said, 1), BERN),
        relation_stated(FACT, ANA, "lives_in", BERN),
    )
    rows = folded(FIRST, told).entities
    event_id = said.events[0].event_id
    aliases = [(row.alias, row.told_by, row.repeated_fact_id) for row in rows if isinstance(row, AliasRow)]
    assert aliases == [(WIFE, event_id, FACT), (name_alias("Berne"), None, None)]
    assert [row.told_by for row in rows if isinstance(row, LinkRow)] == [event_id, None]
    assert [row.told_by for row in rows if isinstance(row, EvidenceRow)] == [event_id]


UNKNOWN = {
    "registered twice": registered("Ana again", entity_id=ANA),
    "alias of nobody": alias_added(uuid4(), name_alias("Anna")),
    "link to nobody": linked(0, uuid4()),
    "link of no fact": linked(uuid4(), ANA),
    "relation to nobody": relation_stated(0, ANA, "friend", uuid4()),
    "relation of nobody": relation_stated(0, uuid4(), "friend", ANA),
    "relation by no fact": relation_stated(uuid4(), ANA, "lives_in", BERN),
    "relation to itself": relation_stated(0, ANA, "friend", ANA),
    "end of a relation to nobody": relation_ended(0, ANA, "friend", uuid4(), at=day(1)),
}
OF_ANOTHER_SCOPE = {
    "alias": alias_added(ANA, name_alias("Anna")),
    "link of their entity": linked(0, ANA),
    "link of their fact": linked(FACT, ANA),
    "relation by an own fact": relation_stated(0, ANA, "lives_in", BERN),
    "relation by their fact": relation_stated(FACT, ANA, "lives_in", BERN),
}


@pytest.mark.parametrize(
    ("committed", "draft"),
    [
        *(pytest.param(commit("t2", added("Ana sails.")), draft, id=name) for name, draft in UNKNOWN.items()),
        *(pytest.param(BOBS, draft, id=f"{name} of another scope") for name, draft in OF_ANOTHER_SCOPE.items()),
    ],
)
def test_an_event_about_what_its_scope_does_not_know_is_not_applied(committed: Commit, draft: EntityDraft) -> None:
    changes = folded(FIRST, with_entities(committed, draft))
    assert changes.entities == []
    assert [(row.reason, row.item) for row in changes.rejections] == [("foreign_target", 2)]
    assert len(changes.facts) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: "/".join(path.parts[-3:]))
def test_every_example_is_applied_where_what_it_names_is_known_and_in_no_other_scope(path: Path) -> None:
    event = EVENT.validate_json(path.read_bytes())
    named = {link.entity_id for link in getattr(event, "links", ())}
    named |= {getattr(event, name, None) for name in ("entity_id", "subject_id", "object_id")}
    if isinstance(event, EntityChange):
        named |= {*event.entity_ids, getattr(event, "original_id", None), getattr(event, "proposal", None)}
    theirs = event
    if event.event == "entity_registered":
        theirs, named = event.model_copy(update={"entity_id": ANA}), {ANA}
    else:
        named -= {getattr(event, "new_id", None), None}
    foreign = FoldState(entities=dict.fromkeys(filter(None, named), ("default", "bob", "", "", "")))
    changes = fold(foreign, commit("t2", added("Again."), entity_events=(theirs,)), HERE, b"")
    assert (changes.entities, [row.reason for row in changes.rejections]) == ([], ["foreign_target"])

    known = FoldState(entities=dict.fromkeys(filter(None, named), ("default", "alice", "", "", "")))
    known = next_state(known, fold(known, commit("t1", added("Ana sails.")), HERE, b""))
    if hasattr(event, "fact_id"):
        event = event.model_copy(update={"fact_id": FACT})
    if event.event in ("entity_split", "entity_summarised"):
        event = event.model_copy(update={"facts": (FACT,)})
    changes = fold(known, commit("t2", added("Again."), entity_events=(event,)), HERE, b"")
    assert changes.rejections == []
    assert changes.entities
