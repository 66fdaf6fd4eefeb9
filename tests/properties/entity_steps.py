"""The steps of a history of entities: what each source said, decided or took back."""

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Step:
    """What one source did; one that does not `hold` was undone."""

    holds: bool = True

    @property
    def pair(self) -> set[str]:
        """Two entities that may be one, and that nobody is to be asked about again."""
        return set()

    @property
    def parted(self) -> set[str]:
        """The entities that are two again because the step was undone."""
        return set()

    def names_of(self, _entity: str) -> list[str]:
        """The names that the step gives to an entity."""
        return []


@dataclass(kw_only=True)
class Said(Step):
    """A turn with one fact, which names one entity; `is_new` where it is the first to name it.

    `gives` are the names that the entity did not have, `proposed` the two entities that the turn says may be one.
    """

    fact: str
    entity: str
    is_new: bool
    gives: list[str]
    proposed: tuple[str, str] | None = None

    @property
    def words(self) -> str:
        """Whom the turn names, as it is said."""
        return self.fact.partition(" about ")[2]

    @property
    def pair(self) -> set[str]:
        return set(self.proposed or ())

    def names_of(self, entity: str) -> list[str]:
        return self.gives if entity == self.entity else []


@dataclass(kw_only=True)
class Renamed(Step):
    entity: str
    name: str

    def names_of(self, entity: str) -> list[str]:
        return [self.name] if entity == self.entity else []


@dataclass(kw_only=True)
class Called(Step):
    """An alias, taken from another entity or not."""

    entity: str
    name: str
    loser: str | None

    def names_of(self, entity: str) -> list[str]:
        return [self.name] if entity == self.entity else []


@dataclass(kw_only=True)
class Merged(Step):
    """Entities are one, by a command or because a person confirmed what a turn proposed (`of`)."""

    entities: list[str]
    into: str
    of: Said | None = None

    @property
    def parted(self) -> set[str]:
        return self.concerned

    @property
    def concerned(self) -> set[str]:
        return {*self.entities, self.into}


@dataclass(kw_only=True)
class Rejected(Step):
    """A person said that what a turn proposed is not so."""

    of: Said
    named: set[str]

    @property
    def pair(self) -> set[str]:
        return self.named


@dataclass(kw_only=True)
class Split(Step):
    entity: str
    new: str
    name: str
    facts: list[str]
    names: list[str]

    @property
    def pair(self) -> set[str]:
        return {self.entity, self.new}

    def names_of(self, entity: str) -> list[str]:
        return [self.name, *self.names] if entity == self.new else []


@dataclass(kw_only=True)
class Forgotten(Step):
    """`facts` are those that were deleted with the entity."""

    entity: str
    facts: set[str] = field(default_factory=set)

    @property
    def concerned(self) -> set[str]:
        return {self.entity}


@dataclass(kw_only=True)
class Deleted(Step):
    facts: set[str]


@dataclass(kw_only=True)
class Summarised(Step):
    """A summary of an entity, written from these facts."""

    entity: str
    facts: set[str]
    version: int


@dataclass(kw_only=True)
class Undone(Step):
    """An undo of what an earlier source did."""

    target: Step
