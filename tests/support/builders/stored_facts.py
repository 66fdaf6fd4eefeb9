"""Facts as commands read them from the tables, and the context of a command, for tests that need no tables."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from mnemolog.schemas.facts import ExtractedFact, FactState, FactStatus
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.context import CommandContext
from tests.support.builders.commits import ALICE, day

CONTEXT: Final = CommandContext(
    owner=ALICE.owner,
    source_id="c1",
    scope=ALICE,
    issued_at=day(5),
    now=day(5) + timedelta(seconds=3),
    actor=None,
)


def stored_fact(
    text: str = "Alice lives in Bern.", *, status: FactStatus = "active", scope: Scope = ALICE, **fields: Any
) -> StoredFact:
    state_fields = {
        "confidence": 0.8,
        "mention_count": 1,
        "unresolved": False,
        **dict.fromkeys(("last_confirmed_at", "true_to", "closed_at", "believed_to", "superseded_by")),
        "believed_from": day(0),
    }
    given = {name: fields.pop(name) for name in list(fields) if name in state_fields}
    own: dict[str, Any] = {"true_from": day(0), "authority": "extracted", "speaker": "Alice", "metadata": {}}
    own |= {name: fields.pop(name) for name in own if name in fields}
    return StoredFact(
        fact_id=uuid4(),
        scope=scope,
        fact=ExtractedFact(**{"text": text, "excerpt": text, "search_text": text, "key": "home_city"} | fields),
        **own,
        state=FactState(**{**state_fields, "status": status, "true_from": own["true_from"], **given}),
    )


def by_id(*facts: StoredFact) -> dict[UUID, StoredFact]:
    return {fact.fact_id: fact for fact in facts}
