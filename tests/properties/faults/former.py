"""Faults that the project once had: each is found by one of the properties, or the table says so."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final
from unittest.mock import patch

from tests.properties.faults import decision_patches, entity_patches, patches
from tests.properties.faults.patches import PatchedPlaces

DECISIONS: Final = "tests/integration/streams/resolution/test_"
QUERIES: Final = "tests/integration/projections/queries/test_"
UNIT: Final = "tests/unit/streams/resolution/test_"
STAGES: Final = "tests/unit/streams/stages/test_"
ENTITIES: Final = "tests/integration/streams/entities/test_"
REPLIES: Final = "tests/unit/streams/llm/test_"


@dataclass(frozen=True)
class Fault:
    """A fault by its number in the table, in words, the property that is tried first, and how to put it back.

    `example` is a test that fails while it is back: so it is known that it is.
    """

    number: int
    what: str
    found_by: str
    places: Callable[[], PatchedPlaces]
    example: str

    @contextmanager
    def put_back(self) -> Iterator[None]:
        with ExitStack() as stack:
            for where, name, faulty in self.places():
                stack.enter_context(patch.object(where, name, faulty))
            yield


FAULTS: Final = (
    Fault(
        1,
        "what a plan that is called off had ended stays ended",
        "vanish",
        patches.call_off,
        f"{DECISIONS}ends_taken_back.py::test_a_plan_that_is_called_off_ends_nothing",
    ),
    Fault(
        2,
        "another person's late news becomes the user's history",
        "vanish",
        patches.history_of_another_person,
        f"{DECISIONS}subjects.py::test_late_news_of_another_person_is_not_the_history_of_the_user",
    ),
    Fault(
        3,
        "a term passes to what is merged, and equal words with another end are skipped",
        "vanish",
        patches.inherited_terms,
        f"{DECISIONS}ends_taken_back.py::test_a_merge_keeps_no_term_of_a_turn",
    ),
    Fault(
        4,
        "short answers are dropped as echoes of recalled memory",
        "vanish",
        patches.short_answers_are_echoes,
        f"{STAGES}recall_echoes.py::test_a_short_answer_is_news_although_the_memory_has_its_words",
    ),
    Fault(
        5,
        "confirming a held merge ends what its target has become",
        "vanish",
        patches.confirmation_follows_successors,
        f"{DECISIONS}held_overwrites.py::test_confirming_a_held_merge_keeps_what_its_target_has_become",
    ),
    Fault(
        6,
        "resolve without targets ends everything that was near",
        "vanish",
        patches.resolve_ends_all_that_was_near,
        f"{DECISIONS}shown_facts.py::test_resolve_without_targets_concerns_what_the_model_was_shown",
    ),
    Fault(
        7,
        "the words of a stale pending fact bring a second value",
        "readers",
        patches.stale_pending,
        f"{DECISIONS}held_overwrites.py::test_equal_words_later_meet_what_is_active_by_then",
    ),
    Fault(
        8,
        "a late merge forgets when its parent was last said",
        "facts",
        patches.merge_forgets_when_it_was_said,
        f"{DECISIONS}late_statements.py::test_a_merged_fact_was_said_when_the_latest_of_its_parents_was",
    ),
    Fault(
        9,
        "a late repetition revives an ended value of a multi-valued key",
        "facts",
        patches.ended_values_of_single_keys_only,
        f"{DECISIONS}late_statements.py::test_equal_words_told_late_repeat_what_has_ended_and_do_not_revive_it",
    ),
    Fault(
        10,
        "the user under two names is two people",
        "readers",
        patches.subjects_by_their_words,
        f"{DECISIONS}subjects.py::test_a_conversation_comes_to_the_same_values_however_the_user_is_named",
    ),
    Fault(
        11,
        "a correction within a turn is held back",
        "vanish",
        patches.corrections_in_a_turn_are_held,
        f"{DECISIONS}self_correction.py::test_the_correction_holds_and_what_was_corrected_never_did",
    ),
    Fault(
        12,
        "a repetition does not reject a challenge of what was merged",
        "vanish",
        patches.merged_facts_are_not_challenged,
        f"{DECISIONS}held_overwrites.py::test_a_repetition_of_what_the_target_became_rejects_the_challenge",
    ),
    Fault(
        13,
        "a human's word is lost in a merge that is confirmed",
        "vanish",
        patches.human_word_is_lost,
        f"{DECISIONS}ends_taken_back.py::test_a_merge_of_a_humans_word_is_a_humans_word",
    ),
    Fault(
        14,
        "replies that say more, or less, than the facts are accepted",
        "vanish",
        patches.harmful_replies,
        f"{REPLIES}reply_checks.py::test_a_denial_of_just_what_is_known_takes_its_place",
    ),
    Fault(
        15,
        "held overwrites that were rejected are not counted as wrong",
        "readers",
        patches.held_overwrites_are_not_counted,
        f"{QUERIES}overwrite_figures.py::test_the_rates_agree_with_the_log",
    ),
    Fault(
        16,
        "what is settled later is told as the words of who spoke then",
        "readers",
        patches.later_question_takes_the_words,
        f"{DECISIONS}shown_facts.py::test_a_conflict_that_is_settled_later_keeps_whose_words_it_is_about",
    ),
    Fault(
        17,
        "diff names a successor that is no longer believed",
        "readers",
        patches.diff_names_the_disbelieved,
        f"{QUERIES}diff.py::test_on_the_axis_of_truth_the_successor_is_one_that_is_believed",
    ),
    Fault(
        18,
        "a turn from the future makes later news history",
        "vanish",
        patches.future_turns_are_not_capped,
        f"{STAGES}extract.py::test_a_turn_ahead_of_the_broker_has_its_time_and_says_so",
    ),
    Fault(
        19,
        "a late repetition does not move the beginning",
        "facts",
        patches.late_repeats_move_no_beginning,
        f"{DECISIONS}ends_taken_back.py::test_a_repetition_that_comes_late_moves_the_beginning_back",
    ),
    Fault(
        20,
        "an older statement ends a newer pending one",
        "vanish",
        patches.older_ends_newer_pending,
        f"{DECISIONS}held_overwrites.py::test_an_older_statement_does_not_replace_a_newer_pending_one",
    ),
    Fault(
        21,
        "an end on the day of the beginning is refused",
        "readers",
        patches.ends_of_the_same_day,
        f"{REPLIES}resolve_parser.py::test_an_end_on_the_day_of_the_beginning_is_accepted_as_a_date",
    ),
    Fault(
        22,
        "a rejected merge is proposed again when its turn is undone",
        "entities",
        entity_patches.rejections_are_forgotten,
        f"{ENTITIES}pending_merges.py::test_what_a_person_rejected_is_not_proposed_again_where_the_turn_of_it_is_undone",
    ),
    Fault(
        23,
        "what was decided about what an undone split had made stays",
        "entities",
        entity_patches.undone_splits_leave_their_merges,
        f"{ENTITIES}entity_commands.py::test_what_later_turns_say_of_a_new_entity_goes_back_with_the_undo_of_the_split",
    ),
    Fault(
        24,
        "a name that only a deleted fact told is shown",
        "entities",
        entity_patches.names_outlive_deleted_facts,
        f"{ENTITIES}deleted_names.py::test_a_name_goes_with_the_only_fact_that_tells_it",
    ),
    Fault(
        25,
        "a summary outlives a fact of it that was taken back",
        "entities",
        entity_patches.summaries_outlive_their_facts,
        "tests/integration/streams/summaries/test_summaries.py::"
        "test_a_fact_that_is_taken_back_does_not_live_on_in_a_summary",
    ),
    Fault(
        26,
        "an entity stays when the turns that named it are undone",
        "entities",
        entity_patches.undone_turns_leave_their_entities,
        f"{ENTITIES}entity_commands.py::test_an_undone_turn_takes_back_what_only_it_told",
    ),
    Fault(
        27,
        "a command changes an entity of another scope",
        "entities",
        entity_patches.commands_reach_other_scopes,
        f"{ENTITIES}entity_commands.py::test_what_cannot_be_done_is_refused_with_its_reason",
    ),
    Fault(
        28,
        "two whom a person has split are proposed as one",
        "entities",
        entity_patches.splits_are_forgotten,
        f"{ENTITIES}pending_merges.py::test_two_whom_a_person_has_split_are_not_proposed_as_one",
    ),
    Fault(
        29,
        "a name of what was merged into a forgotten entity means that one",
        "entities",
        entity_patches.merged_names_outlive_forgotten_entities,
        f"{ENTITIES}entity_commands.py::test_what_was_merged_into_a_forgotten_entity_is_forgotten_with_it",
    ),
    Fault(
        30,
        "an end of a high-risk fact needs no certain statement",
        "facts",
        decision_patches.high_risk_ends_are_not_guarded,
        f"{DECISIONS}held_overwrites.py::test_confirmed_after_a_split_it_ends_no_fact_of_the_other",
    ),
    Fault(
        31,
        "an end of one person's fact ends another's",
        "facts",
        decision_patches.an_end_of_one_ends_another,
        f"{UNIT}decide.py::test_what_is_said_of_one_neither_repeats_nor_ends_a_fact_about_another",
    ),
    Fault(
        32,
        "an earlier statement, or a resend, confirms what waits",
        "facts",
        decision_patches.anything_confirms,
        f"{UNIT}overwrites.py::test_an_earlier_word_does_not_confirm_what_was_held_back_later",
    ),
    Fault(
        33,
        "what is merged loses its announced end",
        "facts",
        decision_patches.merges_lose_announced_ends,
        f"{DECISIONS}plans_called_off.py::test_an_announced_end_goes_on_in_what_is_merged",
    ),
    Fault(
        34,
        "a human's word is an ordinary one once it is promoted",
        "facts",
        decision_patches.a_promoted_human_word_is_ordinary,
        f"{DECISIONS}promotions.py::test_a_human_s_word_of_a_run_is_guarded_from_another_turn_of_the_run",
    ),
    Fault(
        35,
        "a merged fact fills the slot of the statement alone",
        "facts",
        decision_patches.a_merge_has_the_slot_of_the_statement,
        f"{UNIT}decide.py::test_a_merged_fact_is_what_its_parents_are_together",
    ),
    Fault(
        36,
        "a turn confirms what it has said itself",
        "facts",
        decision_patches.a_turn_confirms_twice,
        f"{UNIT}decide.py::test_a_later_fact_is_decided_by_what_became_of_an_earlier_one",
    ),
    Fault(
        37,
        "statements of ends end nothing",
        "facts",
        decision_patches.ends_end_nothing,
        f"{UNIT}decide.py::test_a_verdict_is_applied_to_all_its_targets",
    ),
    Fault(
        38,
        "an end told again in equal words ends nothing",
        "facts",
        decision_patches.an_event_is_a_sentence,
        f"{UNIT}repetitions.py::test_an_end_that_is_told_again_may_end_what_has_begun_since",
    ),
    Fault(
        39,
        "what a repetition says beyond its words is dropped",
        "facts",
        decision_patches.a_repetition_brings_nothing,
        f"{UNIT}repetitions.py::test_a_human_word_vouches_for_the_known_fact",
    ),
    Fault(
        40,
        "a turn that is sent again confirms what waits",
        "facts",
        decision_patches.a_resend_confirms,
        f"{UNIT}overwrites.py::test_a_resend_confirms_nothing_that_is_held",
    ),
    Fault(
        41,
        "a stay for a term ends a lasting value",
        "facts",
        decision_patches.stays_end_lasting_values,
        f"{UNIT}repetitions.py::test_a_term_ends_no_lasting_value",
    ),
    Fault(
        42,
        "turkey and Turkey are one",
        "facts",
        decision_patches.capitals_of_names_do_not_count,
        f"{UNIT}classify.py::test_words_that_only_their_capitals_tell_apart_are_no_duplicate",
    ),
)
