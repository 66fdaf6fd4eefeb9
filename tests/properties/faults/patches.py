"""How former faults are put back by hand: each function names what is replaced, and what it was while it was faulty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg.sql import SQL

from mnemolog.projections.queries import diff as diff_query
from mnemolog.projections.queries import facts as profiles
from mnemolog.projections.queries import quality
from mnemolog.projections.queries.scope_filter import read_query
from mnemolog.projections.stores.facts import CandidateFinder, FactStore
from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import ExtractedFact, MatchedFact, Original
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.stored import PromotableFacts
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams import ends
from mnemolog.streams.commands import handler
from mnemolog.streams.entities import subjects
from mnemolog.streams.llm import evidence, reply_checks, resolve_prompt, shared_prompt
from mnemolog.streams.resolution import classify, decide, events, guards, turn, verdicts
from mnemolog.streams.resolution.events import EventBuilder
from mnemolog.streams.resolution.verdicts import HeldOverwriteCloser
from mnemolog.streams.runtime import decision_stages
from mnemolog.streams.stages import extract, promote
from mnemolog.streams.stages.extract import ParsedSource
from mnemolog.streams.text import differences
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.tokens import comparable_text, words_of
from tests.properties.faults.former import PatchedPlaces, fault


def _merged_with(fields: Callable[[EventBuilder], Mapping[str, Any]]) -> PatchedPlaces:
    """What is merged has these fields, whatever its parents have."""
    right = EventBuilder.merged_fact

    def merged(self: EventBuilder, *given: Any, **more: Any) -> Any:
        return right(self, *given, **more).model_copy(update=dict(fields(self)))

    return [(EventBuilder, "merged_fact", merged)]


@fault("what a plan that is called off had ended stays ended")
def call_off() -> PatchedPlaces:
    async def unmoved(made: Sequence[Any], *_: object) -> tuple[Any, ...]:
        return tuple(made)

    return [(turn, "move_ends", unmoved), (handler, "move_ends", unmoved)]


@fault("another person's late news becomes the user's history")
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


@fault("a term passes to what is merged, and equal words with another end are skipped")
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


@fault("short answers are dropped as echoes of recalled memory")
def short_answers_are_echoes() -> PatchedPlaces:
    def dropped(facts: Sequence[ExtractedFact], turn: Any) -> Any:
        recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
        echoes = [fact for fact in facts if any(comparable_text(fact.excerpt) in text for text in recalled)]
        kept = tuple(fact for fact in facts if fact not in echoes)
        return kept, tuple(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt) for fact in echoes)

    return [(extract, "drop_recalled_echoes", dropped)]


@fault("confirming a held merge ends what its target has become")
def confirmation_follows_successors() -> PatchedPlaces:
    right = FactStore.pending_cases

    async def following(self: FactStore, fact_ids: Sequence[Any]) -> Mapping[Any, Any]:
        cases = await right(self, fact_ids)
        return {
            fact_id: replace(case, targets=(*case.targets, *case.successors), successors=())
            for fact_id, case in cases.items()
        }

    return [(FactStore, "pending_cases", following)]


@fault("the words of a stale pending fact bring a second value")
def stale_pending() -> PatchedPlaces:
    async def unclosed(self: HeldOverwriteCloser, _envelope: Any, made: Sequence[Any], *_: Any) -> tuple[Any, ...]:
        del self
        return tuple(made)

    right = events.confirm_pending

    def undoubted(*of: Any) -> Any:
        return right(*of).model_copy(update={"unresolved": False})

    return [
        (HeldOverwriteCloser, "__call__", unclosed),
        (turn, "without_candidates", lambda turn, _: turn),
        (events, "confirm_pending", undoubted),
    ]


@fault("a late merge forgets when its parent was last said")
def merge_forgets_when_it_was_said() -> PatchedPlaces:
    return _merged_with(lambda _: {"said_at": None})


@fault("a late repetition revives an ended value of a multi-valued key")
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


@fault("the user under two names is two people")
def subjects_by_their_words() -> PatchedPlaces:
    def compared(one: str | None, other: str | None, names: Sequence[str] = ()) -> str:
        del names
        left, right = (
            None if normalise(name or "") in ("", "the user") else normalise(name or "") for name in (one, other)
        )
        return "same" if left == right else "other"

    def unknown(*_: object) -> None:
        return None

    places = [(module, "entity_relation", unknown) for module in (subjects,)]
    return [(differences, "compare_subjects", compared), *places]


@fault("a correction within a turn is held back")
def corrections_in_a_turn_are_held() -> PatchedPlaces:
    return [(EventBuilder, "own_ids", frozenset())]


@fault("a repetition does not reject a challenge of what was merged")
def merged_facts_are_not_challenged() -> PatchedPlaces:
    query = CandidateFinder.QUERIES["find_candidates"].as_string(None)
    changed = query.replace(")) AS challenged\n)", ")) AS challenged WHERE NOT challenged.is_successor\n)", 1)
    assert changed != query
    challenged = (CandidateFinder, "QUERIES", {**CandidateFinder.QUERIES, "find_candidates": SQL(changed)})
    return [challenged, *confirmation_follows_successors()]


@fault("a human's word is lost in a merge that is confirmed")
def human_word_is_lost() -> PatchedPlaces:
    return _merged_with(lambda _: {"authority": "extracted"})


@fault("replies that say more, or less, than the facts are accepted")
def harmful_replies() -> PatchedPlaces:
    return [(resolve_prompt, "settled", lambda decision, *_: decision)]


@fault("held overwrites that were rejected are not counted as wrong")
def held_overwrites_are_not_counted() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("quality", "overwrites"):
            return query
        text = query.as_string(None).replace("AS o\nWHERE ", "AS o\nWHERE o.event <> 'fact_pending' AND ")
        assert text != query.as_string(None)
        return SQL(text)

    return [(quality, "read_query", read)]


@fault("diff names a successor that is no longer believed")
def diff_names_the_disbelieved() -> PatchedPlaces:
    def read(file: str, name: str, **more: Any) -> Any:
        query = read_query(file, name, **more)
        if (file, name) != ("history", "turning_points"):
            return query
        text = query.as_string(None).replace("WHERE NOT successors.believed", "WHERE false")
        return SQL(text.replace("FROM successors\nWHERE believed", "FROM successors", 1))

    return [(diff_query, "read_query", read)]


@fault("a turn from the future makes later news history")
def future_turns_are_not_capped() -> PatchedPlaces:
    right = extract.parse_source

    def uncapped(record: Any, **more: Any) -> ParsedSource:
        source = right(record, **more)
        if not source.notes:
            return source
        told = Turn.from_bytes(record.value)
        envelope = source.envelope.model_copy(update={"occurred_at": told.occurred_at})
        return ParsedSource(envelope, told)

    return [(extract, "parse_source", uncapped), (decision_stages, "parse_source", uncapped)]


@fault("a late repetition does not move the beginning")
def late_repeats_move_no_beginning() -> PatchedPlaces:
    return [(EventBuilder, "earlier_beginning", lambda *_: None)]


@fault("an older statement ends a newer pending one")
def older_ends_newer_pending() -> PatchedPlaces:
    def late(verdict: Any, known: Sequence[Any], *rest: Any) -> bool:
        return known[0].status != "pending_confirmation" and guards.is_late_news(verdict, known, *rest)

    return [(verdicts, "is_late_news", late)]


@fault("an end on the day of the beginning is refused")
def ends_of_the_same_day() -> PatchedPlaces:
    right = reply_checks._is_possible_end

    def strict(decision: Any, conflict: Any, said_at: Any) -> bool:
        known = [one for _, one in reply_checks.targets_of(decision, conflict)]
        return right(decision, conflict, said_at) and not any(decision.ended_at < one.true_from for one in known)

    return [(reply_checks, "_is_possible_end", strict)]


def _cleared(targets: Any) -> Any:
    return guards.Cleared((known.fact_id for known in targets), key=guards._KEY)


def _unguarded(guard: str, *verdicts: str) -> list[tuple[Any, str, Any]]:
    def clear(verdict: Any, targets: Any, *rest: Any, **more: Any) -> Any:
        found = guards.clear(verdict, targets, *rest, **more)
        return _cleared(targets) if found == guard and verdict in verdicts else found

    return [(module, "clear", clear) for module in (events, decide)]


@fault("an end of a high-risk fact needs no certain statement")
def high_risk_ends_are_not_guarded() -> PatchedPlaces:
    return _unguarded("high_risk", "RETRACT")


@fault("a stay for a term ends a lasting value")
def stays_end_lasting_values() -> PatchedPlaces:
    return _unguarded("lasting_value", "REPLACE")


@fault("an end of one person's fact ends another's")
def an_end_of_one_ends_another() -> PatchedPlaces:
    of_one = verdicts._OF_ONE_SUBJECT - {"RETRACT"}
    return [(verdicts, "_OF_ONE_SUBJECT", of_one), *_unguarded("other_subject", "RETRACT")]


@fault("an earlier statement, or a resend, confirms what waits")
def anything_confirms() -> PatchedPlaces:
    def clear_held(case: Any, *_: Any) -> Any:
        return "human_word" if case.needs_human else guards.Cleared(case.targets, key=guards._KEY)

    return [(module, "clear_held", clear_held) for module in (events, verdicts) if hasattr(module, "clear_held")]


@fault("a turn that is sent again confirms what waits")
def a_resend_confirms() -> PatchedPlaces:
    return [(module, "is_resend", lambda *_: False) for module in (events, guards)]


@fault("what is merged loses its announced end")
def merges_lose_announced_ends() -> PatchedPlaces:
    return [(ends._CommitEnds, "_inherited_ends", lambda *_: iter(()))]


@fault("a human's word is an ordinary one once it is promoted")
def a_promoted_human_word_is_ordinary() -> PatchedPlaces:
    def ordinary(**given: Any) -> Original:
        return Original(**given | {"authority": "extracted"})

    return [(promote, "Original", ordinary)]


@fault("a fact is promoted as it was first said")
def promoted_as_first_said() -> PatchedPlaces:
    right = promote.statements_of_one_commit

    def first_said(found: PromotableFacts) -> list[MatchedFact]:
        return right(replace(found, facts=tuple(replace(one, said_at=one.stored.true_from) for one in found.facts)))

    return [(promote, "statements_of_one_commit", first_said)]


@fault("what a late turn has corrected itself held")
def late_slips_hold() -> PatchedPlaces:
    right = ends._CommitEnds._with_end_of_older

    def of_older_alone(self: Any, event: Any) -> Any:
        made, own = right(self, event), len(event.moved_ends)
        return (
            made
            if made.moved_ends == event.moved_ends
            else made.model_copy(update={"moved_ends": made.moved_ends[own:]})
        )

    return [(ends._CommitEnds, "_with_end_of_older", of_older_alone)]


@fault("a merged fact fills the slot of the statement alone")
def a_merge_has_the_slot_of_the_statement() -> PatchedPlaces:
    slot = ("key", "value", "single_valued", "category")
    return _merged_with(lambda builder: {name: getattr(builder.fact, name) for name in slot})


@fault("a turn confirms what it has said itself")
def a_turn_confirms_twice() -> PatchedPlaces:
    right = classify.TurnState.apply

    def apply(self: classify.TurnState, *given: Any, **more: Any) -> None:
        right(self, *given, **more)
        self.confirmed_ids.clear()

    return [(classify.TurnState, "apply", apply)]


@fault("statements of ends end nothing")
def ends_end_nothing() -> PatchedPlaces:
    right = verdicts._apply_llm_decision

    def beside(builder: EventBuilder, decision: Any) -> Any:
        if decision.reply.verdict in ("RETRACT", "EXPIRE"):
            return (builder.added(builder.decision("model", decision.reply.reason, decision)),)
        return right(builder, decision)

    return [(verdicts, "_apply_llm_decision", beside), (decide, "guarded_ends", lambda *_: ([], []))]


@fault("an end told again in equal words ends nothing")
def an_event_is_a_sentence() -> PatchedPlaces:
    return [(classify, "tells_again", lambda fact, known, *_: differences.same_terms(fact, known))]


@fault("what a repetition says beyond its words is dropped")
def a_repetition_brings_nothing() -> PatchedPlaces:
    return [(events, "says_more", lambda *_: False)]


@fault("turkey and Turkey are one")
def capitals_of_names_do_not_count() -> PatchedPlaces:
    def equivalent(one: str, other: str) -> bool:
        return words_of(one) == words_of(other)

    return [(classify, "texts_equivalent", equivalent)]


@fault("an end of one person that was said before ends another's later value")
def later_ends_look_at_no_subject() -> PatchedPlaces:
    related = (decide, "relate_subjects", lambda *_: "same")
    return [related, *(place for place in _unguarded("other_subject", "RETRACT", "EXPIRE") if place[0] is decide)]


@fault("what was taken back is shown in profiles")
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


@fault("of two equal answers under one number one turn loses its fact", found_by="shared")
def equal_answers_are_of_one_turn() -> PatchedPlaces:
    right = shared_prompt._move_facts

    def moved(parts: Any, tasks: Any) -> Any:
        return [part if found is None else found for part, found in zip(parts, right(parts, tasks), strict=True)]

    return [(shared_prompt, "_move_facts", moved)]


@fault("what is said in a part of a word is said", found_by="shared")
def parts_of_words_are_words() -> PatchedPlaces:
    return [(evidence, "_is_within", lambda words, text: words in text)]


@fault("an excerpt is judged without its sentence", found_by="shared")
def excerpts_have_no_sentence() -> PatchedPlaces:
    right = evidence.Source.__init__

    def bare(self: evidence.Source, turn: Any, said: Any, excerpt: str) -> None:
        right(self, turn, said, excerpt)
        self.sentence, self.near, self.reading = excerpt, read(excerpt), read(excerpt)

    return [(evidence.Source, "__init__", bare)]


@fault("what was said before a turn is said in it", found_by="shared")
def earlier_turns_are_evidence() -> PatchedPlaces:
    right = evidence.with_questions

    def with_earlier(turn: Any, earlier: Sequence[Any]) -> Any:
        yield from ((Message(role="user", content=one.content), "") for one in earlier if one.role == "user")
        yield from right(turn, earlier)

    return [(evidence, "with_questions", with_earlier)]


@fault("a question of an earlier turn explains no answer", found_by="shared")
def earlier_turns_ask_nothing() -> PatchedPlaces:
    right = evidence.with_questions
    return [(evidence, "with_questions", lambda turn, _: right(turn, ()))]
