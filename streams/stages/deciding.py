"""What a turn's statements mean for the known facts: pure functions from weights and verdicts to events."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from mnemolog.schemas.events import FactAdded, FactExtended, FactsRelated, MemoryEvent
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.provenance import Decision, Verdict
from mnemolog.streams.stages.guarding import older, parted
from mnemolog.streams.stages.in_turn import SoFar, place_id
from mnemolog.streams.stages.making import Circumstances, Judgement, Maker, Unjudged, before, said
from mnemolog.streams.stages.overwriting import HELD_BACK, history, overwritten
from mnemolog.streams.stages.repeating import repeated
from mnemolog.streams.stages.settling import Settling, settled
from mnemolog.streams.stages.weighing import Contested, Duplicate, Fresh, Overtaken, Weight, of_its_slot

Events = tuple[MemoryEvent, ...]

_SAYS_IT_TOO: Final[frozenset[Verdict]] = frozenset({"KEEP", "MERGE"})
_NEVER_ASKED = Unjudged(complaint="the turn has more conflicts than one question holds")


def events(
    weights: Sequence[Weight],
    judgements: Mapping[int, Judgement | Unjudged],
    given: Circumstances,
    settlings: Sequence[Settling] = (),
) -> Events:
    """The events of each statement, in order, then those of the unresolved facts that were asked about again.

    A statement brings one event, or more where it settles what was pending; a known fact is ended by one at the most.
    """
    so_far = SoFar(given.chains)
    made: list[MemoryEvent] = []
    for place, weight in enumerate(weights):
        maker = _maker(given, len(made), weight.matched, so_far)
        done = _decided(maker, weight, judgements.get(place, _NEVER_ASKED), so_far)
        so_far.note(done, place_id(given.owner, given.source_id, place))
        made += done
    for settling in settlings:
        done = settled(given, len(made), settling, so_far)
        so_far.note(done)
        made += done
    return tuple(made)


def _maker(given: Circumstances, place: int, matched: MatchedFact, so_far: SoFar) -> Maker:
    return Maker(
        given=given,
        place=place,
        fact=matched.fact,
        saying=said(matched.fact, given),
        vector=matched.vector,
        candidates=tuple(map(so_far.became, matched.candidates)),
    )


def _decided(maker: Maker, weight: Weight, judgement: Judgement | Unjudged, so_far: SoFar) -> Events:
    match weight:
        case Fresh():
            return _added(maker, _fresh(maker, weight))
        case Duplicate():
            return _duplicate(maker, weight, so_far)
        case Overtaken():
            return _overtaken(maker, weight, so_far)
        case Contested() if isinstance(judgement, Judgement):
            return _judged(maker, judgement, so_far)
        case Contested():
            reason = f"unresolved, kept beside: {judgement.complaint}"
            return _added(maker, maker.decision("fallback", reason, judgement), unresolved=True)


def _fresh(maker: Maker, weight: Fresh) -> Decision:
    if weight.guard is not None:
        return maker.decision("policy", HELD_BACK[weight.guard], guard=weight.guard)
    return maker.decision("threshold", f"no known fact reaches similarity {maker.given.thresholds.conflict:g}")


def _overtaken(maker: Maker, weight: Overtaken, so_far: SoFar) -> Events:
    saying, rules = maker.saying, maker.given.rules
    of_slot = (known for known in maker.candidates if of_its_slot(maker.fact, known, rules))
    held = [known for known in so_far.currents(of_slot) if older(saying.true_from, saying, known)]
    decision = maker.decision("policy", "its slot held a newer value, which has ended as well", guard="late_news")
    return (history(maker, [*weight.by, *held], decision, so_far),)


def _parted(maker: Maker, known: Candidate, so_far: SoFar, judgement: Judgement | None = None) -> Events:
    reason = f"something else was so between it and what it meets: {HELD_BACK['late_news']}"
    decision = maker.decision("policy", reason, judgement, guard="late_news", before=(before(known),))
    return (history(maker, [known], decision, so_far),)


def _duplicate(maker: Maker, weight: Duplicate, so_far: SoFar) -> Events:
    known = so_far.current(weight.candidate)
    if known is None:
        return _added(maker, maker.decision(weight.by, "what it repeats has been ended by this very turn"))
    if parted(maker.saying, known, so_far.chains):
        return _parted(maker, known, so_far)
    near = f"similarity {weight.candidate.similarity:.3f} is that of a duplicate"
    decision = maker.decision(weight.by, "the same words are known" if weight.by == "hash" else near)
    return repeated(maker, known, decision, so_far, raises=False)


def _judged(maker: Maker, judgement: Judgement, so_far: SoFar) -> Events:
    verdict, targets = judgement.verdict, so_far.currents(judgement.targets)
    decision = maker.decision("model", verdict.reason, judgement)
    if verdict.action in ("EXTEND", "SIMILAR", "EXPIRE"):  # what is pending is not held, so nothing bears on it yet
        targets = tuple(known for known in targets if known.status == "active")
    if not targets:
        return _added(maker, decision)
    gap = next((known for known in targets if parted(maker.saying, known, so_far.chains)), None)
    if gap is not None and verdict.action in _SAYS_IT_TOO:
        return _parted(maker, gap, so_far, judgement)
    match verdict.action:
        case "ADD":
            return _added(maker, decision)
        case "KEEP":
            nearest = max(targets, key=lambda known: known.similarity)
            return repeated(maker, nearest, decision, so_far, raises=True)
        case "EXTEND" | "SIMILAR":
            return _beside(maker, judgement, targets, decision)
        case _:
            return overwritten(maker, judgement, targets, so_far)


def _added(maker: Maker, decision: Decision, *, unresolved: bool = False) -> Events:
    return (FactAdded(**maker.head(decision), fact=maker.new_fact(), unresolved=unresolved),)


def _beside(maker: Maker, judgement: Judgement, targets: Sequence[Candidate], decision: Decision) -> Events:
    kind = FactExtended if judgement.verdict.action == "EXTEND" else FactsRelated
    target_ids = tuple(known.fact_id for known in targets)
    fact = maker.new_fact()
    ends = [end for end in (fact.valid_until, *_announced(maker, targets)) if end is not None]
    told = fact.model_copy(update={"valid_until": min(ends, default=None)})
    return (kind(**maker.head(decision), targets=target_ids, fact=told),)


def _announced(maker: Maker, targets: Sequence[Candidate]) -> Iterator[datetime | None]:
    """The ends that were announced of newer values of a statement's slot: what is older ends with them."""
    for known in targets:
        if of_its_slot(maker.fact, known, maker.given.rules) and older(maker.saying.true_from, maker.saying, known):
            yield known.true_to
