"""The way of a fact through its versions, and its explanation: as values, as JSON and in words; on a real Postgres."""

from dataclasses import replace
from uuid import UUID

import orjson
import pytest

from mnemolog.projections.database import RowConnection
from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries.explain import Explanation, History, explain, history
from mnemolog.schemas.command import Correct, Edit
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState, Reversal
from mnemolog.schemas.provenance import FactSnapshot, Provenance, Step, Thresholds
from mnemolog.texts import explanation_sentences
from tests.support.builders.commits import (
    BOB,
    added,
    command_commit,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    related,
    replaced,
    retracted,
    skipped,
    undone,
    weighed_candidate,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

HELLO = [{"name": None, "role": "user", "content": "Hello."}]
MODEL_STEP = Step(
    stage="extract", milliseconds=1, model="reader", prompt_version="extract-2", complaints=("no JSON",), notes=("cut",)
)


async def told(db: ProjectedDatabase, made: Commit, ordinal: int = 0) -> History:
    return await history(db.conn, "default", fact_id_at(made, ordinal))


async def explained(conn: RowConnection, made: Commit) -> Explanation:
    explanation, texts = await explain(conn, "default", fact_id_at(made))
    return replace(explanation, words=explanation_sentences(explanation, texts))


async def test_a_history_has_every_version_and_what_touched_it(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."), added("Has a cat."), added("Unrelated."))
    second = commit("2", replaced("Lives in Rome.", fact_id_at(first), reason="she moved"), at=day(1))
    third = commit("3", skipped(fact_id_at(second)), confirmed(fact_id_at(second)), at=day(2))
    fourth = commit("4", merged("Lives in Rome with a cat.", fact_id_at(second), fact_id_at(first, 1)), at=day(3))
    fifth = commit("5", contradicted("Lives in Nice.", fact_id_at(fourth)), at=day(4))
    await db.apply(first, second, third, fourth, fifth)
    found = await told(db, fourth)
    assert [(one.text, one.status) for one in found.versions if one.text != "Has a cat."] == [
        ("Lives in Bern.", "superseded"),
        ("Lives in Rome.", "superseded"),
        ("Lives in Rome with a cat.", "archived"),
        ("Lives in Nice.", "active"),
    ]
    assert len(found.versions) == 5
    assert [(event.event, event.source_id) for event in found.events] == [
        ("fact_added", "1"),
        ("fact_added", "1"),
        ("fact_replaced", "2"),
        ("fact_skipped", "3"),
        ("fact_confirmed", "3"),
        ("facts_merged", "4"),
        ("fact_contradicted", "5"),
    ]
    moved = found.events[2]
    assert (moved.reason, moved.decided_by, moved.targets) == ("she moved", "rule", [fact_id_at(first)])
    assert moved.candidates == [{"fact_id": str(fact_id_at(first)), "similarity": 0.8}]
    of_parent = [one.text for one in (await told(db, first, 1)).versions]
    assert of_parent == ["Has a cat.", "Lives in Rome with a cat.", "Lives in Nice."]  # and not its sibling


async def test_what_a_confirmation_or_a_correction_ended_is_a_version_both_ways(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."))
    waiting = commit("2", pending("Lives in Rome.", fact_id_at(first), action="replace"), at=day(1))
    third = commit("3", pending_confirmed(fact_id_at(waiting), fact_id_at(first), action="replace"), at=day(2))
    fourth = commit("4", corrected("Lives in Milan.", fact_id_at(waiting)), at=day(3))
    await db.apply(first, waiting, third, fourth)
    for asked in (first, waiting, fourth):
        found = await told(db, asked)
        assert [one.text for one in found.versions] == ["Lives in Bern.", "Lives in Rome.", "Lives in Milan."]
    events = ["fact_added", "fact_pending", "pending_confirmed", "fact_corrected"]
    assert [event.event for event in found.events] == events
    assert found.versions[1].believed_from == third.decided_at


async def test_an_undo_is_among_the_events_and_marks_what_it_took_back(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."))
    await db.apply(first)
    (known,) = (await told(db, first)).versions
    before = FactState(**{name: getattr(known, name) for name in FactState.model_fields})
    second = commit("2", replaced("Lives in Rome.", fact_id_at(first)), at=day(1))
    reversals = (
        Reversal(fact_id=fact_id_at(first), now="superseded", before=before),
        Reversal(fact_id=fact_id_at(second), now="active", before=None),
    )
    await db.apply(second, commit("3", undone(event_id_at(second), *reversals), at=day(2)))
    found = await told(db, first)
    assert [(event.event, event.undone) for event in found.events] == [
        ("fact_added", False),
        ("fact_replaced", True),
        ("decision_undone", False),
    ]
    assert [(one.text, one.status) for one in found.versions] == [
        ("Lives in Bern.", "active"),
        ("Lives in Rome.", "undone"),
    ]
    assert found.events[2].fact_id is None


async def test_relations_are_told_from_both_ends_and_hold_while_both_do(db: ProjectedDatabase) -> None:
    first = commit("1", added("Has a dog."), added("Likes tea."))
    more = (extended("The dog is Rex.", fact_id_at(first)), related("Tea at four.", fact_id_at(first, 1)))
    second = commit("2", *more, at=day(1))
    await db.apply(first, second)
    for asked in (first, second):
        (one,) = (await told(db, asked)).relations
        assert (one.text, one.related_text) == ("The dog is Rex.", "Has a dog.")
        assert (one.relation, one.holds) == ("extends", True)
    await db.apply(commit("3", retracted(fact_id_at(first, 1)), at=day(2)))
    (one,) = (await told(db, second, 1)).relations
    assert (one.relation, one.holds) == ("similar", False)


async def test_nothing_of_other_scopes_and_tenants_is_shown(db: ProjectedDatabase) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine, commit("2", replaced("Lives in Rome.", fact_id_at(mine)), scope=BOB, at=day(1)))
    found = await told(db, mine)
    assert [event.source_id for event in found.events] == ["1"]
    assert [one.status for one in found.versions] == ["active"]
    for ask in (history, explain):
        for tenant, fact_id in (("default", UUID(int=1)), ("other", fact_id_at(mine))):
            with pytest.raises(UnknownFactError):
                await ask(db.conn, tenant, fact_id)


async def test_an_explanation_has_turn_excerpt_extraction_candidates_decision_and_what_followed(
    db: ProjectedDatabase,
) -> None:
    known = commit("1", added("Lives in Bern."), added("Likes Rome."))
    steps = (MODEL_STEP, Step(stage="resolve", milliseconds=1, model="judge", prompt_version="resolve-2"))
    thresholds = Thresholds(embedding_model="e", duplicate=0.9, raw_duplicate=0.9, conflict=0.6, near_duplicate=0.9)
    moved = with_decision(
        replaced("Lives in Rome.", fact_id_at(known), excerpt="moved to Rome", confidence=0.8, certainty="strong"),
        by="model",
        verdict="REPLACE",
        reason="she moved",
        model="judge",
        prompt_version="resolve-2",
        candidates=(weighed_candidate(fact_id_at(known), 0.81), weighed_candidate(fact_id_at(known, 1), 0.7)),
        before=(FactSnapshot(fact_id=fact_id_at(known), text="Lives in Bern.", confidence=0.95, true_from=day(0)),),
    )
    turn = commit("2", moved, at=day(1), provenance=Provenance(steps=steps, thresholds=thresholds))
    await db.journal_turns("2")
    await db.apply(known, turn)
    await db.apply(
        commit("3", confirmed(fact_id_at(turn), reason="says the same"), at=day(2)),
        commit("4", extended("Lives in Rome, in Trastevere.", fact_id_at(turn)), at=day(3)),
        commit("5", replaced("Lives in Oslo.", fact_id_at(turn), reason="she moved on"), at=day(4)),
    )
    found = await explained(db.conn, turn)
    assert (found.source.source_id, found.source.messages) == ("2", HELLO)
    assert found.extraction is not None
    read, made = found.extraction, found.decision
    assert (read.excerpt, read.model, read.confidence) == ("moved to Rome", "reader", 0.8)
    near = [(one.text, one.similarity) for one in made.retrieved]
    assert near == [("Lives in Bern.", 0.81), ("Likes Rome.", 0.7)]
    assert (made.event, made.verdict, made.before[0].confidence) == ("fact_replaced", "REPLACE", 0.95)
    assert found.thresholds is not None
    assert [touch.event for touch in found.later] == ["fact_confirmed", "fact_extended", "fact_replaced"]
    assert found.words == [
        (
            '"Lives in Rome." has been superseded '
            "(true from 2026-01-02 09:00 UTC to 2026-01-05 09:00 UTC; confidence 0.85, 2 mentions)."
        ),
        'It comes from turn 2 of 2026-01-02 09:00 UTC, where it says: "moved to Rome".',
        "Note: cut.",
        "reader with prompt extract-2 read it there (strong, confidence 0.80; importance 0.50).",
        "It was asked again, because: no JSON",
        'It was held against "Lives in Bern." (similarity 0.810), "Likes Rome." (similarity 0.700).',
        'fact_replaced, decided by judge with prompt resolve-2: she moved. It concerned "Lives in Bern.".',
        "2026-01-03 09:00 UTC: was confirmed, by rule in 3: says the same.",
        ('2026-01-04 09:00 UTC: was extended by "Lives in Rome, in Trastevere.", by rule in 4: it tells more of it.'),
        '2026-01-05 09:00 UTC: was replaced by "Lives in Oslo.", by rule in 5: she moved on.',
        '"Lives in Rome, in Trastevere." adds detail to it.',
    ]
    assert orjson.loads(orjson.dumps(found))["decision"]["reason"] == "she moved"


async def test_a_fact_of_a_command_has_no_extraction_and_a_raw_one_was_read_by_nobody(db: ProjectedDatabase) -> None:
    raw = commit("1", added("Lives in Bern."), steps=(Step(stage="extract", milliseconds=0),))
    order = Correct(edit=Edit(fact_id=fact_id_at(raw), text="Lives in Milan."))
    edited = corrected("Lives in Milan.", fact_id_at(raw))
    made = command_commit("c1", order, edited, by="person", actor="Mira", at=day(1))
    await db.apply(raw, made)
    found = await explained(db.conn, made)
    assert (found.extraction, found.source.order, found.source.actor) == (None, "correct", "Mira")
    assert found.words[1] == "It comes from command c1 (correct by Mira) of 2026-01-02 09:00 UTC."
    assert "it is a human's word" in found.words[0]
    words = (await explained(db.conn, raw)).words
    assert "It was stored as it was given, without a model (explicit, confidence 0.95)." in words
    assert "No known fact was near enough to be looked at." in words
