"""What is held back lapses with the last of the facts that it challenges."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from mnemolog.schemas import ids
from mnemolog.schemas.events import FactExpired, FactReplaced, FactsMerged, MemoryEvent, PendingConfirmed
from mnemolog.schemas.facts import MovedEnd, Statement
from mnemolog.schemas.scope import Scope
from mnemolog.streams.resolution.overwrites import HeldOverwriteCloser
from tests.support.builders.commits import EventPlace, new_fact
from tests.support.builders.decisions import LAST_YEAR, NEXT_YEAR, TODAY
from tests.support.builders.values import decision
from tests.support.harnesses.resolver_harness import matched_envelope

ROME, OSLO, HELD, OTHER = uuid4(), uuid4(), uuid4(), uuid4()
ENVELOPE = matched_envelope(at=TODAY)


class KnownChallenges:
    """Held overwrites as the tables have them, and what was asked of them."""

    def __init__(self, challenges: Mapping[UUID, tuple[UUID, ...]]) -> None:
        self._challenges = challenges
        self.asked: list[Sequence[UUID]] = []

    async def challenges(self, scope: Scope, fact_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        assert scope == ENVELOPE.scope
        self.asked.append(fact_ids)
        return {pending: known for pending, known in self._challenges.items() if set(known) & set(fact_ids)}


def an_event(kind: type[Any], ordinal: int = 0, **fields: Any) -> MemoryEvent:
    place = EventPlace(owner=ENVELOPE.owner, source_id=ENVELOPE.source_id, ordinal=ordinal, at=TODAY)
    common: dict[str, Any] = {"event_id": uuid4(), "ordinal": ordinal, "decision": decision()}
    made: MemoryEvent = kind(**common, **fields, fact=new_fact(place, "new"))
    return made


def replaced(*targets: UUID, **fields: Any) -> MemoryEvent:
    return an_event(FactReplaced, targets=targets, ended_at=TODAY, **fields)


async def closed(events: Sequence[MemoryEvent], challenges: Mapping[UUID, tuple[UUID, ...]]) -> list[UUID | None]:
    every = await HeldOverwriteCloser(KnownChallenges(challenges))(ENVELOPE, events, TODAY)
    assert every[: len(events)] == tuple(events)
    rejections = every[len(events) :]
    assert [event.ordinal for event in rejections] == list(range(len(events), len(every)))
    assert all(
        event.event_id == ids.event_id(ENVELOPE.owner, ENVELOPE.source_id, event.ordinal) for event in rejections
    )
    return [event.subject_id for event in rejections]


async def test_it_is_closed_with_the_last_of_what_it_challenges() -> None:
    assert await closed([replaced(ROME)], {HELD: (ROME,)}) == [HELD]
    assert await closed([replaced(ROME)], {HELD: (ROME, OSLO)}) == []
    assert await closed([replaced(ROME, OSLO)], {HELD: (ROME, OSLO)}) == [HELD]
    assert await closed([replaced(ROME)], {HELD: (ROME,), OTHER: (ROME, HELD)}) == [HELD, OTHER]


async def test_nothing_is_asked_where_nothing_ends() -> None:
    known = KnownChallenges({HELD: (ROME,)})
    assert await HeldOverwriteCloser(known)(ENVELOPE, [], TODAY) == ()
    announced = an_event(FactExpired, targets=(ROME,), ended_at=NEXT_YEAR)
    assert await HeldOverwriteCloser(known)(ENVELOPE, [announced], TODAY) == (announced,)
    assert known.asked == []


async def test_what_is_merged_goes_on_and_what_is_confirmed_has_not_lapsed() -> None:
    statement = Statement(text="new", excerpt="new")
    assert await closed([an_event(FactsMerged, targets=(ROME,), statement=statement)], {HELD: (ROME,)}) == []
    confirmed = PendingConfirmed(
        event_id=uuid4(), ordinal=0, decision=decision(), action="contradict", target=HELD, targets=(ROME,)
    )
    assert await closed([confirmed], {HELD: (ROME,), OTHER: (ROME,)}) == [OTHER]


async def test_what_the_same_commit_opens_again_has_not_ended() -> None:
    first = replaced(ROME)
    assert first.new_fact is not None
    ender = first.new_fact.fact_id
    again = replaced(ender, ordinal=1, moved_ends=(MovedEnd(fact_id=ROME, ender=ender),))
    assert await closed([first, again], {HELD: (ROME,)}) == []
    ended = MovedEnd(fact_id=ROME, ender=ender, ended_at=LAST_YEAR, ended_by=ender)
    assert await closed([first, replaced(ender, ordinal=1, moved_ends=(ended,))], {HELD: (ROME,)}) == [HELD]
