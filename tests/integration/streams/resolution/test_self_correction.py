"""Who corrects themselves within a turn is believed: guards protect what was known before."""

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactContradicted
from tests.support.builders.commits import day
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ROME, MILAN, OSLO = "Mira lives in Rome.", "Mira lives in Milan.", "Mira lives in Oslo."


async def rome_no_wait_milan(resolver: ResolverHarness, milan: TextVerdict, **verdicts: TextVerdict) -> Commit:
    said = {ROME: verdicts.get("rome", TextVerdict("ADD")), MILAN: milan}
    resolver.chat_model.set_replies(verdicts_by_text(said))
    return await resolver.resolve_turn(home(ROME), home(MILAN, action_hint="update"), at=day(1))


async def test_the_correction_holds_and_what_was_corrected_never_did(resolver: ResolverHarness) -> None:
    _, corrected = (await rome_no_wait_milan(resolver, TextVerdict("CONTRADICT", (ROME,)))).events
    assert isinstance(corrected, FactContradicted)
    assert await resolver.statuses() == {ROME: "archived", MILAN: "active"}


async def test_the_correction_ends_what_the_corrected_statement_had_ended(resolver: ResolverHarness) -> None:
    await resolver.resolve_turn(home(OSLO), at=day(0))
    rome = TextVerdict("REPLACE", (OSLO,))
    await rome_no_wait_milan(resolver, TextVerdict("CONTRADICT", (ROME,)), rome=rome)
    assert await resolver.statuses() == {OSLO: "superseded", ROME: "archived", MILAN: "active"}
