"""Run a labelled case, and from what its turn did to what that is worth: the definitions of all rates are here."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from time import perf_counter
from typing import Final, LiteralString
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
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.quality.cases import Case, Utterance
from tests.quality.runs import Cost, Share
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

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
RESOLVED: Final = {"keep_both": "SIMILAR", "keep_old": "KEEP", "replace": "REPLACE", "contradict": "CONTRADICT"}
OVERWRITES: Final = ("MERGE", "REPLACE", "CONTRADICT", "RETRACT", "EXPIRE")
UNMET: Final = "UNMET"
"""The outcome of a case that tests nothing: what its turn should meet had not become a fact."""
DECIDED_AFTER: Final = timedelta(seconds=5)
_ROWS: Final[LiteralString] = """
SELECT fact_id, source_id, text, status, true_to IS NOT NULL AS ending
FROM facts WHERE user_id = %s ORDER BY recorded_at, ordinal
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A fact as the tables have it; `ending` says whether the time of its end is known."""

    fact_id: UUID
    source_id: str
    text: str
    status: str
    ending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What happened to a case: the commits of its known statements and of its turn, and all facts before and after."""

    known: Sequence[Commit]
    turn: Commit
    before: Sequence[Row]
    after: Sequence[Row]
    cost: Cost = field(default_factory=Cost)


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


async def run_case(pipeline: InProcessPipeline, partition: int, case: Case) -> CaseResult:
    """Say what was known, each statement as a turn of its own, then the turn that counts.

    An older message that arrives later is decided later.
    """
    known: list[Commit] = []
    now = case.known[0].at

    async def say(name: str, said: Utterance) -> Commit:
        nonlocal now
        turn = Turn(
            turn_id=f"{case.id}/{name}",
            scope=Scope(user_id=case.id),
            messages=(Message(role="user", content=said.text),),
            occurred_at=said.at,
            speaker=case.speaker,
        )
        now = max(now, said.at) + DECIDED_AFTER
        return await pipeline.process_turn(turn, partition=partition, offset=len(known), now=now)

    async def rows() -> list[Row]:
        async with pipeline.pool.connection() as connection:
            return [Row(*row) for row in await (await connection.execute(_ROWS, [case.id])).fetchall()]

    for offset, said in enumerate(case.known):
        known.append(await say(f"known-{offset}", said))
    before, started = await rows(), perf_counter()
    last = await say("turn", case.turn)
    cost = Cost.of([*known, last], (perf_counter() - started) * 1000)
    return CaseResult(known=known, turn=last, before=before, after=await rows(), cost=cost)


def score(case: Case, observed: CaseResult) -> Score:
    """The figures of one case, as docs/quality.md defines them."""
    holders = _holders(observed)
    met = [holders[place] for place in case.concerns]
    unmet, concerned = not all(met), frozenset[UUID]().union(*met)
    known_ids = frozenset(row.fact_id for row in observed.before)
    active_ids = {row.fact_id for row in observed.after if row.status == "active"}

    # What the turn did to facts that were known before: each an action's word and a fact.
    ended: list[tuple[str, UUID]] = []
    held: list[tuple[str, UUID]] = []
    touched: list[tuple[str, UUID]] = []
    loose: list[str] = []  # words of events that touched none
    for event in observed.turn.events:
        word = word_of(event)
        targets = [target for target in _targets(event) if target in known_ids]
        if not targets:
            loose.append("NONE" if word in ("SKIP", "KEEP") else "UNRESOLVED" if word == "UNRESOLVED" else "ADD")
        elif isinstance(event, FactPending):
            held += [(event.action.upper(), target) for target in targets]
        else:
            (ended if word in OVERWRITES else touched).extend((word, target) for target in targets)

    # The outcome that weighs most: an end before one held back before a touch of what is concerned before the rest.
    words = [
        *(["FAILED"] if observed.turn.outcome in ("failed", "rejected") else []),
        *(word for word, _ in ended),
        *("PENDING" for _ in held),
        *(word for word, target in touched if target in concerned),
        *(word for word in ("UNRESOLVED", "ADD") if word in loose),
        *(word for word, _ in touched),
        "NONE",
    ]
    actual = words[0]
    guarded = actual == "PENDING" and any(word in case.right for word, _ in held)

    wrong = sum(_is_wrong(case, word, target in concerned, target in active_ids) for word, target in ended)
    challenged = {target for _, target in held}
    stale = case.old == "ended" and not unmet and not active_ids.isdisjoint(concerned - challenged)
    brought = [row for row in observed.after if row.source_id == observed.turn.source_id]
    news_lost = case.new == "kept" and not any(_says_so(row, case.says) for row in brought)
    is_kept = any(row.status in ("active", "pending_confirmation") for row in brought)
    duplicate = case.is_repetition and not unmet and is_kept and not active_ids.isdisjoint(concerned)
    unfounded = case.is_no_news and is_kept
    clean = not (unmet or wrong or stale or news_lost or duplicate or unfounded)
    return Score(
        id=case.id,
        actual=UNMET if unmet else actual,
        right=(actual in case.right or guarded) and clean,
        harmful=wrong > 0 or (not unmet and actual in case.harmful),
        guarded=guarded,
        overwrites=len(ended),
        wrong=wrong,
        held_back=len(held),
        held_wrong=sum(_is_wrong(case, word, target in concerned, True) for word, target in held),
        stale=stale,
        news_lost=news_lost,
        duplicate=duplicate,
        unfounded=unfounded,
    )


def word_of(event: MemoryEvent) -> str:
    """The one word for what an event did."""
    match event:
        case FactAdded(unresolved=True):
            return "UNRESOLVED"
        case PendingConfirmed(action=action):
            return action.upper()
        case ConflictResolved(action=resolution):
            return RESOLVED[resolution]
        case _:
            return WORD_OF_EVENT[type(event)]


def _targets(event: MemoryEvent) -> tuple[UUID, ...]:
    several: tuple[UUID, ...] = getattr(event, "targets", ())
    single = getattr(event, "target", None)
    return several or ((single,) if single else ())


def _is_wrong(case: Case, word: str, is_concerned: bool, is_active: bool) -> bool:
    """Whether an end is one that must not be: of another fact, in a harmful way, or of a fact that is to be kept.

    A merge keeps the words of its parents, so it is wrong only where the case says that it is harmful. What is to be
    kept may get an announced end, where that is right: then it `is_active` until that comes.
    """
    if not is_concerned or word in case.harmful:
        return True
    return case.old == "kept" and word != "MERGE" and not (word in case.right and is_active)


def _says_so(row: Row, says: Sequence[str]) -> bool:
    """Whether a fact that came is still held, as present, pending or history, and says what it should."""
    if row.status not in ("active", "pending_confirmation") and not row.ending:
        return False
    return not says or any(word.casefold() in row.text.casefold() for word in says)


def _holders(observed: CaseResult) -> Mapping[int, AbstractSet[UUID]]:
    """Per place in `known` the active facts that stored it when the turn came: its own, a merged or a repeated one."""
    places: dict[UUID, set[int]] = {}
    for place, commit in enumerate(observed.known):
        for event in commit.events:
            if isinstance(event, FactSkipped | FactConfirmed):
                places.setdefault(event.target, set()).add(place)
            if event.new_fact is not None:
                merged = _targets(event) if isinstance(event, FactsMerged) else ()
                places[event.new_fact.fact_id] = {place}.union(*(places.get(target, set()) for target in merged))
    active = {row.fact_id for row in observed.before if row.status == "active"}
    return {
        place: {fact for fact, stood_for in places.items() if place in stood_for and fact in active}
        for place in range(len(observed.known))
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case with its score."""

    case: Case
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of some cases. All but `right` are of things that should not be."""

    cases: int
    right: Share
    harmful: Share
    wrong_overwrites: Share
    wrong_overwrite_cases: Share
    lost_updates: Share
    stale: Share
    news_lost: Share
    duplicates: Share
    unfounded: Share
    unmet: Share
    held_back: int
    held_wrong: int


def compute_rates(scored: Sequence[ScoredCase]) -> Rates:
    """The rates as docs/quality.md defines them."""

    def share(has: Callable[[Score], bool], of: Callable[[ScoredCase], bool] = lambda _: True) -> Share:
        some = [one for one in scored if of(one)]
        return Share(of=len(some), count=sum(has(one.score) for one in some))

    def may_go_stale(one: ScoredCase) -> bool:
        return one.case.old == "ended" and not one.score.unmet

    return Rates(
        cases=len(scored),
        right=share(lambda score: score.right),
        harmful=share(lambda score: score.harmful),
        wrong_overwrites=Share(
            of=sum(one.score.overwrites for one in scored), count=sum(one.score.wrong for one in scored)
        ),
        wrong_overwrite_cases=share(lambda score: score.wrong > 0),
        lost_updates=share(lambda score: score.lost_update, lambda one: may_go_stale(one) or one.case.new == "kept"),
        stale=share(lambda score: score.stale, may_go_stale),
        news_lost=share(lambda score: score.news_lost, lambda one: one.case.new == "kept"),
        duplicates=share(lambda score: score.duplicate, lambda one: one.case.is_repetition and not one.score.unmet),
        unfounded=share(lambda score: score.unfounded, lambda one: one.case.is_no_news),
        unmet=share(lambda score: score.unmet),
        held_back=sum(one.score.held_back for one in scored),
        held_wrong=sum(one.score.held_wrong for one in scored),
    )
