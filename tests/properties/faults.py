"""Faults that the project once had, put back by hand: each is found by one of the properties, or the table says so.

A fault is a context manager that replaces a function, or a query, by what it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

from psycopg.sql import SQL

from mnemolog.projections.queries import diff as diff_query
from mnemolog.projections.queries import quality
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import ExtractedFact, MatchedFact
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams.commands import handler
from mnemolog.streams.llm import reply_checks, resolve_prompt
from mnemolog.streams.resolution import classify, decide, guards, overwrites, repetitions, turn
from mnemolog.streams.resolution.event_builder import EventBuilder
from mnemolog.streams.resolution.lapses import LapseWriter
from mnemolog.streams.stages import extract
from mnemolog.streams.stages.extract import ParsedSource
from mnemolog.streams.text import differences
from mnemolog.streams.text.normalise import comparable_text
from tests.properties import harness

PatchedPlaces = Sequence[tuple[Any, str, Any]]


@dataclass(frozen=True)
class Fault:
    """A fault by its number in the table, in words, the property that is tried first, and how to put it back."""

    number: int
    what: str
    found_by: str
    places: Callable[[], PatchedPlaces]

    @contextmanager
    def put_back(self) -> Iterator[None]:
        with ExitStack() as stack:
            for where, name, faulty in self.places():
                stack.enter_context(patch.object(where, name, faulty))
            yield


def _call_off() -> PatchedPlaces:
    async def unmoved(events: Sequence[Any], *_: object) -> tuple[Any, ...]:
        return tuple(events)

    return [(turn, "move_ends", unmoved), (handler, "move_ends", unmoved)]


def _history_of_another_person() -> PatchedPlaces:
    right = classify.classify_late

    def of_anybody(matched: MatchedFact, *rest: Any) -> Any:
        subject = matched.fact.subject
        ended = {
            known: known.model_copy(update={"subject": subject})
            for known in matched.candidates
            if known.status == "ended"
        }
        candidates = tuple(ended.get(known, known) for known in matched.candidates)
        return right(matched.model_copy(update={"candidates": candidates}), *rest)

    return [(turn, "classify_late", of_anybody)]


def _inherited_terms() -> PatchedPlaces:
    right, right_classify = EventBuilder.merged_fact, classify.classify

    def merged(self: EventBuilder, llm_decision: Any, targets: Sequence[Any]) -> Any:
        ends = (known.valid_until or known.true_to for known in targets)
        until = self.fact.valid_until or next((end for end in ends if end is not None), None)
        return right(self, llm_decision, targets).model_copy(update={"valid_until": until})

    def of_any_term(matched: MatchedFact, *rest: Any, **more: Any) -> Any:
        until = matched.fact.valid_until
        candidates = tuple(known.model_copy(update={"valid_until": until}) for known in matched.candidates)
        return right_classify(matched.model_copy(update={"candidates": candidates}), *rest, **more)

    return [(EventBuilder, "merged_fact", merged), (turn, "classify", of_any_term)]


def _short_answers_are_echoes() -> PatchedPlaces:
    def dropped(facts: Sequence[ExtractedFact], turn: Any) -> Any:
        recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
        echoes = [fact for fact in facts if any(comparable_text(fact.excerpt) in text for text in recalled)]
        kept = tuple(fact for fact in facts if fact not in echoes)
        return kept, tuple(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt) for fact in echoes)

    return [(extract, "drop_recalled_echoes", dropped)]


def _confirmation_follows_successors() -> PatchedPlaces:
    right = FactStore.pending_cases

    async def following(self: FactStore, fact_ids: Sequence[Any]) -> Mapping[Any, Any]:
        cases = await right(self, fact_ids)
        return {
            fact_id: replace(case, targets=(*case.targets, *case.successors), successors=())
            for fact_id, case in cases.items()
        }

    return [(FactStore, "pending_cases", following)]


def _resolve_ends_all_that_was_near() -> PatchedPlaces:
    near = """
        SELECT (candidate ->> 'fact_id')::uuid AS fact_id
        FROM memory_events AS happened
        CROSS JOIN LATERAL jsonb_array_elements(happened.payload -> 'decision' -> 'candidates') AS candidate
        WHERE happened.fact_id = %(fact_id)s::uuid AND happened.event = 'fact_added'
    """
    return [(FactStore, "QUERIES", {**FactStore.QUERIES, "conflict_of": SQL(near)})]


def _stale_pending() -> PatchedPlaces:
    async def unclosed(self: LapseWriter, envelope: Any, events: Sequence[Any], *_: Any) -> tuple[Any, ...]:
        del self, envelope
        return tuple(events)

    right = repetitions.confirm_pending

    def undoubted(builder: Any, case: Any, decision: Any) -> Any:
        return right(builder, case, decision).model_copy(update={"unresolved": False})

    return [
        (LapseWriter, "__call__", unclosed),
        (turn, "_without_lapsed", lambda turn, _: turn),
        (repetitions, "confirm_pending", undoubted),
    ]


def _merge_forgets_when_it_was_said() -> PatchedPlaces:
    right = EventBuilder.merged_fact

    def forgetful(self: EventBuilder, llm_decision: Any, targets: Sequence[Any]) -> Any:
        return right(self, llm_decision, targets).model_copy(update={"said_at": None})

    return [(EventBuilder, "merged_fact", forgetful)]


def _ended_values_of_single_keys_only() -> PatchedPlaces:
    right = turn.TurnDecider._with_ended_candidates

    async def of_single_keys(self: Any, told: Any, rules: Any, thresholds: Any) -> Any:
        found = await right(self, told, rules, thresholds)
        facts = [_without_ended(one) if not classify.fills_slot(one.fact, rules) else one for one in found.facts]
        return found.model_copy(update={"facts": tuple(facts)})

    return [(turn.TurnDecider, "_with_ended_candidates", of_single_keys)]


def _without_ended(matched: MatchedFact) -> MatchedFact:
    candidates = tuple(known for known in matched.candidates if known.status != "ended")
    return matched.model_copy(update={"candidates": candidates})


def _later_question_takes_the_words() -> PatchedPlaces:
    async def unread(self: Any, retries: Any, context: Any) -> Any:
        del self
        return retries, context

    return [(turn.TurnDecider, "_with_statements", unread)]


def _subjects_by_their_words() -> PatchedPlaces:
    def compared(one: str | None, other: str | None, names: Sequence[str] = ()) -> str:
        del names
        left, right = (
            None if normalise(name or "") in ("", "the user") else normalise(name or "") for name in (one, other)
        )
        return "same" if left == right else "other"

    return [(classify, "compare_subjects", compared), (differences, "compare_subjects", compared)]


def _corrections_in_a_turn_are_held() -> PatchedPlaces:
    right = guards.find_guard

    def guarding_own(verdict: Any, targets: Any, context: Any, rules: Any, *_: Any, **__: Any) -> Any:
        return right(verdict, targets, context, rules)

    return [(overwrites, "find_guard", guarding_own)]


def _merged_facts_are_not_challenged() -> PatchedPlaces:
    query = CandidateFinder.QUERIES["find_candidates"].as_string(None)
    changed = query.replace(")) AS challenged\n)", ")) AS challenged WHERE NOT challenged.is_successor\n)", 1)
    assert changed != query
    challenged = (CandidateFinder, "QUERIES", {**CandidateFinder.QUERIES, "find_candidates": SQL(changed)})
    return [challenged, *_confirmation_follows_successors()]


def _human_word_is_lost() -> PatchedPlaces:
    right = EventBuilder.merged_fact

    def extracted(self: EventBuilder, llm_decision: Any, targets: Sequence[Any]) -> Any:
        return right(self, llm_decision, targets).model_copy(update={"authority": "extracted"})

    return [(EventBuilder, "merged_fact", extracted)]


def _harmful_replies() -> PatchedPlaces:
    return [(resolve_prompt, "claim_faults", lambda *_: iter(()))]


def _held_overwrites_are_not_counted() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("quality", "overwrites"):
            return query
        return SQL(query.as_string(None).replace("WHERE ", "WHERE o.event <> 'fact_pending' AND ", 1))

    return [(quality, "read_query", read)]


def _diff_names_the_disbelieved() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("history", "turning_points"):
            return query
        text = query.as_string(None).replace("WHERE NOT successors.believed", "WHERE false")
        return SQL(text.replace("FROM successors\nWHERE believed", "FROM successors", 1))

    return [(diff_query, "read_query", read)]


def _future_turns_are_not_capped() -> PatchedPlaces:
    right = extract.parse_source

    def uncapped(record: Any, **more: Any) -> ParsedSource:
        source = right(record, **more)
        if not source.notes:
            return source
        told = Turn.from_bytes(record.value)
        envelope = source.envelope.model_copy(update={"occurred_at": told.occurred_at})
        return ParsedSource(envelope, told)

    return [(harness, "parse_source", uncapped)]


def _late_repeats_move_no_beginning() -> PatchedPlaces:
    return [(EventBuilder, "earlier_beginning", lambda *_: None)]


def _older_ends_newer_pending() -> PatchedPlaces:
    return [(decide, "_is_newer_pending", lambda *_: False)]


def _ends_of_the_same_day() -> PatchedPlaces:
    right = reply_checks.claim_faults

    def strict(claim: Any, conflicts: Any) -> Iterator[str]:
        yield from right(claim, conflicts)
        for label, known in claim.targets:
            if claim.action in ("REPLACE", "RETRACT", "EXPIRE") and claim.ended_at and claim.ended_at < known.true_from:
                yield f"ended_at lies before K{label} began"

    return [(resolve_prompt, "claim_faults", strict)]


FAULTS: Final = (
    Fault(1, "what a plan that is called off had ended stays ended", "vanish", _call_off),
    Fault(2, "another person's late news becomes the user's history", "vanish", _history_of_another_person),
    Fault(
        3, "a term passes to what is merged, and equal words with another end are skipped", "vanish", _inherited_terms
    ),
    Fault(4, "short answers are dropped as echoes of recalled memory", "vanish", _short_answers_are_echoes),
    Fault(5, "confirming a held merge ends what its target has become", "vanish", _confirmation_follows_successors),
    Fault(6, "resolve without targets ends everything that was near", "vanish", _resolve_ends_all_that_was_near),
    Fault(7, "the words of a stale pending fact bring a second value", "readers", _stale_pending),
    Fault(8, "a late merge forgets when its parent was last said", "order", _merge_forgets_when_it_was_said),
    Fault(
        9, "a late repetition revives an ended value of a multi-valued key", "order", _ended_values_of_single_keys_only
    ),
    Fault(10, "the user under two names is two people", "readers", _subjects_by_their_words),
    Fault(11, "a correction within a turn is held back", "vanish", _corrections_in_a_turn_are_held),
    Fault(
        12, "a repetition does not reject a challenge of what was merged", "vanish", _merged_facts_are_not_challenged
    ),
    Fault(13, "a human's word is lost in a merge that is confirmed", "vanish", _human_word_is_lost),
    Fault(14, "replies that say more, or less, than the facts are accepted", "vanish", _harmful_replies),
    Fault(
        15, "held overwrites that were rejected are not counted as wrong", "readers", _held_overwrites_are_not_counted
    ),
    Fault(
        16, "what is settled later is told as the words of who spoke then", "readers", _later_question_takes_the_words
    ),
    Fault(17, "diff names a successor that is no longer believed", "readers", _diff_names_the_disbelieved),
    Fault(18, "a turn from the future makes later news history", "vanish", _future_turns_are_not_capped),
    Fault(19, "a late repetition does not move the beginning", "order", _late_repeats_move_no_beginning),
    Fault(20, "an older statement ends a newer pending one", "vanish", _older_ends_newer_pending),
    Fault(21, "an end on the day of the beginning is refused", "readers", _ends_of_the_same_day),
)
