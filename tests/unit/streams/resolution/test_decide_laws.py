"""Whatever a reader says of whatever is known: what decisions never do. Held against the fold that applies them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args
from uuid import UUID

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import KnownFact, LogPosition, TimedFactState
from mnemolog.schemas import ids
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    OVERWRITE_OF_VERDICT,
    FactAdded,
    FactExpired,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    MemoryEvent,
    PendingConfirmed,
)
from mnemolog.schemas.facts import Candidate, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Origin, Verdict
from mnemolog.schemas.scope import Scope, scope_columns
from mnemolog.streams.resolution.classify import Classification, Conflict, classify
from mnemolog.streams.resolution.decide import conflicts_to_retry, decide
from mnemolog.streams.resolution.events import DecisionContext, Judgement, LlmDecision, NoDecision
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    TODAY,
    PendingOverwrite,
    decision_context,
    judged,
    known_fact,
    llm_decision,
    matched_fact,
    turn_rules,
)

MIRA = Scope(user_id="mira")
TIMES = st.sampled_from([LAST_YEAR, TODAY, NEXT_YEAR])
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCase:
    """What is known, what waits, and what a turn says and a reader makes of it."""

    candidates: tuple[Candidate, ...]
    pending: tuple[PendingOverwrite, ...]
    classifications: tuple[Classification, ...]
    decisions: dict[int, LlmDecision | NoDecision]
    retries: tuple[Judgement, ...]
    context: DecisionContext

    @property
    def events(self) -> tuple[MemoryEvent, ...]:
        return decide(self.classifications, [*judged(self.decisions), *self.retries], self.context)


@st.composite
def known_facts(draw: st.DrawFn) -> tuple[tuple[Candidate, ...], tuple[PendingOverwrite, ...]]:
    held = [
        known_fact(
            draw(st.sampled_from([0.5, 0.8, 0.99])),
            f"fact {place}",
            fact_id=UUID(int=place),
            confidence=draw(st.sampled_from([0.4, 0.95])),
            authority=draw(st.sampled_from(["extracted", "extracted", "human"])),
            category=draw(st.sampled_from(["other", "health"])),
            unresolved=draw(st.booleans()),
            true_from=draw(TIMES),
        )
        for place in range(draw(st.integers(1, 4)))
    ]
    cases: list[PendingOverwrite] = []
    for place in range(draw(st.integers(0, 2))):
        targets = draw(st.lists(st.sampled_from(held), min_size=1, max_size=2, unique_by=lambda one: one.fact_id))
        human = any(target.authority == "human" for target in targets)
        fact_ids = tuple(target.fact_id for target in targets)
        action = draw(st.sampled_from(list(OVERWRITE_OF_VERDICT.values())))
        end = max(TODAY, *(target.true_from for target in targets))
        fact_id = UUID(int=100 + place)
        cases.append(
            PendingOverwrite(fact_id=fact_id, targets=fact_ids, action=action, needs_human=human, ended_at=end)
        )
    pending = [
        known_fact(0.9, f"{case.fact_id}", fact_id=case.fact_id, status="pending_confirmation") for case in cases
    ]
    challenged = {one.fact_id: tuple(case.fact_id for case in cases if one.fact_id in case.targets) for one in held}
    held = [one.model_copy(update={"challenged_by": challenged[one.fact_id]}) for one in held]
    return (*held, *pending), tuple(cases)


@st.composite
def statements(draw: st.DrawFn, candidates: tuple[Candidate, ...]) -> tuple[MatchedFact, ...]:
    facts = []
    for place in range(draw(st.integers(1, 4))):
        near = draw(st.lists(st.sampled_from(candidates), max_size=4, unique_by=lambda one: one.fact_id))
        itself = [
            known_fact(0.9, f"new {before}", fact_id=provisional_fact_id(OWNER, SOURCE, before))
            for before in range(place)
        ]
        text = draw(st.sampled_from([f"new {place}", "fact 0", "fact 1"]))
        certainty = draw(st.sampled_from(["explicit", "weak"]))
        time = draw(st.none() | TIMES)
        facts.append(matched_fact(*near, *itself, text=text, certainty=certainty, event_time=time))
    return tuple(facts)


@st.composite
def decision_cases(draw: st.DrawFn) -> DecisionCase:
    candidates, cases = draw(known_facts())
    facts = draw(statements(candidates))
    policy = EffectivePolicy(add_only=draw(st.integers(0, 9)) == 0)
    rules = turn_rules(policy, infer=draw(st.integers(0, 9)) > 0)
    classified = tuple(classify(fact, rules) for fact in facts)
    spoken = {
        place: draw(verdicts(one.candidates)) for place, one in enumerate(classified) if isinstance(one, Conflict)
    }
    known_only = [fact.model_copy(update={"candidates": _known(fact)}) for fact in facts]
    again = conflicts_to_retry(known_only, rules) if rules.uses_llm else ()
    retries = tuple(Judgement(question=asked, answer=draw(verdicts(asked.candidates))) for asked in again)
    context = decision_context(*cases, rules=policy, infer=rules.infer)
    return DecisionCase(
        candidates=candidates,
        pending=cases,
        classifications=classified,
        decisions=spoken,
        retries=retries,
        context=context,
    )


def verdicts(candidates: tuple[Candidate, ...]) -> st.SearchStrategy[LlmDecision | NoDecision]:
    """Anything that the parser lets through: any verdict on any of the candidates, or none."""
    targets = st.lists(st.sampled_from(candidates), min_size=1, max_size=3, unique_by=lambda one: one.fact_id)
    valid = st.builds(
        lambda verdict, chosen: llm_decision(
            verdict, *(() if verdict == "ADD" else chosen), ended_at=_end(verdict, chosen)
        ),
        st.sampled_from(VERDICTS),
        targets,
    )
    return st.just(NoDecision(complaint="nothing valid")) | valid


def _end(verdict: Verdict, chosen: Iterable[Candidate]) -> Any:
    return max(target.true_from for target in chosen) if verdict == "EXPIRE" else None


def _known(fact: MatchedFact) -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in fact.candidates if candidate.fact_id.int < 1000)


def decisions_touch_candidates_and_what_these_challenge_and_nothing_else(case: DecisionCase) -> None:
    near = {candidate.fact_id for one in case.classifications for candidate in one.matched.candidates}
    challenged = {fact_id for held in case.pending for fact_id in (held.fact_id, *held.targets)}
    own: set[UUID] = set()
    for event in case.events:
        assert set(event.named_ids) <= near | challenged | own
        own |= {event.new_fact.fact_id} if event.new_fact else set()


def a_fact_is_ended_once_and_every_id_follows_from_its_place(case: DecisionCase) -> None:
    made = case.events
    ended = [fact_id for event in made for fact_id in event.ended_ids]
    assert len(ended) == len(set(ended))
    assert [event.ordinal for event in made] == list(range(len(made)))
    for event in made:
        assert event.event_id == ids.event_id(OWNER, SOURCE, event.ordinal)
        if (fact := event.new_fact) is not None:
            assert fact.fact_id == ids.fact_id(OWNER, SOURCE, event.ordinal)


def what_a_human_said_is_ended_by_no_statement(case: DecisionCase) -> None:
    humans = {candidate.fact_id for candidate in case.candidates if candidate.authority == "human"}
    unresolved = {one.question.known.fact_id for one in case.retries if one.question.known}
    for event in case.events:
        assert not humans & (set(event.ended_ids) - unresolved)


def late_news_never_ends_a_newer_fact(case: DecisionCase) -> None:
    began = {candidate.fact_id: candidate.true_from for candidate in case.candidates}
    pending = {held.fact_id for held in case.pending}
    for event in case.events:
        if isinstance(event, FactReplaced | FactRetracted | FactExpired) and event.fact is not None:
            # An end that is announced for later ends what has begun since the announcement, too.
            since = event.ended_at if isinstance(event, FactExpired) else event.fact.true_from
            newer = [target for target in event.targets if began[target] > since]
            assert set(newer) <= pending
        waits_with = isinstance(event, FactPending) and bool(pending & set(event.targets))  # with a case's own end
        kinds = FactReplaced | FactRetracted | FactExpired | FactPending
        if isinstance(event, kinds) and event.ended_at is not None and not waits_with:
            assert all(began[target] <= event.ended_at for target in event.targets)
        if isinstance(event, FactAdded) and event.ended_at is not None:
            assert event.fact.true_from < event.ended_at
        if (fact := event.new_fact) is not None:
            began[fact.fact_id] = fact.true_from
        if isinstance(event, FactPending):
            pending.add(event.fact.fact_id)


def where_facts_are_only_added_nothing_else_happens(case: DecisionCase) -> None:
    if not case.context.rules.uses_llm:
        assert all(isinstance(event, FactAdded | FactSkipped) for event in case.events)


def every_decision_is_sound_when_it_is_applied(case: DecisionCase) -> None:
    states = {
        candidate.fact_id: TimedFactState(
            status="superseded" if candidate.status == "ended" else candidate.status,
            confidence=candidate.confidence,
            true_from=LAST_YEAR,
            believed_from=LAST_YEAR,
            state_since=LAST_YEAR,
        )
        for candidate in case.candidates
    }
    facts = {
        fact_id: KnownFact(fact_id=fact_id, scope=scope_columns(MIRA), state=state) for fact_id, state in states.items()
    }
    commit = Commit(
        source_id=SOURCE,
        scope=MIRA,
        origin=Origin(topic="conversation_turns", partition=0, offset=0),
        occurred_at=TODAY,
        published_at=TODAY,
        decided_at=NEXT_YEAR,
        outcome="stored",
        events=case.events,
    )
    changes = fold(
        FoldState(facts=facts), Commit.from_bytes(commit.to_bytes()), LogPosition(partition=0, offset=0), b""
    )
    assert changes.rejections == []
    assert not any(row.stale for row in changes.events)
    confirmed = [event for event in case.events if isinstance(event, PendingConfirmed)]
    assert len({event.target for event in confirmed}) == len(confirmed)


@settings(max_examples=150, deadline=None)
@drawn(decision_cases())
def test_decisions_keep_every_law(case: DecisionCase) -> None:
    decisions_touch_candidates_and_what_these_challenge_and_nothing_else(case)
    a_fact_is_ended_once_and_every_id_follows_from_its_place(case)
    what_a_human_said_is_ended_by_no_statement(case)
    late_news_never_ends_a_newer_fact(case)
    where_facts_are_only_added_nothing_else_happens(case)
    every_decision_is_sound_when_it_is_applied(case)
