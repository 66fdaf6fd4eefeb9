"""Known entities, and facts that name entities, in few words for tests."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from mnemolog.schemas.entities import Alias, EntityType, KnownEntity, NamedEntity, NamedRelation, Role, Strength
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.names import read_name
from mnemolog.streams.entities.resolver import key_with_origin

SPACE = UUID(int=1)
USER_MARK = Alias(text="the user", kind="user", key="user")


def spoken_alias(name: str) -> Alias:
    """A proper name as it is said, with its origin: "Tom from work" has the key "tom (work)"."""
    spoken = read_name(name)
    assert spoken is not None
    return Alias(text=name, key=key_with_origin(spoken.key, spoken.origin))


def tie_alias(tie: str, text: str, owner: UUID = SPACE) -> Alias:
    """What somebody is to the owner: a `tie` such as "wife", in the words `text`."""
    return Alias(text=text, kind="tie", key=f"{tie} of {owner}")


def known_entity(
    *names: str | Alias,
    number: int | None = None,
    kind: EntityType = "person",
    is_user: bool = False,
    twins: Sequence[UUID] = (),
    hidden: Sequence[Alias] = (),
) -> KnownEntity:
    """An entity of these names; its id follows from the `number`, else from the names."""
    aliases = [USER_MARK] if is_user else []
    aliases += [spoken_alias(name) if isinstance(name, str) else name for name in names]
    own = next((alias.text for alias in aliases if alias.kind == "name"), aliases[0].text)
    key = "|".join(alias.text for alias in aliases)
    return KnownEntity(
        entity_id=uuid5(SPACE, key) if number is None else UUID(int=number),
        name=own,
        type=kind,
        aliases=tuple(aliases),
        possible_twins=tuple(twins),
        hidden=tuple(hidden),
    )


def relation(subject: str, predicate: str, object_: str, strength: Strength = "strong") -> NamedRelation:
    return NamedRelation(subject=subject, predicate=predicate, object=object_, strength=strength)


def fact_naming(
    *names: str, text: str = "It.", kind: EntityType = "person", role: Role = "object", **fields: Any
) -> ExtractedFact:
    """A fact that names these entities of one type in one role."""
    entities = tuple(NamedEntity(name=name, type=kind, role=role) for name in names)
    return ExtractedFact(**{"text": text, "excerpt": text, "search_text": "", "entities": entities} | fields)
