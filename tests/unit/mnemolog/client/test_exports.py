"""What becomes of exports of other programs: mem0 in one document, conversations of ChatGPT and Claude."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mnemolog.errors import InvalidCommandError
from mnemolog.schemas.command import Command, Import, Undo
from mnemolog.schemas.turn import Turn
from tests.support.harnesses.offline_client import OfflineClient

BEGUN = 1772355600.5  # 2026-03-01T09:00:00.5Z


def node(name: str, parent: str | None, role: str, *parts: object, **more: Any) -> tuple[str, dict[str, Any]]:
    content = {"content_type": more.pop("kind", "text"), "parts": list(parts)}
    message = {"id": name, "author": {"role": role}, "create_time": BEGUN, "content": content, **more}
    return name, {"id": name, "parent": parent, "children": [], "message": message}


CHATGPT: Mapping[str, Any] = {
    "title": "Moving",
    "create_time": BEGUN,
    "conversation_id": "c1",
    "gizmo_id": "g-1",
    "current_node": "a2",
    "mapping": dict(
        [
            ("root", {"id": "root", "message": None, "parent": None, "children": []}),
            node("s", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
            node("u1", "s", "user", "I live in Bern."),
            node("a1", "u1", "assistant", "Nice."),
            node("old", "a1", "user", "I live in Bonn, no."),  # edited by the user: another branch
            node("u2", "a1", "user", {"asset_pointer": "x"}, "I have a cat.", kind="multimodal_text"),
            node("code", "u2", "assistant", "search()", recipient="browser"),
            node("tool", "code", "tool", "found", kind="tether_quote"),
            node("a2", "tool", "assistant", "What is its name?", model_slug="m"),
        ]
    ),
}
CLAUDE: Mapping[str, Any] = {
    "uuid": "k1",
    "name": "Cats",
    "created_at": "2026-03-02T09:00:00.123456Z",
    "account": {"uuid": "me"},
    "chat_messages": [
        {"uuid": "a0", "sender": "assistant", "text": "Hello.", "content": [], "created_at": "2026-03-02T09:00:00Z"},
        {"uuid": "m1", "sender": "human", "text": "short", "created_at": "2026-03-02T09:00:01.123456Z", "files": ["f"],
         "content": [{"type": "text", "text": "My cat is called Momo."}, {"type": "image"}]},
        {"uuid": "m2", "sender": "assistant", "text": "Sweet.", "content": [], "created_at": "2026-03-02T09:00:02Z"},
        {"uuid": "m3", "sender": "human", "text": "", "content": [], "created_at": "2026-03-02T09:00:03Z"},
    ],
}  # fmt: skip


def document(*conversations: object, indent: int | None = None) -> bytes:
    return json.dumps(conversations, indent=indent).encode()


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name.replace("__", "/") + ".json", content)
    return packed.getvalue()


def published(client: OfflineClient) -> Sequence[Turn]:
    return [Turn.from_bytes(record.value) for record in client.producer.records]


FILES: Mapping[str, bytes] = {
    "one line": document(CHATGPT, CLAUDE),
    "indented": document(CHATGPT, CLAUDE, indent=2),
    "with a mark": b"\xef\xbb\xbf" + document(CHATGPT, CLAUDE),
    "an archive": archive(user=b"{}", conversations=document(CHATGPT, CLAUDE)),
    "a folder in parts": archive(
        **{"e__conversations-000": document(CHATGPT), "e__conversations-001": document(CLAUDE)}
    ),
}


@pytest.mark.parametrize("name", FILES)
async def test_a_conversation_becomes_turns_of_the_branch_that_the_user_saw_last(name: str) -> None:
    client = OfflineClient()
    report = await client.admin.import_facts(io.BytesIO(FILES[name]), user_id="ann")
    turns = published(client)
    assert [[(one.role, one.content) for one in turn.messages] for turn in turns] == [
        [("user", "I live in Bern."), ("assistant", "Nice.")],
        [("user", "I have a cat."), ("assistant", "What is its name?")],
        [("user", "My cat is called Momo."), ("assistant", "Sweet.")],
    ]
    assert [turn.turn_id for turn in turns] == [
        "import/chatgpt/c1/u1", "import/chatgpt/c1/u2", "import/claude/k1/m1",
    ]  # fmt: skip
    assert [turn.occurred_at.isoformat() for turn in turns] == [
        "2026-03-01T09:00:00.500000+00:00", "2026-03-01T09:00:00.500000+00:00", "2026-03-02T09:00:01.123456+00:00",
    ]  # fmt: skip
    assert {turn.scope.user_id for turn in turns} == {"ann"}
    assert turns[0].metadata == {"source": "chatgpt", "conversation": "Moving"}
    assert (report.read, report.turns, report.sent, report.damaged) == (3, 3, 3, {})
    assert report.passed_over == {
        "account": 1, "files": 1, "gizmo_id": 1, "model_slug": 1, "parts that are no text": 2,
        "messages of assistant without a text for the user": 1, "messages of system without a text for the user": 1,
        "messages of tool without a text for the user": 1, "messages of user without a text for the user": 1,
        "messages before the first of the user": 1,
    }  # fmt: skip


MEMORY = {"id": "m1", "memory": "Ann has a cat.", "user_id": "ann", "metadata": None, "hash": "ab", "score": 0.4}
MEM0: Mapping[str, bytes] = {
    "what get_all returns": json.dumps({"results": [MEMORY, MEMORY | {"id": "m2"}], "relations": []}).encode(),
    "a page": json.dumps({"count": 2, "next": None, "results": [MEMORY, MEMORY | {"id": "m2"}]}, indent=1).encode(),
    "a list": document(MEMORY, MEMORY | {"id": "m2"}),
    "lines": b"\n".join(json.dumps(one).encode() for one in (MEMORY, MEMORY | {"id": "m2"})),
}


@pytest.mark.parametrize("name", MEM0)
async def test_memories_of_mem0_are_facts_in_each_form_that_it_writes(name: str) -> None:
    client = OfflineClient()
    report = await client.admin.import_facts(io.BytesIO(MEM0[name]))
    assert (report.read, report.turns, report.passed_over) == (2, 0, {"hash": 2, "score": 2})
    assert [command.command_id.split("/")[1] for command in client.commands] == ["m1", "m2"]


async def test_a_memory_that_expires_ends_on_that_day() -> None:
    client = OfflineClient()
    await client.admin.import_facts(io.BytesIO(document(MEMORY | {"expiration_date": "2026-08-31"})))
    (order,) = (command.order for command in client.commands)
    assert isinstance(order, Import)
    assert order.fact.valid_until is not None
    assert order.fact.valid_until.isoformat() == "2026-08-31T00:00:00+00:00"


WRONG: Mapping[str, tuple[bytes, str]] = {
    "half a document": (b"[{", "neither lines of JSON nor one JSON document"),
    "no list": (b'{\n"user": 1}', "has no list of memories or conversations"),
    "an archive of something else": (archive(notes=b"{}"), "has no conversations.json"),
    "an archive that unpacks without end": (archive(conversations=b" " * 10_000_000), "larger unpacked"),
    "a damaged conversation": (document({"mapping": {"n": {"message": {"id": "n"}}}}), "item 1: .*messages must be"),
    "a message of nobody": (document({"chat_messages": [{"uuid": "m"}]}), "item 1: .*messages must be"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_export_is_named_and_nothing_is_sent(name: str) -> None:
    content, reason = WRONG[name]
    client = OfflineClient()
    with pytest.raises(InvalidCommandError, match=reason):
        await client.admin.import_facts(io.BytesIO(content), user_id="ann")
    assert client.producer.records == []


def said(name: str | None, text: str, **more: Any) -> dict[str, Any]:
    return {"uuid": name, "sender": "human", "text": text, "created_at": BEGUN, **more}


LOSSES: Mapping[str, tuple[bytes, Sequence[str], Mapping[str, int]]] = {
    "spoken": (
        document(
            {"id": "c1", "mapping": dict([node("u1", None, "user", {"text": "I live in Oslo."}, {"asset": "x"})])}
        ),
        ["c1/u1"],
        {"parts that are no text": 1},
    ),
    "an end that is not there": (
        document({**CHATGPT, "current_node": "gone", "gizmo_id": None}),
        ["c1/u1", "c1/u2"],
        {},
    ),
    "without ids": (
        document(*({"chat_messages": [said(None, "I live in Bern."), said(None, "I like tea.")]} for _ in "ab")),
        ["0/0", "0/1", "1/0", "1/1"],
        {},
    ),
    "nobody speaks": (
        document({"id": "c1", "mapping": {}}, {"id": "c2", "chat_messages": [said("m1", "Hi.", sender="assistant")]}),
        [],
        {"conversations in which the user says nothing": 2, "messages before the first of the user": 1},
    ),
    "a sender of another kind": (
        document({"id": "c1", "chat_messages": [said("m1", "Hi.", sender=None), said("m2", "I like tea.")]}),
        ["c1/m2"],
        {"messages of None without a text for the user": 1},
    ),
    "relations": (
        json.dumps({"results": [], "relations": [{"source": "ann"}], "next": "p2"}).encode(),
        [],
        {"relations": 1},
    ),
    "what says nothing": (
        json.dumps(MEMORY | {"actor": None, "links": [], "hash": "", "score": None}).encode(),
        [],
        {},
    ),
}


@pytest.mark.parametrize("name", LOSSES)
async def test_what_is_not_read_is_counted_and_nothing_is_lost_without_a_word(name: str) -> None:
    content, turn_ids, passed_over = LOSSES[name]
    client = OfflineClient()
    report = await client.admin.import_facts(io.BytesIO(content), user_id="ann")
    sent = [record.name for record in client.producer.records if record.kind == "turn"]
    assert [name.removeprefix("import/chatgpt/").removeprefix("import/claude/") for name in sent] == turn_ids
    assert {name: number for name, number in report.passed_over.items() if name in passed_over} == passed_over
    assert passed_over or not {*report.passed_over} & {"actor", "links", "hash", "score"}


async def test_half_a_character_damages_its_item_alone() -> None:
    client = OfflineClient()
    content = document(MEMORY, MEMORY | {"id": "m2", "memory": "Ann likes tea. \ud83d"})
    report = await client.admin.import_facts(io.BytesIO(content), skip_damaged=True)
    assert (report.sent, list(report.damaged)) == (1, [2])


async def test_nobody_s_conversation_is_refused() -> None:
    with pytest.raises(InvalidCommandError, match=r"item 1: .*give a user_id"):
        await OfflineClient().admin.import_facts(io.BytesIO(FILES["one line"]))


async def test_a_dry_run_sends_nothing_and_progress_ends_with_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    client, steps = OfflineClient(), list[tuple[str, int, int]]()
    tried = await client.admin.import_facts(io.BytesIO(FILES["one line"]), user_id="ann", dry_run=True)
    assert (tried.turns, tried.sent, client.producer.records) == (3, 0, [])
    monkeypatch.setattr("mnemolog.client.files.IMPORT_BATCH", 2)

    def note(*step: Any) -> None:
        steps.append(step)

    await client.admin.import_facts(io.BytesIO(FILES["one line"]), user_id="ann", progress=note)
    assert steps == [("sent", 2, 3), ("sent", 3, 3)]


async def test_an_import_is_undone_from_its_end_in_the_scopes_that_it_had() -> None:
    client = OfflineClient()
    lines = io.BytesIO(MEM0["lines"])
    await client.admin.import_facts(lines)
    lines.seek(0)
    report = await client.admin.undo_import(lines, cascade=True)
    imports, undos = client.commands[:2], client.commands[2:]
    assert [(one.scope, one.order) for one in undos] == [
        (one.scope, Undo(source_id=one.command_id, cascade=True)) for one in reversed(imports)
    ]
    assert (report.read, report.sent) == (2, 2)
    assert all(isinstance(one, Command) for one in undos)
