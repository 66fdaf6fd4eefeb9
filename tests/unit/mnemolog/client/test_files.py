"""Facts from and to files: which lines become commands and what is said of the others; an export that fails."""

import io
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient, ServerUnavailableError
from mnemolog.client import administration, files
from mnemolog.errors import InvalidCommandError, QueryError
from mnemolog.schemas.command import Command, Import
from tests.support.harnesses.offline_client import OfflineClient

ID = str(UUID(int=7))


def file_of(*lines: object) -> IO[bytes]:
    return io.BytesIO(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines))


def sent(client: OfflineClient) -> list[Command]:
    return [Command.from_bytes(record.value) for record in client.producer.records]


async def test_a_line_of_an_export_becomes_a_command_in_its_scope() -> None:
    client = OfflineClient()
    line = {"id": ID, "memory": "Ann has a cat.", "user_id": "ann", "run_id": "r1", "agent_id": None, "tenant": "old",
            "categories": ["identity"], "metadata": {"a": 1}, "created_at": "2026-01-02T00:00:00Z", "confidence": 0.5,
            "status": "active", "supersedes": [], "structured_attributes": {"year": 2026}, "score": 0.5}  # fmt: skip
    report = await client.admin.import_facts(file_of(line))
    (command,) = sent(client)
    digest = command.command_id.rpartition("/")[2]
    assert (report.read, report.sent, report.damaged) == (1, 1, {})
    assert (command.command_id, command.scope.tenant) == (f"import/{ID}/{digest}", "default")
    assert (command.scope.user_id, command.scope.run_id, command.scope.agent_id) == ("ann", "r1", None)
    assert isinstance(command.order, Import)
    fact = command.order.fact
    assert (fact.text, fact.category, fact.confidence, command.order.metadata) == (
        "Ann has a cat.", "identity", 0.5, {"a": 1},
    )  # fmt: skip
    assert fact.true_from is not None
    assert fact.true_from.isoformat() == "2026-01-02T00:00:00+00:00"


async def test_the_same_line_has_the_same_id_and_another_text_or_scope_another() -> None:
    client = OfflineClient()
    lines = [{"id": 1, "text": text, "user_id": "ann", "run_id": run} for text in ("A.", "B.") for run in ("r1", "r2")]
    for _ in range(2):
        await client.admin.import_facts(file_of(*lines, {"text": "A.", "user_id": "ann"}, b"   "))
    ids = [command.command_id for command in sent(client)]
    assert ids[:5] == ids[5:]
    assert len(set(ids)) == 5
    report = await client.admin.import_facts(file_of(lines[0]), user_id="bob", tenant="new")
    assert report.passed_over == {"user_id": 1}
    scope = sent(client)[-1].scope
    assert (scope.tenant, scope.user_id, scope.run_id) == ("new", "bob", "r1")  # ids of the call go first


async def test_what_mem0_exports_is_imported_and_foreign_fields_are_named() -> None:
    client = OfflineClient()
    line = {"id": ID, "memory": "Ann has a cat.", "user_id": "ann", "hash": "ab12", "score": 0.5, "metadata": None,
            "created_at": "2026-01-02T00:00:00Z", "updated_at": None, "categories": ["pets", "family"],
            "actor_id": "ann", "role": "user", "immutable": False, "expiration_date": None}  # fmt: skip
    report = await client.admin.import_facts(
        file_of(line, line | {"memory": "Ann has a dog."}, {"text": "A.", "user_id": "a"})
    )
    assert (report.read, report.sent, report.damaged) == (3, 3, {})
    orders = [command.order for command in sent(client)]
    assert [one.fact.more_categories for one in orders if isinstance(one, Import)] == [("family",), ("family",), ()]
    foreign = ("actor_id", "hash", "role", "score")
    assert report.passed_over == dict.fromkeys(foreign, 2)


NESTED = b'{"a":' * 500 + b"1" + b"}" * 500
DATE_AND_TIME = r"must be a date and time with a zone, such as 2026-01-31T09:30:00\+01:00"
DAMAGED: dict[str, tuple[object, str]] = {
    "no JSON": (b"{", "not valid JSON"),
    "no object": ([], "not a JSON object"),
    "no text": ({"user_id": "ann"}, ": text is missing"),
    "nobody": ({"text": "A."}, "give a user_id or an agent_id"),
    "no state": ({"text": "A.", "user_id": "ann", "status": "gone"}, "status is not one of active, .*: gone"),
    "wrong number": ({"text": "A.", "user_id": "ann", "confidence": 7}, ": confidence must be"),
    "no zone": ({"text": "A.", "user_id": "ann", "true_from": "2026-01-02T00:00:00"}, ": true_from needs a zone"),
    "a date alone": ({"text": "A.", "user_id": "ann", "true_from": "2026-01-02"}, f": true_from {DATE_AND_TIME}"),
    "of another name": ({"memory": "A.", "user_id": "a", "created_at": "2026-01-02"}, f": created_at {DATE_AND_TIME}"),
    "one of two ends": ({"memory": "A.", "user_id": "ann", "true_to": "soon", "valid_until": "2026-01-02T00:00:00Z"},
                        f": true_to {DATE_AND_TIME}"),
    "the other end": (
        {"memory": "A.", "user_id": "ann", "true_to": "2026-01-02T00:00:00Z", "valid_until": "2026-01-02"},
        f": valid_until {DATE_AND_TIME}"),
    "no names": ({"text": "A.", "user_id": "ann", "metadata": [1]}, ": metadata must be an object"),
    "too long": (b'{"text": "' + b"a" * 3_000_000 + b'"}', "more than 2097152 bytes"),
    "not UTF-8": (b'{"text": "\xff", "user_id": "ann"}', "not valid JSON"),
    "a mark": (b'\xef\xbb\xbf{"text": "A.", "user_id": "ann"}', "not valid JSON"),
    "NaN": (b'{"text":"a","user_id":"a","confidence":NaN}', "not valid JSON"),
    "a million brackets": (b"[" * 1_000_000, "not valid JSON"),
    "a large number": (b'{"text":"a","user_id":"a","metadata":{"a":1' + b"0" * 400 + b"}}", "not valid JSON"),
    "UTF-16": ('{"text":"a","user_id":"a"}'.encode("utf-16"), "not valid JSON"),
    "a year of five digits": (b'{"text":"a","user_id":"a","true_from":"99999-01-01T00:00:00Z"}', "true_from"),
    "an end of a number": (b'{"text":"a","user_id":"a","true_to":5}', "true_to must be a date and time"),
    "a user of a list": ({"text": "A.", "user_id": ["ann"]}, "user_id"),
    "a user of an object": ({"text": "A.", "user_id": {"a": 1}}, "user_id"),
    "a user of a number": ({"text": "A.", "user_id": 3}, "user_id"),
    "a key of two lines": ({"text": "A.", "user_id": "ann", "key": "a\nb"}, "key must be"),
    "a text of a megabyte": ({"text": "x" * 1_000_000, "user_id": "ann"}, "the limit is 333141"),
    "metadata of a number": ({"text": "A.", "user_id": "ann", "metadata": 3}, "metadata must be an object"),
    "metadata of a text": ({"text": "A.", "user_id": "ann", "metadata": ""}, "metadata must be an object"),
    "categories of a number": ({"text": "A.", "user_id": "ann", "categories": 3}, "categories must be text"),
    "deep metadata": (b'{"text":"a","user_id":"a","metadata":' + NESTED + b"}", "cannot be written as JSON again"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
async def test_a_damaged_line_is_named_and_nothing_is_sent(name: str) -> None:
    line, reason = DAMAGED[name]
    client = OfflineClient()
    good = {"text": "A.", "user_id": "ann"}
    with pytest.raises(InvalidCommandError, match=f"line 2: .*{reason}.*: nothing was imported"):
        await client.admin.import_facts(file_of(good, line, good))
    assert client.producer.records == []
    report = await client.admin.import_facts(file_of(good, line, good), skip_damaged=True)
    assert (report.read, report.sent, list(report.damaged)) == (3, 2, [2])


async def test_versions_that_do_not_hold_are_passed_over() -> None:
    client = OfflineClient()
    line = {"text": "A.", "user_id": "ann"}
    states = ("superseded", "active", "pending_confirmation", "retracted")
    report = await client.admin.import_facts(file_of(*(line | {"status": state} for state in states)))
    assert (report.read, report.sent, report.not_active, report.damaged) == (4, 1, 3, {})


async def test_a_report_names_the_first_damaged_lines_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_NAMED", 3)
    lines = [{"text": "A.", "user_id": "ann", "status": "x" * 1_000_000}] * 8
    report = await OfflineClient().admin.import_facts(file_of(*lines), skip_damaged=True)
    assert (report.read, report.damaged_count, [*report.damaged]) == (8, 8, [1, 2, 3])
    assert max(map(len, report.damaged.values())) <= 300
    with pytest.raises(InvalidCommandError, match=r"line 3: .*; and 5 more lines: nothing was imported") as raised:
        await OfflineClient().admin.import_facts(file_of(*lines))
    assert len(str(raised.value)) < 2000


class Pipe(io.RawIOBase):
    """Can be read once."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(buffer)


async def test_a_pipe_and_a_file_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "IMPORT_BATCH", 2)
    mark = b"\xef\xbb\xbf"  # as some editors write it at the beginning; elsewhere it is a fault
    content = mark + file_of(*({"text": f"{number}.", "user_id": "ann"} for number in range(5))).read()
    (tmp_path / "facts.jsonl").write_bytes(content)
    client = OfflineClient()
    for file in (tmp_path / "facts.jsonl", str(tmp_path / "facts.jsonl"), Pipe(content)):
        report = await client.admin.import_facts(cast("IO[bytes]", file))
        assert (report.read, report.sent) == (5, 5)
    orders = [command.order for command in sent(client)]
    texts = [order.fact.text for order in orders if isinstance(order, Import)]
    assert texts == [f"{number}." for number in range(5)] * 3
    with pytest.raises(InvalidCommandError, match="is not a file"):
        await client.admin.import_facts(tmp_path / "none")


class InPieces(io.BytesIO):
    """A stream of which nobody reads more than the longest line at a time."""

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size == files.MAX_LINE_BYTES + 1
        return super().readline(size)


def test_a_line_that_is_too_long_is_named_and_not_held_in_memory() -> None:
    reader = files.LineReader(ids={}, issued_at=datetime.now(UTC), actor=None, max_turn_bytes=1024)
    found = list(reader.records(InPieces(b"a" * 5_000_000 + b"\n[]\n")))
    assert found == [(1, f"it has more than {files.MAX_LINE_BYTES} bytes"), (2, "it is not a JSON object")]


async def test_an_end_that_was_announced_is_kept() -> None:
    client = OfflineClient()
    known = {"text": "Ann lives in Bern.", "user_id": "ann", "true_to": "2026-03-20T00:00:00+00:00"}
    later = "2026-04-01T00:00:00+00:00"
    both, other, none = {"valid_until": later}, {"true_to": None, "valid_until": later}, {"valid_until": None}
    await client.admin.import_facts(file_of(known, known | both, known | other, known | none))
    orders = [command.order for command in sent(client)]
    ends = [order.fact.valid_until for order in orders if isinstance(order, Import)]
    assert [end and end.day for end in ends] == [20, 20, 1, 20]


async def test_a_file_is_there_once_it_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @asynccontextmanager
    async def connection(_: object) -> AsyncIterator[None]:
        yield None

    def answer(*batches: list[bytes], failure: Exception | None = None) -> None:
        async def lines(*_: Any, **__: Any) -> AsyncIterator[list[bytes]]:
            for batch in batches:
                yield batch
            if failure:
                raise failure

        monkeypatch.setattr(administration, "exported_lines", lines)

    client, target = AsyncMemoryClient(), tmp_path / "facts.jsonl"
    monkeypatch.setattr(client._connections, "read_pool", type("Pool", (), {"connection": connection}))
    answer([b"1\n", b"2\n"], failure=ServerUnavailableError("away"))
    with pytest.raises(ServerUnavailableError):
        await client.admin.export(target, user_id="alice")
    assert not target.exists()
    answer([b"1\n", b"2\n"], [b"3\n"])
    assert await client.admin.export(str(target), user_id="alice") == 3
    assert target.read_bytes() == b"1\n2\n3\n"
    assert os.listdir(tmp_path) == ["facts.jsonl"]  # noqa: PTH208 - nothing else runs in this loop
    with pytest.raises(QueryError, match="cannot be written"):
        await client.admin.export(tmp_path / "none" / "facts.jsonl", user_id="alice")
