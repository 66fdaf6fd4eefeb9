"""A value that an undo brings back beside a newer one of its key is unresolved; else it is as it was."""

from typing import Any

import pytest

from mnemolog.schemas.command import Delete
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
