"""A value that an undo brings back beside a newer one of its key is unresolved; else it is as it was."""

from typing import Any

import pytest

from mnemolog.schemas.command import Delete, Undo
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


async def test_a_value_is_in_doubt_beside_another_one_and_not_beside_itself(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    """Rome is deleted, and the same home and another one are told; then the deletion is undone."""
    rome = fact_id_at(await resolver.resolve_turn(said(ROME), at=day(1)))
    deleted = await commands.execute("c1", Delete(fact_ids=(rome,)), at=day(2))
    again = "Mira's home is in Rome."
    await resolver.resolve_turn(said(again), at=day(3))
    undone = await commands.execute("c2", Undo(source_id=deleted.source_id), at=day(4))
    unresolved = "SELECT text FROM facts WHERE unresolved AND status = 'active'"
    assert await resolver.active_texts() == sorted([again, ROME])
    assert await resolver.stored.rows(unresolved) == []
    await commands.execute("c3", Undo(source_id=undone.source_id), at=day(5))
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (again,))}))
    await resolver.resolve_turn(said(OSLO), at=day(6))
    await commands.execute("c4", Undo(source_id="c3"), at=day(7))
    assert await resolver.stored.rows(unresolved) == [(ROME,)]


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
