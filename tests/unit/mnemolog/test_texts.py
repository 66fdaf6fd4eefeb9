"""Sentences about facts: where one came from, and why a search found none."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from mnemolog import texts
from mnemolog.projections.queries.explain import FactExtraction, LinkedEntity
from mnemolog.projections.queries.trace import TracedCall, TracedDecision
from mnemolog.projections.queries.write_result import MissingStatement
from mnemolog.projections.search.search import ScopeCount
from mnemolog.schemas.entities import ResolutionStep


@pytest.mark.parametrize(("speaker", "who"), [("Alice", "Alice says"), (None, "it says")])
def test_the_speaker_of_an_excerpt_is_named(speaker: str | None, who: str) -> None:
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    source: Any = SimpleNamespace(kind="turn", source_id="t1", occurred_at=at, said_at=None)
    fact: Any = SimpleNamespace(speaker=speaker, excerpt="I moved to Bern.")
    expected = f'It comes from turn t1 of 2026-03-01 09:00 UTC, where {who}: "I moved to Bern.".'
    assert texts._source_sentence(source, None, fact) == expected


@pytest.mark.parametrize(("excerpt", "words"), [("I moved to Bern.", ': "I moved to Bern.".'), ("", ".")])
def test_a_fact_without_an_excerpt_was_imported(excerpt: str, words: str) -> None:
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    promoted: dict[str, Any] = {"promoted_from": "F", "said_in": "i1", "order": "", "actor": None}
    source: Any = SimpleNamespace(kind="command", source_id="p1", occurred_at=at, said_at=at, **promoted)
    fact: Any = SimpleNamespace(speaker=None, excerpt=excerpt)
    before = "a turn had said" if excerpt else "it had been imported"
    assert texts._source_sentence(source, None, fact).endswith(f"; by 2026-03-01 09:00 UTC, {before} in i1{words}")
    waited: Any = SimpleNamespace(kind="turn", source_id="t1", occurred_at=at, said_at=at)
    assert texts._source_sentence(waited, None, fact).endswith(f"; by 2026-03-01 09:00 UTC, {before}{words}")


@pytest.mark.parametrize(
    ("missed", "sentence"),
    [
        (ScopeCount(within=3, beside=0, ids=()), "nothing known is near enough to this question"),
        (ScopeCount(within=0, beside=0, ids=()), "nothing is known in this scope"),
        (ScopeCount(within=0, beside=12, ids=("run_id",)),
         ("nothing is known in this scope; facts in scopes that also name a run: 12, "
          "search with run_id='**' (--run '**')")),
        (ScopeCount(within=1, beside=1, ids=("agent_id", "app_id")),
         ("nothing known is near enough to this question; facts in scopes that also name an agent or an app: 1, "
          "search with agent_id='**', app_id='**' (--agent '**' --app '**')")),
        (ScopeCount(within=2, beside=0, ids=(), models=("minilm", "mine")),
         "nothing known is near enough to this question"),
        (ScopeCount(within=2, beside=0, ids=(), models=("minilm",)),
         ("nothing was found by words alone: the question was embedded by mine, these facts by minilm; give the client "
          "the embedder of the stages (MNEMOLOG_EMBEDDING_PROVIDER and _MODEL)")),
    ],
)  # fmt: skip
def test_a_search_without_a_hit_says_why_and_where_else_to_look(missed: ScopeCount, sentence: str) -> None:
    assert texts.no_hit_sentence(missed, "mine") == sentence


def decided(**fields: Any) -> TracedDecision:
    empty: dict[str, Any] = dict.fromkeys(("statement", "excerpt", "verdict", "guard", "model", "prompt_version"))
    known = {"event": "fact_added", "fact_id": uuid4(), "targets": (), "by": "policy", "reason": "told so"}
    return TracedDecision(**empty | known | {"retrieved": (), "before": ()} | fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"guard": "add_only"}, "fact_added, decided by policy: told so. The guard add_only applied."),
        ({"guard": "high_risk", "verdict": "REPLACE", "model": "judge"},
         "fact_added, decided by judge: told so. The verdict was REPLACE; the guard high_risk put this in its place."),
    ],
)  # fmt: skip
def test_a_guard_is_told_with_its_verdict_where_there_was_one(fields: dict[str, Any], sentence: str) -> None:
    assert texts._decision_sentence(decided(**fields), {}) == sentence


def test_a_reader_without_a_prompt_is_named_alone() -> None:
    extraction = FactExtraction(
        excerpt="I ski.", certainty="explicit", confidence=0.95, importance=0.5, importance_category=None,
        model="reader", prompt_version=None, complaints=(),
    )  # fmt: skip
    assert list(texts._extraction_sentences(extraction)) == [
        "reader read it there (explicit, confidence 0.95; importance 0.50)."
    ]


@pytest.mark.parametrize("reason", texts._MISSING_SENTENCES)
def test_no_sentence_says_none(reason: Any) -> None:
    said = texts.missing_sentence(MissingStatement(text=None, reason=reason))
    assert "None" not in said


def test_every_step_that_finds_an_entity_has_words() -> None:
    assert set(texts._STEP_PHRASES) == set(get_args(ResolutionStep))


def test_a_shared_call_names_the_turns_that_shared_it() -> None:
    call = TracedCall(stage="extract", turns=3, request="0f3a", others=("t1", "t2"))
    shared = "Its extraction shared a call with 2 other turns: t1, t2 (request 0f3a)."
    assert texts.shared_call_sentence(call) == shared
    without_names = TracedCall(stage="extract", turns=2, request="0f3a")
    assert texts.shared_call_sentence(without_names) == "Its extraction shared a call with 1 other turn (request 0f3a)."


def test_what_a_model_said_of_a_name_is_told_with_its_reason() -> None:
    tom = LinkedEntity(
        entity_id=UUID(int=1), name="Tom Hill", role="subject", said="Tom", step="model", compared=["Tom Stone"],
        reason="he plays chess",
    )  # fmt: skip
    assert texts._entity_sentence(tom) == (
        'its subject is Tom Hill: "Tom" was taken for its name by the model, and not Tom Stone: he plays chess'
    )
