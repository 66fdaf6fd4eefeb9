"""What `diff` tells of an undo: the facts that hold again, or were taken back, at the time of the undo."""

import pytest

from mnemolog.projections.queries.diff import Diff, diff
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from tests.support.builders.commits import ALICE, added, commit, confirmed, day, fact_id_at, merged, replaced, retracted
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

KNOWN = commit("t1", added("Alice lives in Bern."), added("Alice has a cat."))
BERN, CAT = (fact_id_at(KNOWN, ordinal) for ordinal in range(2))


def undone(changes: Diff) -> list[tuple[str | None, str | None, list[str]]]:
    return [(one.text, one.status, [old.text for old in one.old]) for one in changes.undone]


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN)
    return CommandHarness(db)


async def changes_of(harness: CommandHarness, since: float) -> Diff:
    return await diff(harness.stored.conn, ScopeFilter.of_scope(ALICE), day(since), day(100))


async def test_a_fact_that_holds_again_stands_where_its_successor_was(harness: CommandHarness) -> None:
    await harness.stored.apply(commit("t2", replaced("Alice lives in Rome.", BERN), at=day(1)))
    await harness.execute("c1", Undo(source_id="t2"), at=day(2))
    changes = await changes_of(harness, 2)
    assert undone(changes) == [("Alice lives in Bern.", "active", ["Alice lives in Rome."])]
    await harness.execute("c2", Undo(source_id="c1"), at=day(3))
    assert undone(await changes_of(harness, 3)) == [("Alice lives in Rome.", "active", ["Alice lives in Bern."])]


async def test_a_fact_that_was_only_added_is_shown_as_taken_back(harness: CommandHarness) -> None:
    await harness.execute("c1", Undo(source_id="t1"), at=day(2))
    assert undone(await changes_of(harness, 2)) == [
        ("Alice has a cat.", "undone", []),
        ("Alice lives in Bern.", "undone", []),
    ]


async def test_every_fact_that_holds_again_has_its_own_change(harness: CommandHarness) -> None:
    await harness.stored.apply(
        commit("t2", merged("Alice lives in Bern with a cat.", BERN, CAT), at=day(1)),
    )
    await harness.execute("c1", Undo(source_id="t2"), at=day(2))
    together = ["Alice lives in Bern with a cat."]
    assert undone(await changes_of(harness, 2)) == [
        ("Alice lives in Bern.", "active", together),
        ("Alice has a cat.", "active", together),
    ]


async def test_an_end_and_a_mention_that_are_taken_back_name_their_fact(harness: CommandHarness) -> None:
    await harness.stored.apply(commit("t2", retracted(BERN), at=day(1)), commit("t3", confirmed(CAT), at=day(1)))
    await harness.execute("c1", Undo(source_id="t2"), at=day(2))
    await harness.execute("c2", Undo(source_id="t3"), at=day(3))
    changes = await changes_of(harness, 2)
    assert undone(changes) == [("Alice lives in Bern.", "active", []), ("Alice has a cat.", "active", [])]


async def test_an_undo_stands_among_the_other_changes_by_its_time(harness: CommandHarness) -> None:
    await harness.stored.apply(commit("t2", replaced("Alice lives in Rome.", BERN), at=day(1)))
    await harness.execute("c1", Undo(source_id="t2"), at=day(2))
    await harness.stored.apply(commit("t3", added("Alice skis."), at=day(3)))
    changes = await changes_of(harness, 0.5)
    assert [(kind, change.text) for kind, change in changes.in_order] == [
        ("replaced", "Alice lives in Rome."),
        ("undone", "Alice lives in Bern."),
        ("added", "Alice skis."),
    ]
