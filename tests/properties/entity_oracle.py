"""What entities are after a history of turns, commands and undos, worked out anew from the beginning each time.

It is the plain reading of the rules and shares no code with the product: sets of entities that are one, and lists.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.properties.entity_steps import (
    Called,
    Deleted,
    Forgotten,
    Merged,
    Rejected,
    Renamed,
    Said,
    Split,
    Step,
    Summarised,
    Undone,
)

PREDICATES: Final = {"my wife": "spouse", "my brother": "sibling"}
"""What relations of the user say of who is called so."""


@dataclass
class Seen:
    """One entity as readers see it: its own name, all of its names, the facts that name it, and its summary.

    `pending` are those that it may be one with, and nobody has said so or denied it.
    """

    name: str
    names: set[str] = field(default_factory=set)
    facts: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    summary: tuple[int, int] | None = None
    """The version of the summary that is shown, and how many facts have changed since."""
    ties: dict[str, set[str]] = field(default_factory=dict)
    """The facts that say what it is to the user, by the predicate."""


@dataclass(frozen=True)
class Name:
    """A name of an entity; `key` is equal for all words that say the same, `by` the turn that told it.

    One that is `own` lives as long as its entity.
    """

    entity: str
    text: str
    key: str
    by: Said | None = None
    own: bool = False

    @property
    def is_tie(self) -> bool:
        return self.key.startswith("my ")


@dataclass
class World:
    """All that is known after some steps."""

    heads: dict[str, str] = field(default_factory=dict)
    """Which entity each one is now."""
    own: dict[str, str] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)
    names: list[Name] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """The entity that each fact names which was not undone."""
    living: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    never_split: set[str] = field(default_factory=set)
    """What splits that were undone had made: what was decided about it meant nothing else."""
    deleted: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    parted: set[str] = field(default_factory=set)
    """Entities of which splits have taken facts."""
    brought: dict[str, Said] = field(default_factory=dict)
    """The turn that named an entity first; of what a person has split off only facts tell."""

    def one_with(self, entity: str) -> set[str]:
        return {other for other, head in self.heads.items() if head == self.heads[entity]}

    def unite(self, entity: str, into: str) -> None:
        head = self.heads[into]
        for other in self.one_with(entity):
            self.heads[other] = head

    def known(self) -> dict[str, list[Name]]:
        """The entities that somebody speaks for, deleted facts as well, each with its names."""
        found: dict[str, list[Name]] = {
            head: []
            for head in dict.fromkeys(self.heads.values())
            if head not in self.forgotten and not self.one_with(head).isdisjoint(self.living)
        }
        for name in self.names:
            is_told = name.own or name.by is None or name.by.holds or self._is_said_anew(name)
            if is_told and name.entity not in self.forgotten and self.heads[name.entity] in found:
                found[self.heads[name.entity]].append(name)
        return found

    def _is_said_anew(self, name: Name) -> bool:
        """Whether a turn named the entity by this proper name alone, or this tie, before its turn was undone."""
        undone = [place for place, one in enumerate(self.steps) if isinstance(one, Undone) and one.target is name.by]
        before = self.steps[: max(undone, default=0)]
        others = {text for step in self.steps for text in step.names_of(name.entity) if key_of(text) != name.key}
        return any(
            isinstance(one, Said)
            and one.holds
            and one.entity == name.entity
            and _has_words(one.fact, name.text)
            and (name.is_tie or not any(_has_words(one.fact, other) for other in others))
            for one in before
        )

    def told(self) -> dict[str, list[Name]]:
        """The names of those entities that a person gave, or a fact tells that was not deleted."""
        known = self.known().items()
        return {
            head: [one for one in names if self._is_told(one, self.facts_of(head) - self.deleted)]
            for head, names in known
        }

    def shown_name(self, head: str) -> str | None:
        """What readers call an entity; None for one that they do not see."""
        return self._shown_name(head, [one.text for one in self.told()[head]]) if self._is_shown(head) else None

    def unclear(self) -> set[str]:
        """Those that no fact names any more since splits have taken them: whether readers see them is left open."""
        return {
            one for one in self.known() if not self.facts_of(one) and not self.one_with(one).isdisjoint(self.parted)
        }

    def facts_of(self, head: str) -> set[str]:
        return {fact for fact, one in self.facts.items() if one not in self.forgotten and self.heads[one] == head}

    def seen(self) -> dict[str, Seen]:
        """What readers see: what only deleted facts told is left out."""
        found = {}
        for head, names in self.told().items():
            if self._is_shown(head):
                facts = self.facts_of(head) - self.deleted
                shown = [name.text for name in names]
                summary = self._summary_of(head, facts)
                name, ties = self._shown_name(head, shown), _ties_of(facts)
                found[head] = Seen(name, set(shown), facts, set(), summary, ties)
        for one, other in self.pending().values():
            for mine, theirs in ((one, other), (other, one)):
                if mine in found:
                    found[mine].pending.add(theirs)
        return found

    def pending(self) -> dict[int, tuple[str, str]]:
        """The steps that proposed a merge which waits, each with the two entities, as they are now."""
        known, found = {one for one in self.known() if self._is_shown(one)}, {}
        for place, step in enumerate(self.steps):
            if isinstance(step, Said) and step.holds and step.proposed:
                merged, into = (self.heads[one] for one in step.proposed)
                if merged != into and {merged, into} <= known and not self._is_settled(step):
                    found[place] = merged, into
        return found

    def is_decided(self, one: str, other: str) -> bool:
        """Whether a merge of two was proposed, or a person has said that they are two."""
        same, others = self.one_with(one), self.one_with(other)
        pairs = [step.pair if step.holds else step.parted for step in self.steps]
        return any((pair & same) and (pair & others) for pair in pairs)

    def _is_settled(self, proposal: Said) -> bool:
        return any(isinstance(one, Merged | Rejected) and one.holds and one.of is proposal for one in self.steps)

    def _is_shown(self, head: str) -> bool:
        facts = self.facts_of(head)
        if facts:
            return bool(facts - self.deleted)
        said = self.brought.get(head)
        return said is not None and said.holds and said.fact not in self.deleted

    def _is_told(self, name: Name, facts: Iterable[str]) -> bool:
        is_merged = self.heads[name.entity] != name.entity
        if is_merged or name.by is None or (name.by.holds and name.by.fact not in self.deleted):
            return True
        return any(name.text in fact for fact in facts)

    def _shown_name(self, head: str, shown: Sequence[str]) -> str:
        own = self._own_name(head)
        return own if any(own in name for name in shown) else [*shown, "unnamed person"][0]

    def _own_name(self, head: str) -> str:
        """What a person called it; the first proper name, its own before those of others, takes the place of a tie."""
        own = self.own[head]
        if head in self.renamed or not own.startswith("my "):
            return own
        named = [one for one in self.known().get(head, ()) if not one.is_tie]
        first = min(named, key=lambda one: one.entity != head, default=None)
        if first is None:
            return own
        return self.own[first.entity] if first.entity in self.renamed else first.text

    def _summary_of(self, head: str, facts: set[str]) -> tuple[int, int] | None:
        for place, step in reversed(list(enumerate(self.steps))):
            if isinstance(step, Summarised) and step.holds and self.heads[step.entity] == head and step.facts <= facts:
                told = {one.fact for one in self.steps[place:] if isinstance(one, Said)}
                return step.version, len(facts & told)
        return None

    def add(self, step: Step) -> None:
        self.steps.append(step)
        match step:
            case Said():
                self._say(step)
            case Split(new=new, name=name):
                self.heads[new], self.own[new] = new, name
                self._split(step) if step.holds else self._unsplit(step)
            case _ if step.holds:
                self._decide(step)

    def _say(self, step: Said) -> None:
        entity = step.entity
        if step.is_new:
            self.heads[entity], self.own[entity], self.brought[entity] = entity, step.gives[0], step
        for place, text in enumerate(step.gives):
            self.names.append(Name(entity, text, key_of(text), step, own=step.is_new and place == 0))
        if step.holds:
            self.facts[step.fact] = entity
            self.living.add(entity)

    def _decide(self, step: Step) -> None:
        match step:
            case Renamed(entity=entity, name=name):
                self.own[entity] = name
                self.renamed.add(entity)
                self.names.append(Name(entity, name, key_of(name)))
            case Called(entity=entity, name=name, loser=loser):
                if loser is not None:
                    self._take(loser, [name])
                self.names.append(Name(entity, name, key_of(name)))
            case Merged(entities=entities, into=into):
                for entity in entities:
                    if not {entity, into} & self.never_split:
                        self.unite(entity, into)
            case Forgotten(entity=entity):
                self.deleted |= step.facts
                if entity not in self.never_split:
                    self.forgotten |= self.one_with(entity)
            case Deleted():
                self.deleted |= step.facts

    def _unsplit(self, step: Split) -> None:
        self.never_split.add(step.new)
        self.unite(step.new, step.entity)

    def _split(self, step: Split) -> None:
        same = self.one_with(step.entity)
        moved = [fact for fact in step.facts if self.facts.get(fact) in same]
        self.parted |= {self.facts[fact] for fact in moved} | (same if step.facts else set())
        self.facts |= dict.fromkeys(moved, step.new)
        self._take(step.entity, [step.name, *step.names])
        self.names += [Name(step.new, name, key_of(name)) for name in (step.name, *step.names)]
        self.living.add(step.new)

    def _take(self, loser: str, names: Iterable[str]) -> None:
        same, keys = self.one_with(loser), {key_of(name) for name in names}
        self.names = [one for one in self.names if not (one.entity in same and one.key in keys)]


def _ties_of(facts: Iterable[str]) -> dict[str, set[str]]:
    """What facts say that somebody is to the user."""
    found: dict[str, set[str]] = {}
    for fact in facts:
        for tie, predicate in PREDICATES.items():
            if f" {tie}" in fact:
                found.setdefault(predicate, set()).add(fact)
    return found


def key_of(text: str) -> str:
    """What a name says: "my wife Ana", as a name, says who is the wife."""
    return " ".join(text.split()[:2]) if text.startswith("my ") else text


def _has_words(text: str, name: str) -> bool:
    return f" {name} ".casefold() in f" {text} ".casefold()


def world_after(steps: Iterable[Step]) -> World:
    world = World()
    for step in steps:
        world.add(step)
    return world
