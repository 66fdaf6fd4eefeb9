"""Whose names are read, and by what the entities are looked up that they may mean."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME, USER_HEAD, NamedEntity, name_ends, name_head, tie_head
from mnemolog.schemas.entities.relations import is_same_as
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.entities.similar.misspelled_names import slip_heads
from mnemolog.streams.entities.spoken_names import SpokenName, read_name
from mnemolog.streams.text.subjects import USER, compare_subjects, is_user_word

MAX_USER_NAMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NameContext:
    """Whose names are read: the source, who speaks in it, and the names of the user.

    `model` and `prompt_version` are of who read its facts, where a model did.
    """

    owner: str
    source_id: str
    speaker: str | None = None
    user_names: tuple[str, ...] = ()
    model: str | None = None
    prompt_version: str | None = None

    def is_user(self, name: str | None) -> bool:
        """Whether it is the user: nobody is named, or by a word for the user, or by one of their names."""
        if name is None or is_user_word(name):
            return True
        return bool(self.user_names) and compare_subjects(name, USER, self.user_names) == "same"

    @property
    def other_speaker(self) -> str | None:
        """Who speaks, where it is not the user: "my wife" is theirs."""
        return None if not self.user_names or self.is_user(self.speaker) else self.speaker

    @property
    def registered_names(self) -> Sequence[str]:
        """The names by which the user is known as an entity, that by which they speak first."""
        if not self.user_names:
            return ()
        own = () if self.speaker is None or self.other_speaker else (self.speaker,)
        return list(dict.fromkeys((*own, *self.user_names)))[:MAX_USER_NAMES]


def named_entities(fact: ExtractedFact, context: NameContext) -> Iterator[NamedEntity]:
    """Whom a fact names, its subject first, the user left out.

    Where the fact is said to have no subject, what is called its subject is a mention.
    """
    subject = fact.subject
    if subject is not None and not context.is_user(subject) and 0 < len(subject) <= MAX_NAME:
        told = [entity.type for entity in fact.entities if entity.role == "subject"]
        kind = "person" if subject == context.other_speaker else next(iter(told), "other")
        yield NamedEntity(name=subject, type=kind, role="subject")
    for entity in fact.entities:
        if context.is_user(entity.name):
            continue
        if entity.role != "subject":
            yield entity
        elif subject is None:
            yield entity.model_copy(update={"role": "mention"})


def same_names(fact: ExtractedFact) -> Iterator[tuple[str, str]]:
    """The pairs of names that a fact tells to be of one."""
    return ((said.subject, said.object) for said in fact.relations if is_same_as(said.predicate))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKeys:
    """What entities are looked up by: the heads of their names, and whole keys, which count more.

    And the first and last letters of names, which misspelled ones have too.
    """

    heads: frozenset[str]
    keys: frozenset[str]
    ends: frozenset[str]

    def __or__(self, other: "LookupKeys") -> "LookupKeys":
        return LookupKeys(heads=self.heads | other.heads, keys=self.keys | other.keys, ends=self.ends | other.ends)


NO_KEYS: Final = LookupKeys(heads=frozenset(), keys=frozenset(), ends=frozenset())


def lookup_keys(facts: Iterable[ExtractedFact], context: NameContext) -> LookupKeys:
    """What finds every entity that the names in these facts may mean, and the user."""
    facts = list(facts)
    said = {entity.name for fact in facts for entity in named_entities(fact, context)}
    said |= {name for fact in facts for pair in same_names(fact) for name in pair if not context.is_user(name)}
    if context.other_speaker is not None:
        said.add(context.other_speaker)
    return keys_of_names(said, context)


def keys_of_names(said: Iterable[str], context: NameContext) -> LookupKeys:
    """What finds every entity that these names may mean, those whose ties they have, and the user."""
    names = [*_spoken(set(said), context), *(SpokenName(text=name, name=name) for name in context.user_names)]
    keys = {name.key for name in names if name.key}
    forms = {form for key in keys for form in forms_of(key.split(" ")[0])}
    ties = {tie_head(name.tie) for name in names if name.tie}
    slips = {head for key in keys for head in slip_heads(key)}
    heads = frozenset({USER_HEAD, *ties, *slips, *map(name_head, keys | forms)})
    return LookupKeys(heads=heads, keys=frozenset(keys), ends=frozenset(map(name_ends, keys)))


def _spoken(said: set[str], context: NameContext) -> Iterator[SpokenName]:
    while said:
        if (name := read_name(said.pop())) is not None:
            yield name
            if name.owner is not None and not context.is_user(name.owner):
                said.add(name.owner)
