"""Explanations of facts, on a real Postgres: as values, as JSON and in words."""

from dataclasses import replace
from uuid import UUID

import orjson
import pytest

from mnemolog.projections.database import RowConnection
from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries.explain import Explanation, explain
from mnemolog.projections.queries.write_result import why_not
from mnemolog.schemas.command import Correct, Edit
from mnemolog.schemas.provenance import FactSnapshot, Provenance, Step, Thresholds
from mnemolog.texts import explanation_sentences, missing_sentence
from tests.support.builders.commits import (
    added,
    command_commit,
    commit,
    confirmed,
    corrected,
    day,
    extended,
    fact_id_at,
    replaced,
    skipped,
    weighed_candidate,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

HELLO = [{"name": None, "role": "user", "content": "Hello."}]


async def explained(conn: RowConnection, tenant: str, fact_id: UUID) -> Explanation:
    explanation, texts = await explain(conn, tenant, fact_id)
    return replace(explanation, words=explanation_sentences(explanation, texts))


async def test_tells_turn_excerpt_extraction_candidates_decision_and_what_followed(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."), added("Likes Rome."))
    steps = (
        Step(stage="extract", milliseconds=1, model="reader", prompt_version="extract-2", complaints=("no JSON",)),
        Step(stage="resolve", milliseconds=1, model="judge", prompt_version="resolve-2"),
    )
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
    found = await explained(db.conn, "default", fact_id_at(turn))
    assert (found.source.source_id, found.source.messages) == ("2", HELLO)
    assert found.extraction is not None
    read = found.extraction
    assert (read.excerpt, read.model, read.confidence) == ("moved to Rome", "reader", 0.8)
    near = [(one.text, one.similarity) for one in found.decision.retrieved]
    assert near == [("Lives in Bern.", 0.81), ("Likes Rome.", 0.7)]
    made = found.decision
    assert (made.event, made.verdict, made.before[0].confidence) == ("fact_replaced", "REPLACE", 0.95)
    assert found.thresholds is not None
    assert [touch.event for touch in found.later] == ["fact_confirmed", "fact_extended", "fact_replaced"]
    assert found.words == [
        (
            '"Lives in Rome." has been superseded '
            "(true from 2026-01-02 09:00 UTC to 2026-01-05 09:00 UTC; confidence 0.85, 2 mentions)."
        ),
        'It comes from turn 2 of 2026-01-02 09:00 UTC, where it says: "moved to Rome".',
        "reader with prompt extract-2 read it there (strong, confidence 0.80; importance 0.50).",
        "It was asked again, because: no JSON",
        'It was held against "Lives in Bern." (similarity 0.810), "Likes Rome." (similarity 0.700).',
        'fact_replaced, decided by judge with prompt resolve-2: she moved. It concerned "Lives in Bern.".',
        "2026-01-03 09:00 UTC: was confirmed, by threshold in 3: says the same.",
        (
            '2026-01-04 09:00 UTC: was extended by "Lives in Rome, in Trastevere.", '
            "by threshold in 4: it tells more of it."
        ),
        '2026-01-05 09:00 UTC: was replaced by "Lives in Oslo.", by threshold in 5: she moved on.',
        '"Lives in Rome, in Trastevere." adds detail to it.',
    ]
    assert orjson.loads(orjson.dumps(found))["decision"]["reason"] == "she moved"


async def test_a_capped_time_is_told(db: ProjectedDatabase) -> None:
    step = Step(stage="extract", milliseconds=1, model="reader", prompt_version="extract-2", notes=("it was capped",))
    turn = commit("1", added("Lives in Bern."), provenance=Provenance(steps=(step,)))
    await db.apply(turn)
    assert "Note: it was capped." in (await explained(db.conn, "default", fact_id_at(turn))).words


async def test_a_fact_of_a_command_has_no_extraction(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."))
    order = Correct(edit=Edit(fact_id=fact_id_at(known), text="Lives in Milan."))
    made = command_commit(
        "c1", order, corrected("Lives in Milan.", fact_id_at(known)), by="human", actor="Mira", at=day(1)
    )
    await db.apply(known, made)
    found = await explained(db.conn, "default", fact_id_at(made))
    assert (found.extraction, found.source.order, found.source.actor) == (None, "correct", "Mira")
    assert found.words[1] == "It comes from command c1 (correct by Mira) of 2026-01-02 09:00 UTC."
    assert "it is a human's word" in found.words[0]


async def test_a_raw_fact_was_read_by_nobody(db: ProjectedDatabase) -> None:
    made = commit("1", added("Lives in Bern."), steps=(Step(stage="extract", milliseconds=0),))
    await db.apply(made)
    found = await explained(db.conn, "default", fact_id_at(made))
    assert "It was stored as it was given, without a model (explicit, confidence 0.95)." in found.words
    assert "No known fact was near enough to be looked at." in found.words


async def test_an_unknown_fact_and_one_of_another_tenant_are_refused(db: ProjectedDatabase) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine)
    for tenant, fact_id in (("default", UUID(int=1)), ("other", fact_id_at(mine))):
        with pytest.raises(UnknownFactError):
            await explain(db.conn, tenant, fact_id)


async def test_why_not_names_the_fact_that_stood_in_the_way(db: ProjectedDatabase) -> None:
    known = commit("1", added("Has one cat."))
    await db.apply(known, commit("2", skipped(fact_id_at(known), "Has a cat."), at=day(1)))
    (one,) = (await why_not(db.conn, "default", "2")).missing
    assert missing_sentence(one) == 'skipped as a duplicate of "Has one cat." (equal words)'
    await db.journal_turns("3")
    waiting = await why_not(db.conn, "default", "3")
    assert (waiting.status, waiting.missing[0].reason) == ("pending", "not_decided_yet")
