"""Names that a person gives an entity, in the form in which those of turns are looked up."""

from mnemolog.schemas.entities.model import Alias, KnownEntity
from mnemolog.streams.entities.entity_registry import EntityRegistry, key_with_origin, names_of
from mnemolog.streams.entities.name_context import NameContext
from mnemolog.streams.entities.spoken_names import read_name
from mnemolog.streams.text.subjects import is_user_word


class NoNameError(ValueError):
    """What was given is no name of one entity; its text says why, and what would be one."""


def given_alias(name: str, registry: EntityRegistry, context: NameContext) -> Alias:
    """The alias that a name gives its bearer: a name, one with an origin ("Tom from work"), or a tie ("my wife").

    Raises `NoNameError`.
    """
    spoken = read_name(name)
    if spoken is None or not (spoken.tie or spoken.key) or is_user_word(name):
        raise NoNameError(f"{name!r} names nobody: give a name")
    if spoken.tie is None:
        return Alias(text=spoken.text, key=key_with_origin(spoken.key, spoken.origin))
    if spoken.name is not None:
        raise NoNameError(f"{name!r} is a tie and a name: give one of them")
    return Alias(text=spoken.text, kind="tie", key=f"{spoken.tie} of {_owner_id(spoken.owner, registry, context)}")


def holders(alias: Alias, registry: EntityRegistry) -> list[KnownEntity]:
    """The entities that have this very name, as readers see it."""
    return [entity for entity in registry if alias.key in entity.as_shown.keys(alias.kind)]


def _owner_id(owner: str | None, registry: EntityRegistry, context: NameContext) -> str:
    """Whose tie it is: the user's, or that of the only entity of a name."""
    if context.is_user(owner):
        if (user := registry.user()) is None:
            raise NoNameError("the user is not known as an entity yet, so nobody is anything to them: give a name")
        return str(user.entity_id)
    spoken = read_name(owner or "")
    owners = [one for one in registry if spoken is not None and spoken.key in names_of(one)]
    if len(owners) != 1:
        raise NoNameError(f"{len(owners)} entities are called {owner!r}: give a name, or first tell them apart")
    return str(owners[0].entity_id)
