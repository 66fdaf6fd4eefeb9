"""What an import of a fact adds to real tables; an export that is imported into an empty tenant is the same again."""

import io
import json
from datetime import datetime
from typing import Any

import pytest

from mnemolog.client.files import LineReader
from mnemolog.projections.queries.facts import exported_lines, facts
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.admission import MAX_IMPORT_BYTES
from mnemolog.schemas.command import Command, Import, ImportedFact
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import BOB, added, commit, day, fact_id_at, pending, retracted
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


KEPT = (
    *("user_id", "agent_id", "app_id", "run_id", "text", "key", "value", "category", "importance", "certainty"),
    *("confidence", "subject", "speaker", "event_time", "true_from", "authority", "action_hint", "metadata"),
    *("status", "unresolved"),
)
SLOT: dict[str, Any] = {"key": "home_city", "value": "Bern", "subject": "Alice", "single_valued": True}
BOT = Scope(agent_id="bot", app_id="diary", run_id="r1")
LONG = "Grüße \N{GRINNING FACE} " * 20_000
FACTS = (
    *(added(text, **SLOT) for text in ("Alice lives in Bern.", "Alice lives in Bern near the station.")),
    added("Alice is in Rome until spring.", **SLOT | {"value": "Rome", "valid_until": day(90)}),
    *(added("I like tea.", speaker=speaker) for speaker in ("Ann", "Bob")),
    *(added("Ann ran a marathon.", event_time=at, true_from=at) for at in (day(1), day(2))),
    *(added(text) for text in ("*", "**", "\u0085x\u00a0", "'; DROP TABLE facts; --", '{"a": 1}', "a\nb\tc", LONG)),
    added("Alice no longer lives in Oslo.", action_hint="retract", key="home_city", value="Oslo"),
    added("Alice may move.", certainty="speculation", confidence=0.4, importance=0.0, category="professional"),
    added("Alice is called Alice.", authority="human", confidence=1.0),
)


async def exported(db: ProjectedDatabase, tenant: str, *, all_versions: bool = False) -> list[bytes]:
    within = ScopeFilter(tenant=tenant, user_id="**", agent_id="**", app_id="**", run_id="**")
    lines = exported_lines(db.conn, within, parse_filter({}), all_versions=all_versions, at=day(60))
    return [line async for batch in lines for line in batch]


def said(lines: list[bytes]) -> list[dict[str, Any]]:
    """What the lines say, but for ids and the times at which it was stored; an announced end is a term."""
    facts = [json.loads(line) for line in lines]
    ends = [min(filter(None, (fact["valid_until"], fact["true_to"])), default=None) for fact in facts]
    kept = [{name: fact[name] for name in KEPT} | {"end": end} for fact, end in zip(facts, ends, strict=True)]
    return sorted(kept, key=lambda fact: json.dumps(fact, sort_keys=True))


async def import_lines(db: ProjectedDatabase, lines: list[bytes], tenant: str, issued_at: datetime) -> None:
    reader = LineReader(ids={"tenant": tenant}, issued_at=issued_at, actor=None, max_turn_bytes=1024)
    harness = CommandHarness(db)
    for _, command in reader.records(io.BytesIO(b"".join(lines))):
        if command is not None:
            assert isinstance(command, Command), command
            commit = await harness.decide(command, issued_at)
            assert (commit.outcome, commit.detail) == ("done", "")
            await db.apply(commit)


async def test_every_export_can_be_imported_and_gives_the_same_export(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("t1", *FACTS, metadata={"source": {"name": "chat", "tags": ["a", None, 1.5]}}),
        commit("b1", added("Bob lives in Bern.", key="home_city", value="Bern"), scope=BOB),
        commit("a1", added("The bot speaks German."), scope=BOT),
    )
    lines = await exported(db, "default")
    await import_lines(db, lines, "copy", day(50))
    copied = await exported(db, "copy")
    assert len(lines) == len(FACTS) + 2
    assert said(copied) == said(lines)
    await import_lines(db, copied, "default", day(51))
    assert said(await exported(db, "default")) == said(lines)


async def test_of_all_versions_those_that_hold_are_imported_with_announced_ends(db: ProjectedDatabase) -> None:
    known = commit("t1", added("Alice lives in Bern.", **SLOT), added("Alice has a cat."), added("Alice rents a flat."))
    bern, cat, flat = (fact_id_at(known, ordinal) for ordinal in range(3))
    ended = commit("t2", retracted(bern, ended_at=day(1)), pending("Alice has a dog.", cat), at=day(1))
    await db.apply(known, ended, commit("t3", retracted(flat, ended_at=day(70)), at=day(1)))
    lines = await exported(db, "default", all_versions=True)
    assert len(lines) == 4
    await import_lines(db, lines, "copy", day(50))
    held = [line for line in await exported(db, "default") if b"dog" not in line]
    assert said(await exported(db, "copy")) == said(held)
    assert [one["text"] for one in said(held)] == ["Alice rents a flat.", "Alice has a cat."]
