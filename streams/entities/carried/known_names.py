"""Finds names of known entities in texts that nobody has read for names: whole words, compared as names are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from mnemolog.schemas.entities.model import Alias, KnownEntity, name_head
from mnemolog.streams.entities.entity_registry import EntityRegistry
from mnemolog.streams.entities.found_entities import FoundEntity, find_entity
from mnemolog.streams.entities.name_context import LookupKeys
from mnemolog.streams.entities.name_keys import key_words, words_key
from mnemolog.streams.entities.spoken_names import SpokenName, read_name
from mnemolog.streams.text.normalise import whole_words

MIN_LETTERS: Final = 3
"""Letters of a name that is looked for: shorter ones are words of many languages ("Al", "Jo", "Mo")."""
MAX_WORDS: Final = 200
"""The first words of a text, by which names are looked up."""
MAX_LOOKED_UP: Final = 2000
"""Beginnings of names, and names, that are looked up for all texts of a source."""
_MAX_NAME_WORDS: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class _TextName:
    """Where a text has a name in it."""

    start: int
    end: int
    name: str

    def overlaps(self, other: "_TextName") -> bool:
        return self.start < other.end and other.start < self.end


def said_aliases(entity: KnownEntity, text: str) -> list[Alias]:
    """The names of an entity that a text has in it, and its ties: of "Tom from work" it is "Tom"."""
    said = words_key(text)
    return [alias for alias in entity.aliases if next(_places(words_of(alias), said), None)]


def known_names_in(
    text: str, registry: EntityRegistry, *, taken: Iterable[str] = ()
) -> Iterator[tuple[str, FoundEntity]]:
    """The names in a text that are certainly those of one entity, with it; the user left out.

    A name within a longer one, or within one of those `taken`, is none.
    """
    said = words_key(text)
    claimed = [place for name in taken for place in _places(name, said)]
    names = {words_of(alias) for entity in registry for alias in entity.aliases if alias.kind == "name"}
    places = {place for name in names if _letters(name) >= MIN_LETTERS for place in _places(name, said)}
    for place in sorted(places, key=lambda one: (one.start - one.end, one)):
        if any(place.overlaps(other) for other in claimed):
            continue
        claimed.append(place)
        found = find_entity(SpokenName(text=place.name, name=place.name), "other", None, registry)
        if found.entity is not None and not found.entity.keys("user"):
            yield place.name, found


def text_keys(texts: Iterable[str]) -> LookupKeys:
    """What finds every entity that `known_names_in` may find in these texts."""
    words = [one[:MAX_WORDS] for text in texts for one in (key_words(text), words_key(text).split())]
    heads = dict.fromkeys(name_head(word) for one in words for word in one if word)
    keys = dict.fromkeys(" ".join(run) for one in words for run in _runs(one))
    return LookupKeys(
        heads=frozenset(islice(heads, MAX_LOOKED_UP)), keys=frozenset(islice(keys, MAX_LOOKED_UP)), ends=frozenset()
    )


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(len(words)):
        yield from (words[start : start + length] for length in range(1, _MAX_NAME_WORDS + 1))


def words_of(alias: Alias) -> str:
    """A name without where its bearer is from, or a tie without the name: of "my wife Ana" it is "my wife"."""
    spoken = read_name(alias.text)
    if spoken is None or spoken.name is None:
        return alias.text
    if alias.kind == "name":
        return spoken.name
    return alias.text.replace(spoken.name, "").strip(" ,") or alias.text


def _places(name: str, said: str) -> Iterator[_TextName]:
    if words := words_key(name):
        yield from (_TextName(start, start + len(words), name) for start in whole_words(words, said))


def _letters(name: str) -> int:
    return sum(map(str.isalpha, name))
