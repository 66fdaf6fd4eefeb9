"""Records are held to their examples: each decodes by schema and by model, and encodes to the same again."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from mnemolog.schemas import ids
from mnemolog.schemas.base import Record, Versioned
from mnemolog.schemas.command import Command, CommandPayload
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES, AnyEntityEvent, EntityRegistered
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.errors import InvalidRecordError, UnsupportedVersionError
from mnemolog.schemas.events import EVENT_CLASSES, MemoryEvent
from mnemolog.schemas.outcome import SourceOutcome
from mnemolog.schemas.turn import Turn
from tests.support.paths import ROOT

FOLDER = ROOT / "schemas"
EXAMPLES = sorted((FOLDER / "examples").glob("*/*/*.json"))
RECORDS: Mapping[str, type[Versioned]] = {
    "turn": Turn,
    "command": Command,
    "extracted_facts": ExtractedFacts,
    "embedded_facts": EmbeddedFacts,
    "matched_facts": MatchedFacts,
    "commit": Commit,
    "outcome": SourceOutcome,
}
ANY_EVENT: TypeAdapter[MemoryEvent | AnyEntityEvent] = TypeAdapter(MemoryEvent | AnyEntityEvent)
EVENTS_OF_COMMITS = {**EVENT_CLASSES, **ENTITY_EVENT_CLASSES}
COMMAND_PAYLOADS: TypeAdapter[CommandPayload] = TypeAdapter(CommandPayload)
PUBLISHED = {"turn", "command", "commit", "outcome"}
"""The records that have a JSON Schema of their own."""


def _name(path: Path) -> str:
    return "/".join(path.relative_to(FOLDER / "examples").parts)


def _schema(kind: str) -> dict[str, Any]:
    """A record's own schema; an event's is the part of the commit's schema that defines it. Envelopes have none."""
    if kind not in PUBLISHED | set(EVENTS_OF_COMMITS):
        return {}
    record = "commit" if kind in EVENTS_OF_COMMITS else kind
    path = FOLDER / "json" / f"{record}.v{RECORDS[record].VERSION}.json"
    schema: dict[str, Any] = json.loads(path.read_text())
    if kind in EVENTS_OF_COMMITS:
        return {"$ref": f"#/$defs/{EVENTS_OF_COMMITS[kind].__name__}", "$defs": schema["$defs"]}
    return schema


def _decode(kind: str, data: bytes) -> Record:
    if kind in RECORDS:
        return RECORDS[kind].from_json(data)
    return ANY_EVENT.validate_json(data, strict=True)


def _given_part(encoded: Any, example: Any) -> Any:
    """What an encoded record says about the fields that the example gives."""
    if isinstance(example, dict):
        return {key: _given_part(encoded[key], value) for key, value in example.items()}
    if isinstance(example, list) and len(example) == len(encoded):
        return [_given_part(left, right) for left, right in zip(encoded, example, strict=True)]
    return encoded


@pytest.mark.parametrize("path", EXAMPLES, ids=_name)
def test_an_example_decodes_by_schema_and_model_and_encodes_equal(path: Path) -> None:
    """And neither takes it with a field that is not known."""
    kind = path.relative_to(FOLDER / "examples").parts[0]
    example = json.loads(path.read_bytes())
    schema = jsonschema.Draft202012Validator(_schema(kind))
    schema.validate(example)
    record = _decode(kind, path.read_bytes())
    encoded = record.model_dump_json().encode()
    assert _given_part(json.loads(encoded), example) == example
    assert _decode(kind, encoded) == record
    schema.validate(json.loads(encoded))
    with pytest.raises((InvalidRecordError, ValidationError), match="colour"):
        _decode(kind, json.dumps(example | {"colour": "blue"}).encode())
    if schema.schema:
        with pytest.raises(jsonschema.ValidationError, match="colour"):
            schema.validate(example | {"colour": "blue"})


def test_every_record_and_event_has_an_example_of_its_version() -> None:
    found = {path.relative_to(FOLDER / "examples").parts[:2] for path in EXAMPLES}
    assert found == {(kind, str(Versioned.VERSION)) for kind in (*RECORDS, *EVENTS_OF_COMMITS)}


def test_turns_commands_and_commits_have_a_published_schema() -> None:
    found = {path.name for path in (FOLDER / "json").iterdir()}
    assert found == {f"{kind}.v{RECORDS[kind].VERSION}.json" for kind in PUBLISHED}


def test_every_kind_of_command_has_an_example() -> None:
    found = {json.loads(path.read_bytes())["order"]["kind"] for path in (FOLDER / "examples/command").glob("*/*.json")}
    assert found == set(COMMAND_PAYLOADS.json_schema()["discriminator"]["mapping"])


def test_the_union_knows_every_event_class() -> None:
    facts, entities = ANY_EVENT.json_schema()["anyOf"]
    assert set(facts["discriminator"]["mapping"]) == set(EVENT_CLASSES)
    assert set(entities["discriminator"]["mapping"]) == set(ENTITY_EVENT_CLASSES)


def test_every_end_of_a_source_has_an_example() -> None:
    outcomes = {commit.outcome for commit in _commits()}
    assert outcomes == {"stored", "nothing_stored", "rejected", "failed", "done"}


def _commits() -> Iterator[Commit]:
    for path in (FOLDER / "examples" / "commit").glob("*/*.json"):
        yield Commit.from_bytes(path.read_bytes())


def test_ids_in_the_examples_follow_from_owner_source_and_ordinal() -> None:
    for commit in _commits():
        for event in commit.events:
            assert event.event_id == ids.event_id(commit.owner, commit.source_id, event.ordinal)
            fact = event.new_fact.fact_id if event.new_fact else None
            assert fact in (None, ids.fact_id(commit.owner, commit.source_id, event.ordinal))
        for named in commit.entity_events:
            assert named.event_id == ids.event_id(commit.owner, commit.source_id, named.ordinal)
        registered = [named.entity_id for named in commit.entity_events if isinstance(named, EntityRegistered)]
        places = range(len(registered))
        assert registered == [ids.entity_id(commit.owner, commit.source_id, place) for place in places]


@pytest.mark.parametrize("kind", RECORDS)
def test_a_newer_version_is_refused_with_the_way_out(kind: str) -> None:
    known = RECORDS[kind].VERSION
    data = json.dumps({"schema_version": known + 1, "something": "new"}).encode()
    expected = f"schema_version {known + 1}, this program reads up to {known}: upgrade it"
    with pytest.raises(UnsupportedVersionError, match=expected) as refused:
        RECORDS[kind].from_json(data)
    assert (refused.value.found, refused.value.known) == (known + 1, known)


@pytest.mark.parametrize("version", [0, -1, "1", "two", None, 1.5, [1]])
def test_a_version_that_never_was_is_an_invalid_record_and_no_newer_one(version: object) -> None:
    with pytest.raises(InvalidRecordError, match="schema_version"):
        Commit.from_bytes(json.dumps({"schema_version": version}).encode())


def test_metadata_is_the_place_for_fields_of_ones_own() -> None:
    minimal = json.loads((FOLDER / "examples/turn/1/minimal.json").read_bytes())
    turn = Turn.from_bytes(json.dumps(minimal | {"metadata": {"colour": {"name": "blue"}}}).encode())
    assert turn.metadata == {"colour": {"name": "blue"}}


def test_an_event_that_this_program_does_not_know_is_refused_by_name() -> None:
    commit = json.loads((FOLDER / "examples/commit/1/stored.json").read_bytes())
    commit["events"][0]["event"] = "fact_forgotten"
    with pytest.raises(InvalidRecordError, match="fact_forgotten"):
        Commit.from_bytes(json.dumps(commit).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("infer", "yes"),
        ("occurred_at", 1_776_000_000),
        ("turn_id", 7),
        ("messages", {"role": "user", "content": "one message is no list"}),
        ("turn_id", " padded "),
        ("turn_id", "*"),
        ("turn_id", ""),
        ("turn_id", "x" * 257),
        ("turn_id", "two\nlines"),
        ("scope", {"tenant": "acme"}),
        ("scope", {"user_id": None, "agent_id": None}),
    ],
)
def test_schema_and_model_refuse_the_same_on_the_wire(field: str, value: object) -> None:
    minimal = json.loads((FOLDER / "examples/turn/1/minimal.json").read_bytes())
    record = minimal | {field: value}
    with pytest.raises(InvalidRecordError, match=field):
        Turn.from_bytes(json.dumps(record).encode())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(_schema("turn")).validate(record)


@pytest.mark.parametrize("record", [b"", b"not json", b"[]", b"null", b"\xff\xfe", None])
def test_bytes_that_are_no_record_are_an_invalid_record(record: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="not a valid Commit: the record"):
        Commit.from_bytes(record)


def test_records_are_frozen() -> None:
    turn = Turn.from_bytes((FOLDER / "examples/turn/1/minimal.json").read_bytes())
    with pytest.raises(ValidationError, match="frozen"):
        turn.turn_id = "other"
