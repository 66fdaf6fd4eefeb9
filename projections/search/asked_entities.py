"""What of a question may name entities: the beginnings of its words, and what it says of ties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Entities = Literal["none", "names", "ties"]
"""How the entities of a question are looked for: not at all, by their names, or also by what they are to others."""
MAX_HEADS: Final = 256
"""How many beginnings of words count."""
MAX_PHRASES: Final = 5
"""How many ties of a question count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TieStep:
    """What somebody is to the one before: the name of a predicate, the tie that it was said by, and a name if any.

    `tie` is empty for what is no tie ("employer"), `name_key` where no name was said ("my brother Tom" has "tom").
    """

    predicate: str
    tie: str = ""
    name_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiePhrase:
    """Somebody by what they are to the owner: the key of a name, empty for the user; one step ("my wife") or two."""

    owner_key: str
    first: TieStep
    then: TieStep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedEntities:
    """What is looked for: names with these heads (`schemas.entities.model.name_head`), and ties."""

    heads: Sequence[str] = ()
    ties: Sequence[TiePhrase] = ()

    @property
    def kind(self) -> Entities:
        if self.ties:
            return "ties"
        return "names" if self.heads else "none"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of a search."""
        steps = {"tie": [one.first for one in self.ties], "next": [one.then or _NO_STEP for one in self.ties]}
        return {
            "heads": list(self.heads),
            "tie_owners": [one.owner_key for one in self.ties],
            **{f"{place}_predicates": [step.predicate for step in some] for place, some in steps.items()},
            **{f"{place}_words": [step.tie for step in some] for place, some in steps.items()},
            **{f"{place}_names": [step.name_key for step in some] for place, some in steps.items()},
        }


_NO_STEP: Final = TieStep(predicate="")
NOBODY: Final = AskedEntities()
