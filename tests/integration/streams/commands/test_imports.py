"""What an import of a fact adds to real tables, and what it leaves."""

from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.admission import MAX_IMPORT_BYTES
from mnemolog.schemas.command import Import, ImportedFact
from tests.support.builders.commits import BOB, added, commit, day
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
HOME: dict[str, Any] = {"key": "home_city", "value": "Bern", "category": "identity", "subject": "Alice"}
KNOWN = commit("t1", added("Alice lives in Bern.", single_valued=True, **HOME))
BOBS = commit("b1", added("Alice lives in Rome."), scope=BOB)


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, BOBS)
    return CommandHarness(db)


async def imported(db: ProjectedDatabase, harness: CommandHarness, text: str, **fields: Any) -> list[Fact]:
    """The facts of Alice once one has been imported."""
    done = await harness.execute("import/1", Import(fact=ImportedFact(text=text, **fields)), at=day(5))
    assert done.outcome == "done"
    return [fact for fact in await facts(db.conn, ALICE, at=day(9)) if fact.source_id == "import/1"]


async def test_a_fact_is_stored_as_it_is_said(db: ProjectedDatabase, harness: CommandHarness) -> None:
    given: dict[str, Any] = {
        "key": "pet",
        "value": "cat",
        "category": "other",
        "importance": 0.7,
        "confidence": 0.6,
        "certainty": "weak",
        "authority": "human",
        "subject": "Alice",
        "speaker": "Tom",
        "true_from": day(1),
        "valid_until": day(90),
        "event_time": day(1),
    }
    order = Import(fact=ImportedFact(text="Alice has a cat.", **given), metadata={"source": {"name": "export"}})
    await harness.execute("import/1", order, at=day(5))
    (fact,) = [one for one in await facts(db.conn, ALICE, at=day(9)) if one.source_id == "import/1"]
    assert {name: getattr(fact, name) for name in given} == given
    assert (fact.text, fact.excerpt, fact.status, fact.unresolved) == ("Alice has a cat.", "", "active", False)
    assert fact.metadata == {"source": {"name": "export"}}
    assert fact.embedding_model


async def test_beside_another_value_of_its_key_it_is_unresolved(db: ProjectedDatabase, harness: CommandHarness) -> None:
    (fact,) = await imported(db, harness, "Alice lives in Rome.", **HOME | {"value": "Rome"})
    assert fact.unresolved
    (listed,) = await unresolved(db.conn, ALICE, day(9))
    assert (listed.fact.text, [one.text for one in listed.beside]) == ("Alice lives in Rome.", ["Alice lives in Bern."])


async def test_a_known_text_is_found_among_many_of_its_key(db: ProjectedDatabase, harness: CommandHarness) -> None:
    await db.apply(
        *(commit(f"h{number}", added(f"Hobby {number}.", key="hobby"), at=day(number / 100)) for number in range(120))
    )
    assert await imported(db, harness, "Hobby 119.", key="hobby") == []


async def test_the_largest_import_fits_into_a_commit(db: ProjectedDatabase, harness: CommandHarness) -> None:
    """What admission lets through is not refused for its size behind it, whatever its vector and its fields take."""
    text = "tea " * ((MAX_IMPORT_BYTES - 500) // 4)
    (fact,) = await imported(db, harness, text, **HOME, speaker="Tom", true_from=day(1))
    assert fact.text == text
