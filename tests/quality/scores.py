"""From what a turn did to what that is worth. Pure: the definitions of all rates are here."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from mnemolog.schemas.base import Record
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    FactsMerged,
    FactsRelated,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from tests.quality.cases import Case

WORD_OF_EVENT: Final = {
    FactAdded: "ADD",
    FactSkipped: "SKIP",
    FactConfirmed: "KEEP",
    FactsMerged: "MERGE",
    FactReplaced: "REPLACE",
    FactContradicted: "CONTRADICT",
    FactExtended: "EXTEND",
    FactsRelated: "SIMILAR",
    FactExpired: "EXPIRE",
    FactRetracted: "RETRACT",
    FactPending: "PENDING",
    PendingRejected: "KEEP",
}
_RESOLVED: Final = {"keep_both": "SIMILAR", "keep_old": "KEEP", "replace": "REPLACE", "contradict": "CONTRADICT"}
OVERWRITES: Final = ("MERGE", "REPLACE", "CONTRADICT", "RETRACT", "EXPIRE")
UNMET: Final = "UNMET"
"""The outcome of a case that tests nothing: what its turn should meet had not become a fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fact as the tables have it."""

    fact_id: UUID
    source_id: str
    text: str
    status: str
    ending: bool
    """Whether the time of its end is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a case took, all its turns together; milliseconds are those of its last turn."""

    llm_calls: int = 0
    embedding_calls: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What happened to a case: the commits of its known statements and of its turn, and all facts before and after."""

    known: Sequence[Commit]
    turn: Commit
    before: Sequence[Row]
    after: Sequence[Row]
    cost: Cost = Cost()


class Score(Record):
    """One case's figures. `overwrites` counts the known facts that its turn ended, `wrong` those it should not have;
    `held_back` and `held_wrong` the same for overwrites that a guard made pending."""

    id: str
    actual: str
    right: bool
    harmful: bool = False
    guarded: bool = False
    overwrites: int = 0
    wrong: int = 0
    held_back: int = 0
    held_wrong: int = 0
    stale: bool = False
    news_lost: bool = False
    duplicate: bool = False
    unfounded: bool = False

    @property
    def unmet(self) -> bool:
        return self.actual == UNMET

    @property
    def lost_update(self) -> bool:
        return self.stale or self.news_lost


def score(case: Case, observed: CaseResult) -> Score:
    """The figures of one case, as docs/quality.md defines them."""
    holders = _holders(observed)
    met = [holders.get(place, frozenset()) for place in case.concerns]
    concerned = frozenset[UUID]().union(*met)
    effects = _effects(observed, frozenset(row.fact_id for row in observed.before))
    brought = [row for row in observed.after if row.source_id == observed.turn.source_id]
    actual = _actual(observed.turn, effects, concerned)
    unmet = not all(met)
    active_ids = {row.fact_id for row in observed.after if row.status == "active"}
    wrong = sum(_is_wrong(case, word, target in concerned, target in active_ids) for word, target in effects.ended)
    stale = case.old == "ended" and not unmet and _stale(active_ids, effects, concerned)
    news_lost = case.new == "kept" and not any(_tells(row, case.says) for row in brought)
    is_kept = any(row.status in ("active", "pending_confirmation") for row in brought)
    duplicate = case.is_repetition and not unmet and is_kept and not active_ids.isdisjoint(concerned)
    unfounded = case.is_no_news and is_kept
    guarded = actual == "PENDING" and any(word in case.right for word, _ in effects.held)
    acceptable = actual in case.right or guarded
    clean = not (unmet or wrong or stale or news_lost or duplicate or unfounded)
    return Score(
        id=case.id,
        actual=UNMET if unmet else actual,
        right=acceptable and clean,
        harmful=wrong > 0 or (not unmet and actual in case.harmful),
        guarded=guarded,
        overwrites=len(effects.ended),
        wrong=wrong,
        held_back=len(effects.held),
        held_wrong=sum(_is_wrong(case, word, target in concerned, True) for word, target in effects.held),
        stale=stale,
        news_lost=news_lost,
        duplicate=duplicate,
        unfounded=unfounded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effects:
    """What a turn did to facts that were known before: ended, held back from ending, or only touched."""

    ended: Sequence[tuple[str, UUID]]
    held: Sequence[tuple[str, UUID]]
    touched: Sequence[tuple[str, UUID]]
    loose: Sequence[str]
    """Words of events that touched none."""


def _effects(observed: CaseResult, known: frozenset[UUID]) -> _Effects:
    ended: list[tuple[str, UUID]] = []
    held: list[tuple[str, UUID]] = []
    touched: list[tuple[str, UUID]] = []
    loose: list[str] = []
    for event in observed.turn.events:
        word = word_of(event)
        targets = [target for target in _targets(event) if target in known]
        if not targets:
            loose.append("NONE" if word in ("SKIP", "KEEP") else "UNRESOLVED" if word == "UNRESOLVED" else "ADD")
        elif isinstance(event, FactPending):
            held += [(event.action.upper(), target) for target in targets]
        else:
            (ended if word in OVERWRITES else touched).extend((word, target) for target in targets)
    return _Effects(ended=ended, held=held, touched=touched, loose=loose)


def word_of(event: MemoryEvent) -> str:
    """The one word for what an event did."""
    match event:
        case FactAdded(unresolved=True):
            return "UNRESOLVED"
        case PendingConfirmed(action=action):
            return action.upper()
        case ConflictResolved(action=resolution):
            return _RESOLVED[resolution]
        case _:
            return WORD_OF_EVENT[type(event)]


def _targets(event: MemoryEvent) -> tuple[UUID, ...]:
    several: tuple[UUID, ...] = getattr(event, "targets", ())
    single = getattr(event, "target", None)
    return several or ((single,) if single else ())


def _actual(turn: Commit, effects: _Effects, concerned: frozenset[UUID]) -> str:
    """The outcome that weighs most: an end before one held back before a touch of what is concerned before the rest."""
    if turn.outcome in ("failed", "rejected"):
        return "FAILED"
    words = [
        *(word for word, _ in effects.ended),
        *("PENDING" for _ in effects.held),
        *(word for word, target in effects.touched if target in concerned),
        *(word for word in ("UNRESOLVED", "ADD") if word in effects.loose),
        *(word for word, _ in effects.touched),
    ]
    return words[0] if words else "NONE"


def _is_wrong(case: Case, word: str, is_concerned: bool, is_active: bool) -> bool:
    """Whether an end is one that must not be: of another fact, in a harmful way, or of a fact that is to be kept.

    A merge keeps the words of its parents, so it is wrong only where the case says that it is harmful. What is to be
    kept may get an announced end, where that is right: then it `is_active` until that comes.
    """
    if not is_concerned or word in case.harmful:
        return True
    return case.old == "kept" and word != "MERGE" and not (word in case.right and is_active)


def _stale(active_ids: AbstractSet[UUID], effects: _Effects, concerned: frozenset[UUID]) -> bool:
    """Whether something that has ended is still held, if only until a later end, and nothing pending challenges it."""
    challenged = {target for _, target in effects.held}
    return not active_ids.isdisjoint(concerned - challenged)


def _tells(row: Row, says: Sequence[str]) -> bool:
    """Whether a fact that came is still held, as present, pending or history, and says what it should."""
    if row.status not in ("active", "pending_confirmation") and not row.ending:
        return False
    return not says or any(word.casefold() in row.text.casefold() for word in says)


def _holders(observed: CaseResult) -> Mapping[int, frozenset[UUID]]:
    """Per place in `known` the facts that stored it, active, when the turn came."""
    places: dict[UUID, set[int]] = {}
    for place, commit in enumerate(observed.known):
        for event in commit.events:
            _trace(event, place, places)
    active = {row.fact_id for row in observed.before if row.status == "active"}
    return {
        place: frozenset(fact for fact, stood_for in places.items() if place in stood_for and fact in active)
        for place in range(len(observed.known))
    }


def _trace(event: MemoryEvent, place: int, places: dict[UUID, set[int]]) -> None:
    """Follow a known statement into the facts that store it: its own, a merged one, or the one that it repeats."""
    if isinstance(event, FactSkipped | FactConfirmed):
        places.setdefault(event.target, set()).add(place)
    fact = event.new_fact
    if fact is not None:
        inherited = [places.get(target, set()) for target in _targets(event)] if isinstance(event, FactsMerged) else []
        places[fact.fact_id] = {place}.union(*inherited)
