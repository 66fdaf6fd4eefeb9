"""What entities are after a history of turns, commands and undos, worked out anew from the beginning each time.

It is the plain reading of the rules and shares no code with the product: sets of entities that are one, and lists.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

USER = "the user"


@dataclass(kw_only=True)
class Step:
    """What one source did; one that does not `hold` was undone."""

    holds: bool = True


@dataclass(kw_only=True)
class Said(Step):
    """A turn with one fact, which names one entity; `is_new` where it is the first to name it."""

    fact: str
    name: str
    entity: str
    is_new: bool


@dataclass(kw_only=True)
class Renamed(Step):
    entity: str
    name: str


@dataclass(kw_only=True)
class Called(Step):
    """An alias, taken from another entity or not."""

    entity: str
    name: str
    loser: str | None


@dataclass(kw_only=True)
class Merged(Step):
    entities: list[str]
    into: str


@dataclass(kw_only=True)
class Split(Step):
    entity: str
    new: str
    name: str
    facts: list[str]
    names: list[str]


@dataclass(kw_only=True)
class Forgotten(Step):
    entity: str


@dataclass(kw_only=True)
class Undone(Step):
    """An undo of what an earlier source did."""

    target: Step


@dataclass
class Seen:
    """One entity as readers see it: its own name, all of its names, and the facts that name it."""

    name: str
    names: set[str] = field(default_factory=set)
    facts: set[str] = field(default_factory=set)


@dataclass
class World:
    """All that is known after some steps."""

    heads: dict[str, str] = field(default_factory=dict)
    """Which entity each one is now."""
    own: dict[str, str] = field(default_factory=dict)
    names: list[tuple[str, str]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    living: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    never_split: set[str] = field(default_factory=set)
    """What splits that were undone had made: what was decided about it meant nothing else."""

    def one_with(self, entity: str) -> set[str]:
        return {other for other, head in self.heads.items() if head == self.heads[entity]}

    def unite(self, entity: str, into: str) -> None:
        head = self.heads[into]
        for other in self.one_with(entity):
            self.heads[other] = head

    def seen(self) -> dict[str, Seen]:
        found = {
            head: Seen(self.own[head])
            for head in set(self.heads.values())
            if head not in self.forgotten and not self.one_with(head).isdisjoint(self.living)
        }
        for entity, name in self.names:
            if entity not in self.forgotten and self.heads[entity] in found:
                found[self.heads[entity]].names.add(name)
        for fact, entity in self.facts.items():
            if entity not in self.forgotten and self.heads[entity] in found:
                found[self.heads[entity]].facts.add(fact)
        return found

    def add(self, step: Step) -> None:
        match step:
            case Said(fact=fact, name=name, entity=entity, is_new=is_new):
                if is_new:
                    self.heads[entity], self.own[entity] = entity, name
                    self.names.append((entity, name))
                if step.holds:
                    self.facts[fact] = entity
                    self.living.add(entity)
            case Split(new=new, name=name):
                self.heads[new], self.own[new] = new, name
                self._split(step) if step.holds else self._unsplit(step)
            case _ if step.holds:
                self._decide(step)

    def _decide(self, step: Step) -> None:
        match step:
            case Renamed(entity=entity, name=name):
                self.own[entity] = name
                self.names.append((entity, name))
            case Called(entity=entity, name=name, loser=loser):
                if loser is not None:
                    self._take(loser, [name])
                self.names.append((entity, name))
            case Merged(entities=entities, into=into):
                for entity in entities:
                    if not {entity, into} & self.never_split:
                        self.unite(entity, into)
            case Forgotten(entity=entity) if entity not in self.never_split:
                self.forgotten |= self.one_with(entity)

    def _unsplit(self, step: Split) -> None:
        self.never_split.add(step.new)
        self.unite(step.new, step.entity)

    def _split(self, step: Split) -> None:
        same = self.one_with(step.entity)
        self.facts |= {fact: step.new for fact in step.facts if self.facts.get(fact) in same}
        self._take(step.entity, [step.name, *step.names])
        self.names += [(step.new, name) for name in (step.name, *step.names)]
        self.living.add(step.new)

    def _take(self, loser: str, names: Iterable[str]) -> None:
        same = self.one_with(loser)
        self.names = [one for one in self.names if not (one[0] in same and one[1] in names)]


def world_after(steps: Iterable[Step]) -> World:
    world = World()
    for step in steps:
        world.add(step)
    return world
