"""Whom the words of a turn mean, and what they tell of them, by the plain rules: ties, then names."""

from collections.abc import Mapping, Sequence

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entity_events import EntityAliasAdded, EntityRegistered, FactLinked, MergeProposed
from tests.properties.entity_oracle import Name, key_of
from tests.properties.entity_steps import Said
from tests.properties.entity_themes import TIES


def said_by(commit: Commit, text: str) -> Said:
    """What the turn of a commit says."""
    events = commit.entity_events
    links = [link for e in events if isinstance(e, FactLinked) for link in e.links]
    (entity,) = [link.entity_id for link in links if link.role == "object"]
    new = [e.aliases for e in events if isinstance(e, EntityRegistered) and e.entity_id == entity]
    added = [e.alias for e in events if isinstance(e, EntityAliasAdded) and e.entity_id == entity]
    proposed = [(str(e.merged), str(e.into)) for e in events if isinstance(e, MergeProposed)]
    assert len(proposed) < 2
    return Said(
        fact=text,
        entity=str(entity),
        is_new=bool(new),
        gives=[alias.text for alias in (*added, *(alias for aliases in new for alias in aliases))],
        proposed=proposed[0] if proposed else None,
    )


def holders_of(key: str, known: Mapping[str, Sequence[Name]]) -> list[str]:
    """The entities that have this very name, or are this to the user."""
    return [entity for entity, names in known.items() if key in {one.key for one in names}]


def has_name(names: Sequence[Name], text: str) -> bool:
    return any(one.key == key_of(text) for one in names)


def meant(words: str, known: Mapping[str, Sequence[Name]], called: Sequence[str], tied: Sequence[str]) -> str | None:
    """The known entity that a name means: a tie tells two of one name apart, and who has no name yet gets one."""
    nameless = [one for one in tied if all(name.is_tie for name in known[one])]
    plain = [one for one in called if not any(name.is_tie for name in known[one])]
    if words in TIES:
        fitting = tied if len(tied) == 1 else nameless
    elif words.startswith("my ") and called:
        fitting = [one for one in called if one in tied] or (plain if len(called) == 1 else [])
    elif called:
        fitting = called if len(called) == 1 else plain
    else:
        fitting = nameless
    return fitting[0] if len(fitting) == 1 else None


def given_names(words: str, names: Sequence[Name] | None, told: Mapping[str, Sequence[Name]]) -> list[str]:
    """The names that a turn gives whom it names: a seen one stays whose it is, unless it is of a new one.

    `names` are those that the entity was known by, None for a new one.
    """
    proper = "" if words in TIES else words.rsplit(maxsplit=1)[-1]
    tie = words if words.startswith("my ") else ""
    is_free = names is None or not (has_name(names, proper) or holders_of(proper, told))
    given = [proper] if proper and is_free else []
    return [*given, *([tie] if tie and tie not in {one.text for one in names or ()} else [])]
