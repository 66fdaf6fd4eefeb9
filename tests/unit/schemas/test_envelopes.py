"""The binary form of the records between stages."""

import base64
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.base import Versioned
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.errors import InvalidRecordError, UnsupportedVersionError
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
HALVES = st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1, max_size=40)
KNOWN = Candidate(fact_id=UUID(int=7), similarity=0.5, text="A.", content_hash="h", confidence=0.9, true_from=NOW)


def fact(text: str) -> ExtractedFact:
    return ExtractedFact(text=text, excerpt=text, search_text=text)


def matched(*vectors: Vector, text: str = "I live in Köln.") -> MatchedFacts:
    facts = tuple(MatchedFact(fact=fact(text), vector=vector, candidates=(KNOWN,)) for vector in vectors)
    return MatchedFacts(facts=facts, scope_version=3, **COMMON)


COMMON: dict[str, Any] = {
    "source_id": "t1",
    "scope": Scope(user_id="alice"),
    "origin": Origin(topic="conversation_turns", partition=0, offset=1),
    "occurred_at": NOW,
    "published_at": NOW,
}
SAMPLE = matched(Vector.from_values("m", [0.25, 0.5]), Vector.from_values("m", [1.0, -2.0, 3.0]))


@given(st.lists(HALVES, max_size=4), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_is_written_is_read(values: list[list[float]], text: str) -> None:
    envelope = matched(*(Vector.from_values("m", one) for one in values), text=text)
    assert MatchedFacts.from_bytes(envelope.to_bytes()) == envelope


def test_a_vector_travels_as_its_bytes() -> None:
    record = SAMPLE.to_bytes()
    for one in SAMPLE.facts:
        assert one.vector.data in record
        assert base64.b64encode(one.vector.data) not in record
    assert record.endswith(b"".join(one.vector.data for one in SAMPLE.facts))


def test_a_record_that_is_cut_anywhere_is_refused() -> None:
    record = SAMPLE.to_bytes()
    for length in range(len(record)):
        with pytest.raises(InvalidRecordError):
            MatchedFacts.from_bytes(record[:length])


@pytest.mark.parametrize("record", [None, b"", b"MN", b"\x00\x01", b"\xff" * 20, b"[]", b"no json"])
def test_what_is_no_envelope_is_refused(record: bytes | None) -> None:
    with pytest.raises(InvalidRecordError):
        MatchedFacts.from_bytes(record)


def test_a_newer_form_and_a_newer_version_stop_the_stage() -> None:
    record = SAMPLE.to_bytes()
    with pytest.raises(UnsupportedVersionError, match="binary form"):
        MatchedFacts.from_bytes(record[:3] + b"\x02" + record[4:])
    newer = record.replace(b'"schema_version":1', b'"schema_version":2')
    with pytest.raises(UnsupportedVersionError, match="schema_version 2"):
        MatchedFacts.from_bytes(newer)


@pytest.mark.parametrize("place", ["-1", "3", "99999999999999999999", "true", "null", "0.0"])
def test_a_place_outside_of_the_bytes_is_refused(place: str) -> None:
    one = matched(Vector.from_values("m", [0.25, 0.5]))
    record = one.to_bytes()
    fields = record[8:-4].replace(b'"data":0', f'"data":{place}'.encode())
    with pytest.raises(InvalidRecordError, match="data"):
        MatchedFacts.from_bytes(record[:4] + len(fields).to_bytes(4, "big") + fields + record[-4:])


def test_a_place_is_not_counted_from_the_end() -> None:
    record = SAMPLE.to_bytes()
    fields = record[8:-10].replace(b'"data":0', b'"data":-10')
    with pytest.raises(InvalidRecordError, match="data"):
        MatchedFacts.from_bytes(record[:4] + len(fields).to_bytes(4, "big") + fields + record[-10:])


def test_json_without_the_head_of_an_envelope_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="head of an envelope"):
        MatchedFacts.from_bytes(Versioned.to_bytes(SAMPLE))
