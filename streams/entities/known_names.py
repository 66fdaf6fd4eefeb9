"""Finds the names of known entities in a text that neither a model nor the rules have read for names."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from mnemolog.schemas.entities import Alias, EntityLink, KnownEntity, name_head
from mnemolog.streams.entities.names import SpokenName, key_words, read_name, words_key
from mnemolog.streams.entities.resolver import AskedName, EntityRegistry, LookupKeys, find_entity
from mnemolog.streams.text.tokens import whole_words

MIN_LETTERS: Final = 3
"""Letters of a name that is searched: shorter names are words of many languages ("Al", "Jo", "Mo")."""
MAX_WORDS: Final = 200
"""The first words of a text, by which names are looked up."""
MAX_LOOKED_UP: Final = 2000
"""Name heads, and names, that are looked up for all texts of a source."""
_MAX_NAME_WORDS: Final = 3


def text_keys(texts: Iterable[str]) -> LookupKeys:
    """The keys that find every entity that `known_names_in` may find in these texts."""
    words = [one[:MAX_WORDS] for text in texts for one in (key_words(text), words_key(text).split())]
    heads = dict.fromkeys(name_head(word) for one in words for word in one if word)
    keys = dict.fromkeys(
        " ".join(one[start : start + length])
        for one in words
        for start in range(len(one))
        for length in range(1, _MAX_NAME_WORDS + 1)
    )
    return LookupKeys(
        heads=frozenset(islice(heads, MAX_LOOKED_UP)), keys=frozenset(islice(keys, MAX_LOOKED_UP)), ends=frozenset()
    )


def known_names_in(text: str, registry: EntityRegistry, *, taken: Iterable[str] = ()) -> Iterator[EntityLink]:
    """Links by the names in a text that certainly mean one known entity; never the user.

    A name within a longer name, or within a `taken` name, does not count.
    """
    said = words_key(text)
    claimed = [(start, end) for name in taken for start, end in _places(name, said)]
    names = {bare_name(alias) for entity in registry for alias in entity.aliases if alias.kind == "name"}
    long_enough = (name for name in names if sum(map(str.isalpha, name)) >= MIN_LETTERS)
    places = [(start - end, start, end, name) for name in long_enough for start, end in _places(name, said)]
    for _, start, end, name in sorted(places):  # the longest first
        if any(start < other_end and other < end for other, other_end in claimed):
            continue
        claimed.append((start, end))
        found = find_entity(AskedName(SpokenName(text=name, name=name), "other"), registry)
        if found.entity is not None and not found.entity.keys("user"):
            yield found.link(found.entity.entity_id, name)


def aliases_in_text(entity: KnownEntity, text: str) -> list[Alias]:
    """The names and ties of an entity that a text has in it; "Tom from work" is there where "Tom" is."""
    said = words_key(text)
    return [alias for alias in entity.aliases if next(_places(bare_name(alias), said), None)]


def bare_name(alias: Alias) -> str:
    """A name without its origin, or a tie without the name: of "my wife Ana" it is "my wife"."""
    spoken = read_name(alias.text)
    if spoken is None or spoken.name is None:
        return alias.text
    if alias.kind == "name":
        return spoken.name
    return alias.text.replace(spoken.name, "").strip(" ,") or alias.text


def _places(name: str, said: str) -> Iterator[tuple[int, int]]:
    """Where a name begins and ends in a text."""
    if words := words_key(name):
        yield from ((start, start + len(words)) for start in whole_words(words, said))
