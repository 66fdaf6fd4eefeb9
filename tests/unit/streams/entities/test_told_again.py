"""A name that readers are not shown any more is told anew by the turn that says it, in its words."""

from uuid import UUID

import pytest

from mnemolog.schemas.entities import Alias, KnownEntity, NamedEntity
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.resolver import EntityRegistry, NameContext, given_alias, holders
from tests.support.harnesses.resolver_harness import extracted_fact

CONTEXT = NameContext(owner="default/alice", source_id="t1", user_names=("Alice",))
USER = KnownEntity(
    entity_id=UUID(int=1), name="Alice", type="person", aliases=(Alias(text="Alice", kind="user", key="user"),)
)
ANA, WIFE = Alias(text="Ana", key="ana"), Alias(text="my wife Ana", kind="tie", key=f"wife of {USER.entity_id}")


def known(*hidden: Alias) -> KnownEntity:
    return KnownEntity(entity_id=UUID(int=2), name="Ana", type="person", aliases=(ANA, WIFE), hidden=hidden)


def added(entity: KnownEntity, *said: str) -> list[tuple[UUID, str]]:
    facts = [
        extracted_fact(f"{name} sings", entities=(NamedEntity(name=name, type="person", role="object"),))
        for name in said
    ]
    found = TurnEntities.of_facts(facts, [USER, entity], CONTEXT)
    return [(one.entity_id, one.alias.text) for one in found.resolver.added if one.entity_id != USER.entity_id]


@pytest.mark.parametrize(
    ("hidden", "said", "names"),
    [
        ((), ["Ana", "my wife"], []),
        ((ANA, WIFE), ["my wife"], ["my wife"]),
        ((ANA, WIFE), ["Ana", "Ana"], ["Ana"]),
        ((ANA,), ["my wife"], []),
    ],
)
def test_a_hidden_name_is_told_anew_once(hidden: tuple[Alias, ...], said: list[str], names: list[str]) -> None:
    assert added(known(*hidden), *said) == [(UUID(int=2), name) for name in names]


def test_a_hidden_name_is_nobodys_for_a_person_who_gives_it() -> None:
    registry = EntityRegistry([known(ANA)])
    assert holders(given_alias("Ana", registry, CONTEXT), registry) == []
    assert holders(given_alias("Ana", registry, CONTEXT), EntityRegistry([known()])) == [known()]
