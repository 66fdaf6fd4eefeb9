"""A value that an undo brings back beside a newer one of its key is unresolved; else it is as it was."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import Delete, Resolve, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ROME, OSLO = "Mira lives in Rome.", "Mira lives in Oslo."


def said(text: str, **fields: Any) -> ExtractedFact:
    return home(text, value=next((city for city in ("Rome", "Oslo") if city in text), None), **fields)


async def rome_deleted(resolver: ResolverHarness, commands: CommandHarness) -> tuple[UUID, Commit]:
    known = fact_id_at(await resolver.resolve_turn(said(ROME), at=day(1)))
    return known, await commands.execute("c1", Delete(fact_ids=(known,)), at=day(2))


async def unresolved_texts(resolver: ResolverHarness) -> list[str]:
    rows = await resolver.stored.rows("SELECT text FROM facts WHERE unresolved AND status = 'active' ORDER BY text")
    return [text for (text,) in rows]


async def test_a_value_beside_a_newer_one_is_unresolved(resolver: ResolverHarness, commands: CommandHarness) -> None:
    rome, deleted = await rome_deleted(resolver, commands)
    oslo = fact_id_at(await resolver.resolve_turn(said(OSLO), at=day(3)))
    undone = await commands.execute("c2", Undo(source_id=deleted.source_id), at=day(4))
    assert await resolver.active_texts() == [OSLO, ROME]
    assert await unresolved_texts(resolver) == [ROME]
    assert await commands.known.conflicting_fact_ids(rome) == (oslo,)
    await commands.execute("c3", Undo(source_id=undone.source_id), at=day(5))
    assert await resolver.active_texts() == [OSLO]
    await commands.execute("c4", Undo(source_id="c3"), at=day(6))
    await commands.execute("c5", Resolve(fact_id=rome, action="keep_old"), at=day(7))
    assert await resolver.active_texts() == [OSLO]


async def test_it_is_in_no_doubt_beside_the_same_value(resolver: ResolverHarness, commands: CommandHarness) -> None:
    _, deleted = await rome_deleted(resolver, commands)
    again = "Mira's home is in Rome."
    await resolver.resolve_turn(said(again), at=day(3))
    await commands.execute("c2", Undo(source_id=deleted.source_id), at=day(4))
    assert await resolver.active_texts() == sorted([again, ROME])
    assert await unresolved_texts(resolver) == []


LEFT = "Mira has left Rome."


async def test_an_open_value_is_unresolved_beside_its_end(resolver: ResolverHarness, commands: CommandHarness) -> None:
    """Rome, then Oslo, and "has left Rome": without Oslo, who left Rome may not live there."""
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME,))}))
    await resolver.resolve_turn(said(ROME), at=day(1))
    oslo = fact_id_at(await resolver.resolve_turn(said(OSLO), at=day(6)))
    await resolver.resolve_turn(said(LEFT, action_hint="retract"), at=day(10))
    await commands.execute("c1", Delete(fact_ids=(oslo,)), at=day(12))
    assert await unresolved_texts(resolver) == [ROME]


async def test_a_command_knows_the_names_of_the_user(resolver: ResolverHarness, commands: CommandHarness) -> None:
    """Rome is the user's home, and Oslo was Mira's, who is the user: without Bern, Rome ends when Oslo began."""
    rome, bern, left = "The user lives in Rome.", "The user lives in Bern.", "Mira has left Oslo."
    verdicts = {
        bern: TextVerdict("REPLACE", (rome,)),
        OSLO: TextVerdict("SIMILAR", (bern,)),
        left: TextVerdict("RETRACT", (OSLO,)),
    }
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    told = (
        (home(rome, subject=None), 1),
        (home(bern, subject=None), 3),
        (said(OSLO), 5),
        (said(left, action_hint="retract"), 7),
    )
    commits = [await resolver.resolve_turn(fact, at=day(at), speaker="Mira") for fact, at in told]
    await commands.execute("c1", Delete(fact_ids=(fact_id_at(commits[1]),)), at=day(8))
    rows = await resolver.stored.rows("SELECT true_to, unresolved FROM facts WHERE text LIKE '%Rome.'")
    assert rows == [(day(5), False)]
