"""How former faults are put back by hand: each function names what is replaced, and what it was while it was faulty."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg.sql import SQL

from mnemolog.projections.queries import diff as diff_query
from mnemolog.projections.queries import quality
from mnemolog.projections.queries.scope_filter import read_query
from mnemolog.projections.stores.facts import CandidateFinder, FactStore
from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import ExtractedFact, MatchedFact
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams import ends as end_rules
from mnemolog.streams.commands import handler
from mnemolog.streams.entities import subjects as subject_relations
from mnemolog.streams.llm import reply_checks, resolve_prompt
from mnemolog.streams.resolution import classify, decide, turn
from mnemolog.streams.resolution import events as repetitions
from mnemolog.streams.resolution.events import EventBuilder
from mnemolog.streams.resolution.overwrites import HeldOverwriteCloser
from mnemolog.streams.stages import extract
from mnemolog.streams.stages import extract as echo_filter
from mnemolog.streams.stages.extract import ParsedSource
from mnemolog.streams.text import differences
from mnemolog.streams.text import differences as subjects
from mnemolog.streams.text.tokens import comparable_text
from tests.properties import harness
from tests.properties.faults.former import DECISIONS, QUERIES, REPLIES, STAGES, UNIT, PatchedPlaces, fault


@fault(
    "what a plan that is called off had ended stays ended",
    f"{DECISIONS}ends_taken_back.py::test_a_plan_that_is_called_off_ends_nothing",
)
def call_off() -> PatchedPlaces:
    async def unmoved(events: Sequence[Any], *_: object) -> tuple[Any, ...]:
        return tuple(events)

    return [(turn, "move_ends", unmoved), (handler, "move_ends", unmoved)]


@fault(
    "another person's late news becomes the user's history",
    f"{DECISIONS}subjects.py::test_late_news_of_another_person_is_not_the_history_of_the_user",
)
def history_of_another_person() -> PatchedPlaces:
    right = classify.classify_late

    def of_anybody(matched: MatchedFact, *rest: Any) -> Any:
        subject = matched.fact.subject
        candidates = tuple(
            known.model_copy(update={"subject": subject, "subject_relation": "same"})
            if known.status == "ended"
            else known
            for known in matched.candidates
        )
        return right(matched.model_copy(update={"candidates": candidates}), *rest)

    return [(turn, "classify_late", of_anybody)]


@fault(
    "a term passes to what is merged, and equal words with another end are skipped",
    f"{DECISIONS}ends_taken_back.py::test_a_merge_keeps_no_term_of_a_turn",
)
def inherited_terms() -> PatchedPlaces:
    right, right_classify = EventBuilder.merged_fact, classify.classify

    def merged(self: EventBuilder, llm_decision: Any, targets: Sequence[Any], **more: Any) -> Any:
        ends = (known.valid_until or known.true_to for known in targets)
        until = self.fact.valid_until or next((end for end in ends if end is not None), None)
        return right(self, llm_decision, targets, **more).model_copy(update={"valid_until": until})

    def of_any_term(matched: MatchedFact, *rest: Any, **more: Any) -> Any:
        until = matched.fact.valid_until
        candidates = tuple(known.model_copy(update={"valid_until": until}) for known in matched.candidates)
        return right_classify(matched.model_copy(update={"candidates": candidates}), *rest, **more)

    return [(EventBuilder, "merged_fact", merged), (turn, "classify", of_any_term)]


@fault(
    "short answers are dropped as echoes of recalled memory",
    f"{STAGES}recall_echoes.py::test_a_short_answer_is_news_although_the_memory_has_its_words",
)
def short_answers_are_echoes() -> PatchedPlaces:
    def dropped(facts: Sequence[ExtractedFact], turn: Any) -> Any:
        recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
        echoes = [fact for fact in facts if any(comparable_text(fact.excerpt) in text for text in recalled)]
        kept = tuple(fact for fact in facts if fact not in echoes)
        return kept, tuple(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt) for fact in echoes)

    return [(extract, "drop_recalled_echoes", dropped), (echo_filter, "drop_recalled_echoes", dropped)]


@fault(
    "confirming a held merge ends what its target has become",
    f"{DECISIONS}held_overwrites.py::test_confirming_a_held_merge_keeps_what_its_target_has_become",
)
def confirmation_follows_successors() -> PatchedPlaces:
    right = FactStore.pending_cases

    async def following(self: FactStore, fact_ids: Sequence[Any]) -> Mapping[Any, Any]:
        cases = await right(self, fact_ids)
        return {
            fact_id: replace(case, targets=(*case.targets, *case.successors), successors=())
            for fact_id, case in cases.items()
        }

    return [(FactStore, "pending_cases", following)]


@fault(
    "the words of a stale pending fact bring a second value",
    f"{DECISIONS}held_overwrites.py::test_equal_words_later_meet_what_is_active_by_then",
)
def stale_pending() -> PatchedPlaces:
    async def unclosed(self: HeldOverwriteCloser, envelope: Any, events: Sequence[Any], *_: Any) -> tuple[Any, ...]:
        del self, envelope
        return tuple(events)

    right = repetitions.confirm_pending

    def undoubted(*of: Any) -> Any:
        return right(*of).model_copy(update={"unresolved": False})

    return [
        (HeldOverwriteCloser, "__call__", unclosed),
        (turn, "_without_closed_overwrites", lambda turn, _: turn),
        (repetitions, "confirm_pending", undoubted),
    ]


@fault(
    "a late merge forgets when its parent was last said",
    f"{DECISIONS}late_statements.py::test_a_merged_fact_was_said_when_the_latest_of_its_parents_was",
)
def merge_forgets_when_it_was_said() -> PatchedPlaces:
    right = EventBuilder.merged_fact

    def forgetful(self: EventBuilder, llm_decision: Any, targets: Sequence[Any], **more: Any) -> Any:
        return right(self, llm_decision, targets, **more).model_copy(update={"said_at": None})

    return [(EventBuilder, "merged_fact", forgetful)]


@fault(
    "a late repetition revives an ended value of a multi-valued key",
    f"{DECISIONS}late_statements.py::test_equal_words_told_late_repeat_what_has_ended_and_do_not_revive_it",
)
def ended_values_of_single_keys_only() -> PatchedPlaces:
    right = turn.TurnDecider._with_ended_candidates

    async def of_single_keys(self: Any, told: Any, rules: Any) -> Any:
        found = await right(self, told, rules)
        facts = [_without_ended(one) if not rules.fills_slot(one.fact) else one for one in found.facts]
        return found.model_copy(update={"facts": tuple(facts)})

    return [(turn.TurnDecider, "_with_ended_candidates", of_single_keys)]


def _without_ended(matched: MatchedFact) -> MatchedFact:
    candidates = tuple(known for known in matched.candidates if known.status != "ended")
    return matched.model_copy(update={"candidates": candidates})


@fault(
    "the user under two names is two people",
    f"{DECISIONS}subjects.py::test_a_conversation_comes_to_the_same_values_however_the_user_is_named",
)
def subjects_by_their_words() -> PatchedPlaces:
    def compared(one: str | None, other: str | None, names: Sequence[str] = ()) -> str:
        del names
        left, right = (
            None if normalise(name or "") in ("", "the user") else normalise(name or "") for name in (one, other)
        )
        return "same" if left == right else "other"

    def unknown(*_: object) -> None:
        return None

    places = [(module, "compare_subjects", compared) for module in (subjects, differences)]
    return [*((module, "entity_relation", unknown) for module in (subject_relations, end_rules)), *places]


@fault(
    "a correction within a turn is held back",
    f"{UNIT}decide.py::test_who_corrects_themselves_within_a_turn_is_believed",
)
def corrections_in_a_turn_are_held() -> PatchedPlaces:
    return [(EventBuilder, "own_ids", frozenset())]


@fault(
    "a repetition does not reject a challenge of what was merged",
    f"{DECISIONS}held_overwrites.py::test_a_repetition_of_what_the_target_became_rejects_the_challenge",
)
def merged_facts_are_not_challenged() -> PatchedPlaces:
    query = CandidateFinder.QUERIES["find_candidates"].as_string(None)
    changed = query.replace(")) AS challenged\n)", ")) AS challenged WHERE NOT challenged.is_successor\n)", 1)
    assert changed != query
    challenged = (CandidateFinder, "QUERIES", {**CandidateFinder.QUERIES, "find_candidates": SQL(changed)})
    return [challenged, *confirmation_follows_successors()]


@fault(
    "a human's word is lost in a merge that is confirmed",
    f"{DECISIONS}ends_taken_back.py::test_a_merge_of_a_humans_word_is_a_humans_word",
)
def human_word_is_lost() -> PatchedPlaces:
    right = EventBuilder.merged_fact

    def extracted(self: EventBuilder, llm_decision: Any, targets: Sequence[Any], **more: Any) -> Any:
        return right(self, llm_decision, targets, **more).model_copy(update={"authority": "extracted"})

    return [(EventBuilder, "merged_fact", extracted)]


@fault(
    "replies that say more, or less, than the facts are accepted",
    f"{REPLIES}reply_checks.py::test_a_denial_of_just_what_is_known_takes_its_place",
)
def harmful_replies() -> PatchedPlaces:
    return [(resolve_prompt, "settled", lambda decision, *_: decision)]


@fault(
    "held overwrites that were rejected are not counted as wrong",
    f"{QUERIES}overwrite_figures.py::test_the_rates_agree_with_the_log",
)
def held_overwrites_are_not_counted() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("quality", "overwrites"):
            return query
        text = query.as_string(None).replace("AS o\nWHERE ", "AS o\nWHERE o.event <> 'fact_pending' AND ")
        assert text != query.as_string(None)
        return SQL(text)

    return [(quality, "read_query", read)]


@fault(
    "diff names a successor that is no longer believed",
    f"{QUERIES}diff.py::test_on_the_axis_of_truth_the_successor_is_one_that_is_believed",
)
def diff_names_the_disbelieved() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("history", "turning_points"):
            return query
        text = query.as_string(None).replace("WHERE NOT successors.believed", "WHERE false")
        return SQL(text.replace("FROM successors\nWHERE believed", "FROM successors", 1))

    return [(diff_query, "read_query", read)]


@fault(
    "a turn from the future makes later news history",
    f"{STAGES}extract.py::test_a_turn_ahead_of_the_broker_has_its_time_and_says_so",
)
def future_turns_are_not_capped() -> PatchedPlaces:
    right = extract.parse_source

    def uncapped(record: Any, **more: Any) -> ParsedSource:
        source = right(record, **more)
        if not source.notes:
            return source
        told = Turn.from_bytes(record.value)
        envelope = source.envelope.model_copy(update={"occurred_at": told.occurred_at})
        return ParsedSource(envelope, told)

    return [(extract, "parse_source", uncapped), (harness, "parse_source", uncapped)]


@fault(
    "a late repetition does not move the beginning",
    f"{DECISIONS}ends_taken_back.py::test_a_repetition_that_comes_late_moves_the_beginning_back",
)
def late_repeats_move_no_beginning() -> PatchedPlaces:
    return [(EventBuilder, "earlier_beginning", lambda *_: None)]


@fault(
    "an older statement ends a newer pending one",
    f"{DECISIONS}held_overwrites.py::test_an_older_statement_does_not_replace_a_newer_pending_one",
)
def older_ends_newer_pending() -> PatchedPlaces:
    return [(decide, "_is_newer_pending", lambda *_: False)]


@fault(
    "an end on the day of the beginning is refused",
    f"{REPLIES}resolve_parser.py::test_an_end_on_the_day_of_the_beginning_is_accepted_as_a_date",
)
def ends_of_the_same_day() -> PatchedPlaces:
    right = reply_checks._is_possible_end

    def strict(decision: Any, conflict: Any, said_at: Any) -> bool:
        known = [one for _, one in reply_checks.targets_of(decision, conflict)]
        return right(decision, conflict, said_at) and not any(decision.ended_at < one.true_from for one in known)

    return [(reply_checks, "_is_possible_end", strict)]
