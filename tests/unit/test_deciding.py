from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from schemas import ids
from schemas.events import FactAdded, FactConfirmed, FactContradicted, FactReplaced, FactSkipped, FactsMerged
from schemas.facts import Candidate, ExtractedFact, MatchedFact, content_hash
from schemas.provenance import Thresholds
from schemas.vector import Vector
from streams.prompts.resolve import Action, Verdict
from streams.stages.deciding import Circumstances, Contested, Duplicate, Fresh, Judgement, events, weigh

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAST_YEAR = datetime(2025, 3, 1, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(embedding_model="m", duplicate=0.98, raw_duplicate=0.95, conflict=0.65, near_duplicate=0.85)
CIRCUMSTANCES = Circumstances(
    owner="default/mira", source_id="t1", occurred_at=NOON, speaker="Mira", thresholds=THRESHOLDS
)
VECTOR = Vector.of("m", [1.0, 0.0])


def known(similarity: float, text: str = "Mira lives in Berlin.", fact_id: UUID | None = None) -> Candidate:
    return Candidate(
        fact_id=fact_id or uuid4(),
        similarity=similarity,
        text=text,
        content_hash=content_hash(text),
        confidence=0.8,
        true_from=LAST_YEAR,
    )


def matched(*candidates: Candidate, text: str = "Mira lives in Munich.", **fields: Any) -> MatchedFact:
    fact = ExtractedFact(text=text, search_text=text, excerpt=text, **fields)
    return MatchedFact(fact=fact, vector=VECTOR, candidates=candidates)


def judged(action: Action, *targets: Candidate, **fields: Any) -> Judgement:
    verdict = Verdict(
        number=1,
        action=action,
        targets=tuple(range(1, len(targets) + 1)),
        text=fields.pop("text", None),
        search_text=None,
        reason="because",
    )
    return Judgement(verdict=verdict, targets=targets, model="judge", prompt_version="resolve-1", **fields)


def one_event(fact: MatchedFact, judgement: Judgement) -> Any:
    weight = Contested(fact, fact.candidates)
    (event,) = events([weight], {0: judgement}, CIRCUMSTANCES)
    return event


@pytest.mark.parametrize(
    ("similarity", "infer", "band"),
    [
        (0.981, True, Duplicate),
        (0.98, True, Contested),
        (0.65, True, Contested),
        (0.649, True, Fresh),
        (0.951, False, Duplicate),
        (0.95, False, Fresh),
        (0.70, False, Fresh),
    ],
)
def test_similarity_sorts_a_fact_into_its_band(similarity: float, *, infer: bool, band: type) -> None:
    assert isinstance(weigh(matched(known(similarity)), THRESHOLDS, infer=infer), band)


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("Mira owns 3 cats.", "Mira owns 2 cats."),
        ("The train leaves at 17:45.", "The train leaves at 17:15."),
        ("x" * 1001, "x" * 1000 + "y"),
    ],
)
def test_a_vector_vouches_for_no_other_number_and_for_no_end_of_a_long_text(said: str, before: str) -> None:
    fact = matched(known(0.999, before), known(0.7), text=said)
    assert isinstance(weigh(fact, THRESHOLDS, infer=True), Contested)
    assert isinstance(weigh(fact, THRESHOLDS, infer=False), Fresh)


def test_the_nearest_that_a_vector_vouches_for_is_the_duplicate() -> None:
    two, cats = known(0.999, "Mira owns 2 cats."), known(0.99, "Mira has 3 cats.")
    weight = weigh(matched(two, cats, text="Mira owns 3 cats."), THRESHOLDS, infer=True)
    assert isinstance(weight, Duplicate)
    assert weight.candidate == cats


@pytest.mark.parametrize("infer", [True, False])
def test_equal_words_are_a_duplicate_whatever_the_similarity(*, infer: bool) -> None:
    weight = weigh(matched(known(0.1, "mira  LIVES in Munich")), THRESHOLDS, infer=infer)
    assert isinstance(weight, Duplicate)
    assert weight.by == "hash"


def test_only_candidates_in_the_conflict_zone_are_contested() -> None:
    near, far = known(0.7), known(0.3)
    weight = weigh(matched(near, far), THRESHOLDS, infer=True)
    assert weight == Contested(matched(near, far), (near,))


def test_a_fresh_fact_is_added_with_deterministic_ids() -> None:
    (event,) = events([Fresh(matched())], {}, CIRCUMSTANCES)
    assert isinstance(event, FactAdded)
    assert event.fact.fact_id == ids.fact_id("default/mira", "t1", 0)
    assert event.event_id == ids.event_id("default/mira", "t1", 0)
    assert (event.fact.true_from, event.fact.confidence, event.unresolved) == (NOON, 0.95, False)


def test_every_candidate_that_was_looked_at_is_in_the_decision() -> None:
    near, far = known(0.7), known(0.3)
    event = one_event(matched(near, far), judged("KEEP", near))
    assert [(seen.fact_id, seen.similarity) for seen in event.decision.candidates] == [
        (near.fact_id, 0.7),
        (far.fact_id, 0.3),
    ]
    assert (event.decision.by, event.decision.model, event.decision.reason) == ("model", "judge", "because")


def test_replace_ends_the_old_fact_when_the_new_one_began() -> None:
    old = known(0.8)
    event = one_event(matched(old, event_time=datetime(2026, 2, 1, tzinfo=UTC)), judged("REPLACE", old))
    assert isinstance(event, FactReplaced)
    assert event.targets == (old.fact_id,)
    assert event.ended_at == event.fact.true_from == datetime(2026, 2, 1, tzinfo=UTC)


def test_contradict_keep_and_skip_name_their_targets() -> None:
    old = known(0.8)
    assert isinstance(one_event(matched(old), judged("CONTRADICT", old)), FactContradicted)
    kept = one_event(matched(old), judged("KEEP", old))
    assert isinstance(kept, FactConfirmed)
    assert kept.target == old.fact_id
    (skipped,) = events([Duplicate(matched(old), old, "threshold")], {}, CIRCUMSTANCES)
    assert isinstance(skipped, FactSkipped)
    assert skipped.target == old.fact_id


def test_a_merged_fact_is_true_since_its_oldest_parent_and_has_its_own_vector() -> None:
    old, vector = known(0.8), Vector.of("m", [0.0, 1.0])
    event = one_event(matched(old), judged("MERGE", old, text="Mira moved.", merged_vector=vector))
    assert isinstance(event, FactsMerged)
    assert (event.fact.text, event.fact.true_from, event.fact.vector) == ("Mira moved.", LAST_YEAR, vector)
    assert event.statement.text == "Mira lives in Munich."


def test_without_a_valid_verdict_the_fact_is_added_and_marked() -> None:
    event = one_event(matched(known(0.8)), Judgement(verdict=None, complaint="no valid reply"))
    assert isinstance(event, FactAdded)
    assert event.unresolved
    assert event.decision.by == "fallback"


def test_a_known_fact_is_ended_once_by_the_first_of_a_turn() -> None:
    old = known(0.8)
    weights: Sequence[Contested] = [Contested(matched(old, text=text), (old,)) for text in ("one", "two")]
    first, second = events(weights, {0: judged("REPLACE", old), 1: judged("REPLACE", old)}, CIRCUMSTANCES)
    assert isinstance(first, FactReplaced)
    assert isinstance(second, FactAdded)
    assert first.fact.fact_id != second.fact.fact_id


def test_a_repetition_of_what_this_turn_has_ended_is_kept_as_a_fact_of_its_own() -> None:
    berlin = known(0.8)
    moved = Contested(matched(berlin), (berlin,))
    repeated = Duplicate(matched(berlin, text=berlin.text), berlin, "hash")
    first, second = events([moved, repeated], {0: judged("REPLACE", berlin)}, CIRCUMSTANCES)
    assert isinstance(first, FactReplaced)
    assert isinstance(second, FactAdded)
    assert second.fact.text == berlin.text
    assert second.decision.by == "hash"


def test_a_fact_that_is_replaced_by_an_older_statement_does_not_end_before_it_began() -> None:
    berlin = known(0.8)
    before = LAST_YEAR - timedelta(days=1)
    event = one_event(matched(berlin, event_time=before), judged("REPLACE", berlin))
    assert event.ended_at == berlin.true_from
    assert event.fact.true_from == before
