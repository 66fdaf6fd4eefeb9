"""What decides a turn besides its facts."""

from dataclasses import dataclass

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import Thresholds
from mnemolog.streams.ends import SlotRules


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules(SlotRules):
    """The rules of slots, and the thresholds of the embedding model; without `infer` a turn is raw."""

    thresholds: Thresholds
    infer: bool = True

    @property
    def uses_llm(self) -> bool:
        """Whether near facts are decided on: not in a raw turn, and not where the policy only adds."""
        return self.infer and not self.policy.add_only

    def fills_slot(self, fact: ExtractedFact) -> bool:
        """Whether a fact is the one value of its key; the statement of an end, or a fact with a term, is not."""
        return fact.action_hint != "retract" and fact.valid_until is None and self.holds_one(fact)
