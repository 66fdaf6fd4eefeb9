"""Faults of decisions that a review put in or found: each as a rule would be if somebody forgot a part of it."""

from collections.abc import Callable
from typing import Any

from psycopg.sql import SQL

from mnemolog.projections.queries import facts as profiles
from mnemolog.schemas.facts import Original
from mnemolog.streams import ends
from mnemolog.streams.llm import evidence, shared_prompt
from mnemolog.streams.resolution import classify, decide, events, guards, verdicts
from mnemolog.streams.resolution.events import EventBuilder
from mnemolog.streams.stages import promote
from mnemolog.streams.text import differences
from mnemolog.streams.text.tokens import words_of
from tests.properties.faults.former import DECISIONS, QUERIES, UNIT, PatchedPlaces, fault


def _cleared(targets: Any) -> Any:
    return guards.Cleared((known.fact_id for known in targets), key=guards._KEY)


def _unguarded(guard: str, *verdicts: str) -> list[tuple[Any, str, Any]]:
    def clear(verdict: Any, targets: Any, *rest: Any, **more: Any) -> Any:
        found = guards.clear(verdict, targets, *rest, **more)
        return _cleared(targets) if found == guard and verdict in verdicts else found

    return [(module, "clear", clear) for module in (events, decide)]


@fault(
    "an end of a high-risk fact needs no certain statement",
    f"{DECISIONS}held_overwrites.py::test_confirmed_after_a_split_it_ends_no_fact_of_the_other",
)
def high_risk_ends_are_not_guarded() -> PatchedPlaces:
    return _unguarded("high_risk", "RETRACT")


@fault("a stay for a term ends a lasting value", f"{UNIT}repetitions.py::test_a_term_ends_no_lasting_value")
def stays_end_lasting_values() -> PatchedPlaces:
    return _unguarded("lasting_value", "REPLACE")


@fault(
    "an end of one person's fact ends another's",
    f"{UNIT}decide.py::test_what_is_said_of_one_neither_repeats_nor_ends_a_fact_about_another",
)
def an_end_of_one_ends_another() -> PatchedPlaces:
    of_one = verdicts._OF_ONE_SUBJECT - {"RETRACT"}
    return [(verdicts, "_OF_ONE_SUBJECT", of_one), *_unguarded("other_subject", "RETRACT")]


@fault(
    "an earlier statement, or a resend, confirms what waits",
    f"{UNIT}overwrites.py::test_an_earlier_word_does_not_confirm_what_was_held_back_later",
)
def anything_confirms() -> PatchedPlaces:
    def clear_held(case: Any, *_: Any) -> Any:
        return "human_word" if case.needs_human else guards.Cleared(case.targets, key=guards._KEY)

    return [(module, "clear_held", clear_held) for module in (events, verdicts) if hasattr(module, "clear_held")]


@fault(
    "a turn that is sent again confirms what waits", f"{UNIT}overwrites.py::test_a_resend_confirms_nothing_that_is_held"
)
def a_resend_confirms() -> PatchedPlaces:
    return [(module, "is_resend", lambda *_: False) for module in (events, guards)]


@fault(
    "what is merged loses its announced end",
    f"{DECISIONS}plans_called_off.py::test_an_announced_end_goes_on_in_what_is_merged",
)
def merges_lose_announced_ends() -> PatchedPlaces:
    return [(ends._CommitEnds, "_inherited_ends", lambda *_: iter(()))]


@fault(
    "a human's word is an ordinary one once it is promoted",
    f"{DECISIONS}promotions.py::test_a_human_s_word_of_a_run_is_guarded_from_another_turn_of_the_run",
)
def a_promoted_human_word_is_ordinary() -> PatchedPlaces:
    def ordinary(**given: Any) -> Original:
        return Original(**given | {"authority": "extracted"})

    return [(promote, "Original", ordinary)]


@fault(
    "a merged fact fills the slot of the statement alone",
    f"{UNIT}decide.py::test_a_merged_fact_is_what_its_parents_are_together",
)
def a_merge_has_the_slot_of_the_statement() -> PatchedPlaces:
    right: Callable[..., Any] = EventBuilder.merged_fact

    def merged(self: EventBuilder, *given: Any, **more: Any) -> Any:
        slot = {name: getattr(self.fact, name) for name in ("key", "value", "single_valued", "category")}
        return right(self, *given, **more).model_copy(update=slot)

    return [(EventBuilder, "merged_fact", merged)]


@fault(
    "a turn confirms what it has said itself",
    f"{UNIT}decide.py::test_a_later_fact_is_decided_by_what_became_of_an_earlier_one",
)
def a_turn_confirms_twice() -> PatchedPlaces:
    right = classify.TurnState.apply

    def apply(self: classify.TurnState, *given: Any, **more: Any) -> None:
        right(self, *given, **more)
        self.confirmed_ids.clear()

    return [(classify.TurnState, "apply", apply)]


@fault("statements of ends end nothing", f"{UNIT}decide.py::test_a_verdict_is_applied_to_all_its_targets")
def ends_end_nothing() -> PatchedPlaces:
    right = verdicts._apply_llm_decision

    def beside(builder: EventBuilder, decision: Any) -> Any:
        if decision.reply.verdict in ("RETRACT", "EXPIRE"):
            return (builder.added(builder.decision("model", decision.reply.reason, decision)),)
        return right(builder, decision)

    return [(verdicts, "_apply_llm_decision", beside), (decide, "guarded_ends", lambda *_: ([], []))]


@fault(
    "an end told again in equal words ends nothing",
    f"{UNIT}repetitions.py::test_an_end_that_is_told_again_may_end_what_has_begun_since",
)
def an_event_is_a_sentence() -> PatchedPlaces:
    def may_repeat(matched: Any, known: Any, rules: Any) -> bool:
        same_terms = differences.same_terms(matched.fact, known)
        return same_terms and not differences.subjects_differ(matched.fact, known, rules.user_names)

    return [(classify, "may_repeat", may_repeat)]


@fault(
    "what a repetition says beyond its words is dropped",
    f"{UNIT}repetitions.py::test_a_human_word_vouches_for_the_known_fact",
)
def a_repetition_brings_nothing() -> PatchedPlaces:
    return [(events, "says_more", lambda *_: False)]


@fault(
    "turkey and Turkey are one", f"{UNIT}classify.py::test_words_that_only_their_capitals_tell_apart_are_no_duplicate"
)
def capitals_of_names_do_not_count() -> PatchedPlaces:
    def equivalent(one: str, other: str) -> bool:
        return words_of(one) == words_of(other)

    return [(classify, "texts_equivalent", equivalent)]


@fault(
    "an end of one person that was said before ends another's later value",
    f"{UNIT}clearance.py::test_each_guard_stands_on_each_way",
)
def later_ends_look_at_no_subject() -> PatchedPlaces:
    related = (decide, "relate_subjects", lambda *_: "same")
    return [related, *(place for place in _unguarded("other_subject", "RETRACT", "EXPIRE") if place[0] is decide)]


@fault(
    "what was taken back is shown in profiles",
    f"{QUERIES}profiles.py::test_a_published_profile_has_what_was_seen_when_it_was_published_as_far_as_it_is_still_so",
)
def profiles_show_what_was_taken_back() -> PatchedPlaces:
    published = profiles._PROFILES["published"].as_string(None)
    all_told = """(
        SELECT coalesce(
            jsonb_agg(jsonb_build_object('text', f.text, 'fact_id', f.fact_id, 'old', '[]'::jsonb)), '[]'::jsonb
        )
        FROM facts AS f WHERE f.user_id = %(user_id)s
    ) AS recent_changes,"""
    changed = SQL(published.replace("recent_changes,", all_told, 1))
    return [(profiles, "_PROFILES", {**profiles._PROFILES, "published": changed})]


@fault(
    "of two equal answers under one number one turn loses its fact",
    "tests/properties/test_properties.py::test_equal_answers_under_one_number_are_told_apart",
    found_by="shared",
)
def equal_answers_are_of_one_turn() -> PatchedPlaces:
    right = shared_prompt._move_facts

    def moved(parts: Any, tasks: Any) -> Any:
        return [part if found is None else found for part, found in zip(parts, right(parts, tasks), strict=True)]

    return [(shared_prompt, "_move_facts", moved)]


@fault(
    "what is said in a part of a word is said",
    found_by="shared",
)
def parts_of_words_are_words() -> PatchedPlaces:
    return [(evidence, "has_words", lambda text, words: words.casefold() in text.casefold())]


@fault(
    "an excerpt is judged without its sentence",
    found_by="shared",
)
def excerpts_have_no_sentence() -> PatchedPlaces:
    return [(evidence._EvidenceMessage, "sentences", lambda _, excerpt: excerpt)]
