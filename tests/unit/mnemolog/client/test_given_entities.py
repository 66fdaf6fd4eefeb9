"""Commands about entities that a caller has read before, while no database can be asked."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog import NotConnectedError
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.entities import Entity
from tests.support.harnesses.offline_client import AT, OfflineClient

OTHER = UUID(int=2)
ANA = Entity(
    entity_id=UUID(int=1),
    tenant="default",
    user_id="ana",
    agent_id=None,
    app_id=None,
    run_id=None,
    name="Ana",
    type="person",
    is_user=False,
    aliases=[],
    facts=1,
    possible_twins=[],
    source_id="t1",
    recorded_at=AT,
)


class AwayClient(OfflineClient):
    """No table can be asked."""

    async def _query(self, *_: Any, **__: Any) -> Any:
        raise NotConnectedError("there is no database")


async def test_an_entity_and_a_whole_id_are_known_without_a_database() -> None:
    client = AwayClient()
    await client.merge_entities(ANA, into=OTHER, user_id="ana")
    (command,) = client.commands
    assert command.scope.user_id == "ana"
    assert command.order.model_dump(include={"entity_ids", "into"}) == {"entity_ids": (ANA.entity_id,), "into": OTHER}


@pytest.mark.parametrize("into", [None, OTHER], ids=["alone", "with an id"])
async def test_an_entity_of_another_scope_than_the_named_one_is_refused(into: UUID | None) -> None:
    client = AwayClient()
    order = (
        client.merge_entities(into, into=ANA, user_id="ben") if into else client.rename_entity(ANA, "X", user_id="ben")
    )
    with pytest.raises(InvalidCommandError, match=r"user_id is 'ben', but entity .* is of 'ana'"):
        await order
    assert client.commands == []
    await client.rename_entity(ANA, "X")
    assert [one.scope.user_id for one in client.commands] == ["ana"]
