"""A new fact beside a known one of the same subject, both read, and what may be done about the known one."""

from dataclasses import dataclass
from typing import Final

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.offline.comparison.senses import Sense
from mnemolog.streams.offline.marks import marks

GENERAL: Final = frozenset({"like", "live", "work", "has", "use", "study", "call", "called", "name", "goe", "take"})
"""Words that many texts share: two facts are not about the same for them."""
OF_HAVING: Final = frozenset(
    {"has", "use", "drives", "rides", "rents", "leases", "subscribes", "wears", "carries", "keeps"}
)


@dataclass(frozen=True, slots=True)
class Relation:
    """What may be done about the known fact, and why."""

    action: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    fact: ExtractedFact
    known: Candidate
    new: Sense
    old: Sense

    @property
    def agree(self) -> bool:
        return self.new.affirms == self.old.affirms

    @property
    def one_key(self) -> bool:
        return self.fact.key is not None and self.fact.key == self.known.key

    @property
    def one_slot(self) -> bool:
        single = self.fact.single_valued or self.known.single_valued or is_single_valued(self.fact.key)
        return self.one_key and single

    @property
    def mistaken(self) -> bool:
        return "mistaken" in marks(self.fact.excerpt)

    @property
    def passing(self) -> bool:
        """Whether the new one holds for a while only: it moves nothing."""
        return self.fact.action_hint == "new" and "passing" in marks(self.fact.excerpt)
