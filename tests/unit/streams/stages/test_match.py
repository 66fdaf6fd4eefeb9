"""What `match` asks the tables for, and what it carries on without asking."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.projections.stores.facts import CandidateLists, CandidateRequest
from mnemolog.schemas.command import Correct, Edit
from mnemolog.schemas.envelopes import EmbeddedFacts, MatchedFacts
from mnemolog.schemas.facts import Candidate, EmbeddedFact, ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.schemas.turn import Overrides
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.effective_settings import MEMLIB_DEFAULTS, thresholds_for
from mnemolog.streams.stages.match import MAX_CANDIDATE_BYTES, MatchStage
from mnemolog.streams.stages.processor import ReceivedEnvelope

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
FLOOR = MEMLIB_DEFAULTS.conflict


class FakeTables:
    """Answers every question with `found`, and remembers what was asked."""

    def __init__(self, *found: Candidate) -> None:
        self.found = found
        self.asked: Sequence[CandidateQuery] = []
        self.rules_asked = 0

    async def find(self, request: CandidateRequest) -> CandidateLists:
        assert (request.scope, request.at) == (Scope(user_id="mira"), MOMENT)
        self.asked = request.queries
        names = ("Mira",) if request.speaker else ()
        return CandidateLists(scope_version=3, candidates=(self.found,) * len(self.asked), user_names=names)

    async def rules(self, _: Scope, overrides: Overrides) -> EffectivePolicy:
        assert overrides == Overrides()
        self.rules_asked += 1
        return EffectivePolicy(single_valued=("locker",))


def embedded(**fields: Any) -> EmbeddedFact:
    fact = ExtractedFact(**{"text": "Mira lives in Bern.", "search_text": "Bern", "excerpt": "Bern"} | fields)
    return EmbeddedFact(fact=fact, vector=Vector.from_values("text-embedding-3-small", [1.0, 0.0]))


def candidate(text: str) -> Candidate:
    return Candidate(
        fact_id=uuid4(), similarity=0.7, text=text, content_hash="h", confidence=0.9, true_from=MOMENT, excerpt=text
    )


async def matched(tables: FakeTables, *facts: EmbeddedFact, **fields: Any) -> MatchedFacts:
    envelope = EmbeddedFacts(
        source_id="t1",
        scope=Scope(user_id="mira"),
        origin=Origin(topic="conversation_turns", partition=0, offset=0),
        occurred_at=MOMENT,
        published_at=MOMENT,
        facts=facts,
        **fields,
    )
    given: Any = tables
    matching = MatchStage(given, thresholds_for, tables.rules)
    record = KafkaRecord(topic="embedded_facts", partition=0, offset=0, timestamp=0.0, key=envelope.key, value=b"")
    return await matching(ReceivedEnvelope(envelope), record)


@pytest.mark.parametrize(
    ("subject", "speaker", "about"),
    [
        (None, None, None),
        ("The user", None, "The user"),
        (None, "mira", None),
        ("the user", "Mira", "the user"),
        ("Tom", "Bob", "Tom"),
        ("the user", "Bob", "Bob"),
        (None, "Bob", "Bob"),
        ("der Nutzer", "Mira Kovac", "Mira Kovac"),
    ],
)
async def test_the_user_in_the_words_of_another_speaker_is_that_speaker(
    subject: str | None, speaker: str | None, about: str | None
) -> None:
    turn = await matched(FakeTables(), embedded(subject=subject), speaker=speaker)
    assert turn.facts[0].fact.subject == about
    assert turn.user_names == (("Mira",) if speaker else ())


@pytest.mark.parametrize(
    ("fields", "ends_only"),
    [
        ({"key": "home_city"}, False),
        ({"key": "locker"}, False),
        ({"key": "hobby"}, True),
        ({"key": "gate_code", "single_valued": True}, False),
    ],
)
async def test_a_key_that_holds_several_values_is_looked_up_for_its_ends(
    fields: dict[str, Any], *, ends_only: bool
) -> None:
    tables = FakeTables()
    await matched(tables, embedded(**fields, subject="Mira"))
    (asked,) = tables.asked
    assert (asked.key, asked.ends_only, asked.subject) == (fields["key"], ends_only, "Mira")
    assert asked.min_similarity == FLOOR


async def test_policies_are_asked_only_where_the_registry_does_not_tell() -> None:
    tables = FakeTables()
    await matched(tables, embedded(), embedded(key="home_city"), embedded(key="gate_code", single_valued=True))
    assert tables.rules_asked == 0
    await matched(tables, embedded(key="home_city"), embedded(key="hobby"))
    assert tables.rules_asked == 1


@pytest.mark.parametrize("hint", ["retract", "update"])
async def test_what_may_end_something_is_held_against_more(hint: str) -> None:
    tables = FakeTables()
    await matched(tables, embedded(action_hint=hint), embedded())
    assert [wanted.min_similarity for wanted in tables.asked] == [MEMLIB_DEFAULTS.ending, FLOOR]


async def test_a_command_is_carried_on_without_a_lookup() -> None:
    tables = FakeTables()
    order = Correct(edit=Edit(fact_id=UUID(int=1), text="Mira lives in Basel."))
    carried = await matched(tables, embedded(key="home_city"), source_kind="command", order=order, actor="Zoe")
    assert (tables.asked, tables.rules_asked) == ([], 0)
    assert (carried.order, carried.actor, carried.scope_version) == (order, "Zoe", 0)
    assert [(fact.fact.text, fact.candidates) for fact in carried.facts] == [("Mira lives in Bern.", ())]


async def test_candidates_that_would_make_the_record_too_large_are_left_to_the_resolver() -> None:
    small, large = candidate("near"), candidate("a" * (MAX_CANDIDATE_BYTES // 2))
    carried = await matched(FakeTables(small), embedded())
    assert (carried.facts[0].candidates, carried.scope_version) == ((small,), 3)
    carried = await matched(FakeTables(large), embedded())
    assert (carried.facts[0].candidates, carried.scope_version) == ((), 0)
