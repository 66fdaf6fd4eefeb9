"""What decides a turn besides its facts, and which facts are values of one slot by it."""

from dataclasses import dataclass, field

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Thresholds
from mnemolog.streams.text.differences import SubjectRelation, relate_subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The policy, the thresholds of the embedding model, and the names of the user; without `infer` a turn is raw."""

    thresholds: Thresholds
    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    user_names: tuple[str, ...] = ()
    infer: bool = True

    @property
    def uses_llm(self) -> bool:
        """Whether near facts are decided on: not in a raw turn, and not where the policy only adds."""
        return self.infer and not self.policy.add_only

    def holds_one(self, fact: ExtractedFact | Candidate) -> bool:
        """Whether the key of a fact holds one value at a time."""
        return fact.single_valued or self.policy.is_single_valued(fact.key)

    def fills_slot(self, fact: ExtractedFact) -> bool:
        """Whether a fact is the one value of its key; the statement of an end, or a fact with a term, is not."""
        return fact.action_hint != "retract" and fact.valid_until is None and self.holds_one(fact)

    def slot_relation(self, fact: ExtractedFact, known: Candidate) -> SubjectRelation:
        """Whether both are values of one key that holds one at a time: of the same subject for certain, or perhaps."""
        if fact.key is None or fact.key != known.key or not (self.holds_one(fact) or known.single_valued):
            return "other"
        return relate_subjects(fact, known, self.user_names)
