"""The HTTP server over a real Kafka, Postgres and worker: what applications do, and what they may not."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from mnemolog import AsyncMemoryClient
from mnemolog.client.connections import ReadPool
from mnemolog.errors import ServerUnavailableError, SettingsError
from mnemolog.server.access import RIGHTS, NotAuthenticatedError
from mnemolog.server.app import build_app
from mnemolog.server.gate import Gate
from mnemolog.server.keys import KeyStore, UnknownKeyError, make_key
from mnemolog.server.serve import serving
from mnemolog.server.tools import offering_tools
from mnemolog.settings import Settings
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import TenantHarness, client_settings
from tests.support.servers.kafka_client import publish, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def keys(shared_worker: StreamsSettings) -> AsyncIterator[KeyStore]:
    pool = ReadPool(shared_worker.postgres or "", size=2, statement_timeout=10.0)
    store = KeyStore(pool, now=lambda: datetime.now(UTC))
    yield store
    await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def url(shared_worker: StreamsSettings, keys: KeyStore) -> AsyncIterator[str]:
    settings = Settings.model_validate(shared_worker.model_dump() | {"http_port": 0, "http_rate": 0})
    with pytest.raises(SettingsError, match="there is no key: make a key by `mnemolog keys create NAME`"):
        async with serving(settings, without_keys=False):
            pass
    await create(keys, "first")
    async with serving(settings, without_keys=False) as served:
        yield served


async def create(keys: KeyStore, tenant: str, users: str = "*", rights: Iterable[Any] = RIGHTS, **more: Any) -> str:
    key, text = make_key("test", tenant=tenant, users=users, rights=[*rights], at=datetime.now(UTC), **more)
    await keys.create(key)
    return text


def caller(url: str, key: str | None) -> httpx.AsyncClient:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=60)


async def said(http: httpx.AsyncClient, text: str, user: str = "alice", **more: Any) -> Any:
    """The end of a turn."""
    body = {"messages": text, "user_id": user, "speaker": user.capitalize(), **more}
    answer = await http.post("/v1/turns", params={"wait": 30}, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_application_needs_a_url_and_a_key(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    async with caller(url, await create(keys, tenant.tenant)) as http:
        end = await said(http, "I live in Bern.", turn_id="t1")
        assert (end["status"], end["turn_id"]) == ("stored", "t1")
        again = await http.post("/v1/turns", json={"messages": "I live in Bern.", "user_id": "alice", "turn_id": "t1"})
        assert (again.status_code, again.json()["status"]) == (202, "pending")
        found = (await http.post("/v1/search", json={"query": "Where does Alice live?", "user_id": "alice"})).json()
        assert [hit["fact"]["text"] for hit in found["hits"]] == ["Alice lives in Bern."]
        status = await http.get("/v1/turns/t1", params={"user_id": "alice", "wait": 5, "verbose": True})
        assert status.json()["trace"] is not None
        fact_id = end["added"][0]["fact_id"]
        for path in (f"facts/{fact_id}", f"facts/{fact_id}/history", f"facts/{fact_id}/explain", "profile", "entities"):
            answer = await http.get(f"/v1/{path}", params={"user_id": "alice"})
            assert (answer.status_code, "Bern" in answer.text or path == "entities") == (200, True), answer.text
        text = (await http.post("/v1/context", json={"query": "Where to eat?", "user_id": "alice"})).json()["text"]
        assert "Alice lives in Bern." in text


async def test_keys_are_taken_until_they_end(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    good = await create(keys, tenant.tenant)
    refused = {
        "none": None,
        "another text": "secret",
        "another secret": good[:-4] + "AAAA",
        "another id": good.replace(good[4:8], "0000"),
        "expired": await create(keys, tenant.tenant, lifetime=timedelta(seconds=-1)),
    }
    for way, key in refused.items():
        async with caller(url, key) as http:
            answer = await http.get("/v1/facts", params={"user_id": "alice"})
            assert answer.status_code == 401, way
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "mnemolog keys create" in answer.json()["detail"]
    async with httpx.AsyncClient(base_url=url, headers={"X-API-Key": good}) as http:
        assert (await http.get("/v1/facts", params={"user_id": "alice"})).json() == {"items": [], "next": None}
    moments = [datetime.now(UTC)]
    store = KeyStore(keys._pool, now=lambda: moments[0])
    assert (await store.principal(good)).tenant == tenant.tenant
    key_id = good.split("_")[1]
    new, text = await store.rotate(key_id, grace=timedelta(hours=1))
    assert (await store.principal(text)).tenant == tenant.tenant
    moments[0] += timedelta(minutes=59)
    await store.principal(good)
    moments[0] += timedelta(minutes=2)
    with pytest.raises(NotAuthenticatedError):
        await store.principal(good)
    await store.revoke(new.key_id)
    moments[0] += timedelta(seconds=6)
    with pytest.raises(NotAuthenticatedError):
        await store.principal(text)
    with pytest.raises(UnknownKeyError, match="no valid key has the id or name"):
        await store.revoke(new.key_id)
    kept = await create(keys, tenant.tenant)
    await store.principal(kept)
    nowhere = ReadPool("postgresql://nobody@127.0.0.1:1/nothing", size=2, statement_timeout=5.0)
    store._pool = nowhere
    moments[0] += timedelta(minutes=50)
    assert (await store.principal(kept)).tenant == tenant.tenant  # while Postgres is away
    moments[0] += timedelta(minutes=20)
    with pytest.raises(ServerUnavailableError):
        await store.principal(kept)
    await nowhere.close()


async def test_nobody_gets_out_of_the_users_and_the_tenant_of_a_key(
    url: str, keys: KeyStore, tenant: TenantHarness
) -> None:
    """Bob has a secret, and so have a namesake in another tenant and an agent; Alice's key finds none of them."""
    everybody, other = await create(keys, tenant.tenant), await create(keys, f"{tenant.tenant}-2")
    alice = await create(keys, tenant.tenant, "alice")
    team = await create(keys, tenant.tenant, "al*")
    async with caller(url, everybody) as http, caller(url, other) as http2:
        secret = (await said(http, "I live in Basel.", "bob", turn_id="bob-1"))["added"][0]["fact_id"]
        await said(http, "I live in Basel.", "bob", run_id="r1")
        foreign = (await said(http2, "I live in Basel.", "alice", turn_id="foreign-1"))["added"][0]["fact_id"]
        agent = await http.post(
            "/v1/turns", params={"wait": 30}, json={"messages": "Basel is the code.", "agent_id": "bot", "infer": False}
        )
        assert agent.status_code == 200
        own = (await said(http, "I like tea.", "alice", turn_id="alice-1"))["added"][0]["fact_id"]
        entity_id = (await http.get("/v1/entities", params={"user_id": "bob"})).json()["items"][-1]["entity_id"]

    said_by = {"messages": "I live in Basel."}
    text, beside = {"text": "x"}, {"targets": [secret]}
    any_of = {"query": "Basel", "user_id": "alice"}
    ways: list[tuple[str, str, dict[str, Any]]] = [
        # Another user: in the query, the body, a batch, an export, an import, and by other spellings.
        *(("GET", path, {"params": {"user_id": user}})
          for path in ("/v1/facts", "/v1/profile", "/v1/export", "/v1/entities", "/v1/pending", "/v1/unresolved",
                       "/v1/diff?since=2020-01-01", "/v1/facts/as-of?believed_at=2100-01-01", "/v1/users", "/memories")
          for user in ("bob", "*", "**")),
        *(("GET", "/v1/facts", {"params": {"user_id": user}})
          for user in ("Alice", "ALICE", " alice", "alice ", "\u0430lice", "alice\u200b", "alice/../bob", "", "a\x00")),
        ("GET", "/v1/facts?user_id=alice&user_id=bob", {}),
        ("POST", "/v1/search", {"json": {"query": "Basel", "user_id": "bob"}}),
        ("POST", "/v1/context", {"json": {"query": "Basel", "user_id": "bob"}}),
        ("POST", "/v1/turns", {"json": {**said_by, "user_id": "bob"}}),
        ("POST", "/v1/turns/batch", {"json": {"turns": [{**said_by, "user_id": user} for user in ("alice", "bob")]}}),
        ("POST", "/v1/import", {"params": {"user_id": "bob"}, "content": b'{"text": "x"}'}),
        ("POST", "/v1/facts/delete-all", {"json": {"user_id": "bob"}}),
        ("POST", "/v1/facts/delete-all", {"json": {"user_id": "**"}}),
        # Another tenant.
        ("GET", "/v1/facts", {"params": {"user_id": "alice", "tenant": f"{tenant.tenant}-2"}}),
        ("POST", "/v1/search", {"json": {**any_of, "tenant": f"{tenant.tenant}-2"}}),
        ("POST", "/v1/search", {"json": {**any_of, "any": [{"tenant": f"{tenant.tenant}-2"}]}}),
        # Scopes and filters inside a search.
        ("POST", "/v1/search", {"json": {**any_of, "any": [{"user_id": "bob"}]}}),
        ("POST", "/v1/search", {"json": {**any_of, "any": [{}, {"user_id": "**", "run_id": "**"}]}}),
        ("POST", "/v1/search", {"json": {**any_of, "any": [{"user_id": None, "agent_id": "bot"}]}}),
        ("POST", "/v1/context", {"json": {**any_of, "any": [{"user_id": "bob"}]}}),
        ("POST", "/v1/search", {"json": {**any_of, "filters": {"user_id": "bob"}}}),
        ("POST", "/v1/search", {"json": {**any_of, "filters": {"OR": [{"user_id": "bob"}, {"user_id": "alice"}]}}}),
        ("GET", "/v1/facts", {"params": {"user_id": "alice", "filters": '{"OR": [{"user_id": "bob"}]}'}}),
        ("GET", "/v1/facts", {"params": {"filters": '{"user_id": "bob"}'}}),
        ("GET", "/v1/export", {"params": {"user_id": "alice", "filters": '{"user_id": "*"}'}}),
        ("POST", "/v1/facts/delete-all", {"json": {"user_id": "alice", "filters": {"user_id": "bob"}}}),
        # An agent of nobody, and a run of others.
        ("GET", "/v1/facts", {"params": {"agent_id": "bot"}}),
        ("POST", "/v1/search", {"json": {"query": "Basel", "agent_id": "bot"}}),
        ("POST", "/v1/facts/delete-all", {"json": {"run_id": "r1"}}),
        # Ids of others: of facts, turns, entities, and cursors, whole and shortened.
        *((method, f"/v1/facts/{fact_id}{rest}", {"params": {"user_id": user}})
          for fact_id in (secret, secret[:8], foreign) for user in ("alice", "bob")
          for method, rest in (("GET", ""), ("GET", "/history"), ("GET", "/explain"), ("DELETE", ""))),
        *((method, f"/v1/facts/{secret}{rest}", {"json": {**body, "user_id": "alice"}})
          for method, rest, body in (("PATCH", "", text), ("POST", "/correct", text), ("POST", "/confirm", {}),
                                     ("POST", "/reject", {}), ("POST", "/resolve", {"action": "keep_old"}))),
        ("POST", f"/v1/facts/{own}/resolve", {"json": {"user_id": "alice", "action": "keep_both", **beside}}),
        ("GET", "/v1/facts", {"params": {"user_id": "alice", "after": secret}}),
        ("GET", "/v1/turns/bob-1", {"params": {"user_id": "alice", "verbose": True}}),
        ("GET", "/v1/turns/foreign-1", {"params": {"user_id": "alice"}}),
        ("GET", "/v1/turns/bob-1/missing", {"params": {"user_id": "alice"}}),
        ("GET", "/v1/turns/bob-1", {"params": {"user_id": "bob"}}),
        ("POST", "/v1/undo", {"json": {"user_id": "alice", "turn_id": "bob-1"}}),
        ("GET", f"/v1/entities/{entity_id}", {"params": {"user_id": "alice"}}),
        ("GET", f"/v1/entities/{entity_id}/neighbours", {"params": {"user_id": "alice"}}),
        ("GET", "/v1/entities/Basel", {"params": {"user_id": "alice"}}),
        *(("POST", f"/v1/entities/{entity_id}/{order}", {"json": {**body, "user_id": user}})
          for order, body in (("rename", {"name": "Mine"}), ("alias", {"name": "Mine"}), ("forget", {"facts": True}),
                              ("merge", {"into": entity_id}), ("split", {"name": "Mine", "fact_ids": [secret]}))
          for user in ("alice", "bob")),
        # Into another scope, and about what was shown to others.
        *(("POST", "/v1/promote", {"json": {"user_id": "alice", **more}})
          for more in ({"fact_ids": [secret]}, {"turn_id": "bob-1"}, {"run_id": "r1", "into": {"user_id": "bob"}},
                       {"into": {"tenant": f"{tenant.tenant}-2"}}, {"filters": {"user_id": "bob"}})),
        ("POST", "/v1/promote", {"json": {"user_id": "bob", "run_id": "r1"}}),
        ("POST", "/v1/feedback", {"json": {"user_id": "bob", "shown": [secret], "used": []}}),
        ("POST", "/v1/end-session", {"json": {"user_id": "bob"}}),
        # The routes of mem0.
        ("GET", "/memories", {"params": {"agent_id": "bot"}}),
        *((method, f"/memories/{secret}{rest}", more)
          for method, rest, more in (("GET", "", {}), ("GET", "/history", {}), ("PUT", "", {"json": text}),
                                     ("DELETE", "", {}))),
        ("POST", "/search", {"json": {"query": "Basel", "user_id": "bob"}}),
        ("POST", "/search", {"json": {"query": "Basel", "filters": {"user_id": "bob"}}}),
        ("POST", "/search", {"json": {"query": "Basel", "filters": {"AND": [{"user_id": "bob"}]}}}),
        ("POST", "/search", {"json": {"query": "Basel", "filters": {"user_id": {"in": ["bob"]}}}}),
        ("POST", "/memories", {"json": {**said_by, "user_id": "bob"}}),
        ("DELETE", "/memories", {"params": {"user_id": "bob"}}),
        ("DELETE", "/memories", {"params": {"run_id": "r1"}}),
    ]  # fmt: skip
    for key in (alice, team):
        async with caller(url, key) as http:
            for method, path, given in ways:
                answer = await http.request(method, path, **given)
                way = f"{method} {path} {given}: {answer.status_code} {answer.text}"
                assert "Basel" not in answer.text.replace(f"'{path.rpartition('/')[2]}'", ""), way
                assert "bob" not in answer.text.replace(repr(given), "") or answer.status_code in (403, 404, 422), way
                assert answer.status_code < 500, way
    async with caller(url, everybody) as http, caller(url, other) as http2:
        kept = [(await http.get(f"/v1/facts/{secret}")).json(), (await http2.get(f"/v1/facts/{foreign}")).json()]
        assert [(fact["text"], fact["status"]) for fact in kept] == [
            ("Bob lives in Basel.", "active"),
            ("Alice lives in Basel.", "active"),
        ]
        assert len((await http.get("/v1/facts", params={"user_id": "bob", "run_id": "**"})).json()["items"]) == 2
        assert len((await http.get("/v1/facts", params={"agent_id": "bot"})).json()["items"]) == 1


async def test_the_end_of_a_record_without_a_scope_is_nobodys(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    await publish(tenant.kafka, tenant.topic("conversation_turns"), [(b"x", b'{"turn_id": "t", "secret": 1}')])
    query = "SELECT source_id FROM commits WHERE tenant = '' AND tenant <> %s"

    async def has_ended() -> bool:
        return bool(await tenant.rows(query))

    await wait_until(has_ended)
    found = (await tenant.rows(query))[0]
    async with caller(url, await create(keys, tenant.tenant)) as http:
        for path in (found["source_id"], f"{found['source_id']}?wait=5"):
            assert (await http.get(f"/v1/turns/{path}")).status_code == 404
        streamed = await http.get(f"/v1/turns/{found['source_id']}/events")
    assert streamed.text.startswith("event: problem")


async def test_a_key_does_what_it_has_the_right_to(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    turn = {"messages": "Hi.", "user_id": "alice"}
    requests: dict[str, tuple[str, str, dict[str, Any]]] = {
        "publish": ("POST", "/v1/turns", {"json": turn}),
        "read": ("GET", "/v1/facts", {"params": {"user_id": "alice"}}),
        "command": ("POST", "/v1/facts/delete-all", {"json": {"user_id": "alice"}}),
        "admin": ("GET", "/metrics", {}),
    }
    for right in RIGHTS:
        async with caller(url, await create(keys, tenant.tenant, rights=[right])) as http:
            for name, (method, path, given) in requests.items():
                answer = await http.request(method, path, **given)
                assert (answer.status_code == 403) == (name != right), answer.text
            if right != "read":
                waiting = await http.post("/v1/turns", params={"wait": 1}, json=turn)
                assert waiting.status_code == 403


async def test_a_quota_answers_403_with_count_and_limit(url: str, keys: KeyStore, tenant: TenantHarness) -> None:

    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        await memory.admin.set_policy({"limits": {"active_facts": 1}}, wait=True)
    async with caller(url, await create(keys, tenant.tenant)) as http:
        await said(http, "I live in Bern.")
        body = {"messages": "I like tea.", "user_id": "alice", "turn_id": "t2"}
        answer = await http.post("/v1/turns", params={"wait": 30}, json=body)
        assert answer.status_code == 403
        assert answer.json() | {"detail": ""} == {
            "type": "urn:mnemolog:problem:LimitExceeded",
            "title": "Forbidden",
            "status": 403,
            "detail": "",
            "limit": {"name": "active_facts", "level": "tenant", "count": 1, "limit": 1},
            "turn_id": "t2",
            "request_id": answer.headers["x-request-id"],
        }


async def test_pages_export_import_and_events(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    async with caller(url, await create(keys, tenant.tenant)) as http:
        turns = [
            {"messages": [{"role": "user", "content": text}], "user_id": "alice", "turn_id": f"t{number}"}
            for number, text in enumerate(["I live in Bern.", "I own a dog.", "I like tea."])
        ]
        sent = await http.post("/v1/turns/batch", json={"turns": turns})
        assert [one["turn_id"] for one in sent.json()["results"]] == ["t0", "t1", "t2"]
        async with http.stream("GET", "/v1/turns/t2/events", params={"user_id": "alice"}) as stream:
            events = [line async for line in stream.aiter_lines()]
        assert events[-3] == "event: end"
        assert json.loads(events[-2].removeprefix("data: "))["status"] == "stored"
        seen, after = [], None
        while True:
            params: Any = {"user_id": "alice", "limit": 2} | ({} if after is None else {"after": after})
            page = (await http.get("/v1/facts", params=params)).json()
            seen += [fact["text"] for fact in page["items"]]
            if (after := page["next"]) is None:
                break
        assert len(seen) == len(set(seen)) == 3
        lines = (await http.get("/v1/export", params={"user_id": "alice"})).content
        assert [json.loads(line)["text"] for line in lines.splitlines()] == seen
        assert (await http.get("/v1/export", params={"user_id": "nobody"})).content == b""
        assert (await http.get("/v1/export")).status_code == 422
        report = await http.post("/v1/import", params={"user_id": "carla", "wait": 30}, content=lines)
        assert (report.json()["sent"], report.json()["added"]) == (3, 3)
        assert [one["id"] for one in (await http.get("/v1/users")).json()] == ["alice", "carla"]
        assert (await http.get("/v1/failed-turns")).json() == []


async def test_commands_change_and_undo(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    async with caller(url, await create(keys, tenant.tenant, "alice")) as http:
        fact_id = (await said(http, "I live in Bern."))["added"][0]["fact_id"]
        wait = {"wait": 30}
        done = await http.patch(f"/v1/facts/{fact_id}", params=wait, json={"text": "Alice lives in Basel."})
        assert (done.status_code, done.json()["success"]) == (200, True), done.text
        assert done.json()["actor"].startswith("key:")
        bonn = {"text": "Alice lives in Bonn.", "categories": ["identity", "travel"]}
        right = await http.post(f"/v1/facts/{fact_id}/correct", params=wait, json=bonn)
        assert right.json()["success"], right.text
        undone = await http.post("/v1/undo", params=wait, json={"turn_id": right.json()["turn_id"]})
        assert undone.json()["success"], undone.text
        assert [one["text"] for one in (await http.get("/v1/facts")).json()["items"]] == ["Alice lives in Basel."]
        gone = await http.delete(f"/v1/facts/{fact_id}", params=wait)
        assert gone.json()["success"], gone.text
        assert (await http.get("/v1/facts")).json()["items"] == []
        changed = (await http.get("/v1/diff", params={"since": "2020-01-01"})).json()
        assert [one["text"] for one in changed["added"]] == ["Alice lives in Bern."]


async def test_a_program_for_mem0_works(url: str, keys: KeyStore, tenant: TenantHarness) -> None:
    key = await create(keys, tenant.tenant)
    async with httpx.AsyncClient(base_url=url, headers={"X-API-Key": key}, timeout=60) as http:
        body = {"messages": [{"role": "user", "content": "I live in Bern."}], "user_id": "alice", "metadata": {"a": 1}}
        (added,) = (await http.post("/memories", json=body)).json()["results"]
        assert added.keys() == {"id", "memory", "event"}
        assert added["event"] == "ADD"
        path = f"/memories/{added['id']}"
        memory = (await http.get(path)).json()
        assert memory.keys() >= {"id", "memory", "hash", "created_at", "updated_at", "user_id", "metadata"}
        assert (memory["memory"], memory["user_id"], memory["metadata"]) == (added["memory"], "alice", {"a": 1})
        listed = await http.get("/memories", params={"user_id": "alice"})
        assert listed.json() == {"results": [memory]}
        for where in ({"user_id": "alice"}, {"filters": {"user_id": "alice"}}):
            found = (await http.post("/search", json={"query": "Where?", "top_k": 3, **where})).json()["results"]
            assert [one["memory"] for one in found] == [memory["memory"]]
            assert found[0]["score"] > 0
        changed = await http.put(path, json={"text": "The user lives in Basel."})
        assert changed.json() == {"message": "Memory updated successfully!"}
        history = (await http.get(f"{path}/history")).json()
        assert [(one["event"], one["new_memory"]) for one in history] == [
            ("ADD", memory["memory"]),
            ("UPDATE", "The user lives in Basel."),
        ]
        assert (await http.delete(path)).json() == {"message": "Memory deleted successfully"}
        assert (await http.get("/memories", params={"user_id": "alice"})).json() == {"results": []}
        assert (await http.get(f"{path}/history")).json()[-1]["event"] == "DELETE"
        assert (await http.get(path)).status_code == 404
        for again in (await http.put(path, json={"text": "The user lives in Bonn."}), await http.delete(path)):
            assert (again.status_code, "closed_fact" in again.json()["detail"]) == (422, True)
        await http.post("/memories", json=body | {"run_id": "r1"})
        assert len((await http.get("/memories", params={"run_id": "r1"})).json()["results"]) == 1
        assert (await http.delete("/memories")).status_code == 422
        no_id = await http.delete("/memories/", params={"run_id": "r1"})
        assert (no_id.status_code, len((await http.get("/memories", params={"run_id": "r1"})).json()["results"])) == (
            404,
            1,
        )
        gone = await http.delete("/memories", params={"run_id": "r1"})
        assert gone.json() == {"message": "All relevant memories deleted"}
        assert (await http.get("/memories")).json() == {"results": []}


async def test_a_stop_ends_requests_that_wait_and_health_says_so(shared_worker: StreamsSettings) -> None:
    settings = Settings.model_validate(shared_worker.model_dump() | {"http_port": 0})
    async with httpx.AsyncClient(timeout=60) as http:
        async with serving(settings, without_keys=True) as served:
            assert [(await http.get(f"{served}/health/{name}")).status_code for name in ("live", "ready")] == [200, 200]
            alice: Any = {"user_id": "alice"}
            waiting = asyncio.create_task(http.get(f"{served}/v1/turns/never", params=alice | {"wait": 60}))
            request = http.build_request("GET", f"{served}/v1/turns/never/events", params=alice)
            stream = await http.send(request, stream=True)
            assert (await http.get(f"{served}/health/ready")).status_code == 200
            assert not waiting.done()
        assert (await waiting).status_code == 404
        assert await stream.aread() == b""


@asynccontextmanager
async def assistant(url: str, key: str, *, mode: str = "auto", query: str = "") -> AsyncIterator[Client]:
    """The SDK's client with a key at `/mcp`."""
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(f"{url}/mcp{query}", http_client=http), mode=mode) as client,
    ):
        yield client


async def told(client: Client, tool: str, /, **arguments: Any) -> str:
    """What a tool answers, a refusal among it."""
    result = await client.call_tool(tool, arguments)
    return " ".join(one.text for one in result.content if one.type == "text")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_assistant_has_the_tools_with_the_rights_of_its_key(
    url: str, keys: KeyStore, tenant: TenantHarness, mode: str
) -> None:
    name = tenant.tenant
    async with assistant(url, await create(keys, name, "alice"), mode=mode) as client:
        assert len((await client.list_tools()).tools) == 10
        assert "Bern" in await told(client, "add_memory", text="I live in Bern.")
    async with assistant(url, await create(keys, name, "alice", ["read"]), mode=mode) as reader:
        assert "Bern" in await told(reader, "get_memories")
        assert "this needs the right publish" in await told(reader, "add_memory", text="I live in Bonn.")
    everybody = await create(keys, name)
    async with assistant(url, everybody, mode=mode) as client:
        assert "/mcp?user_id=alice" in await told(client, "get_memories")
    async with assistant(url, everybody, mode=mode, query="?user_id=alice") as client:
        assert "Bern" in await told(client, "get_memories")
    async with assistant(url, await create(keys, name, "bob"), mode=mode, query="?user_id=alice") as client:
        assert "is none of them" in await told(client, "get_memories")


async def test_who_has_no_key_gets_no_tool(url: str) -> None:
    async with caller(url, None) as http:
        refused = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await http.get("/mcp")).status_code == 405


async def test_where_servers_are_is_told_to_nobody_who_asks_over_http(keys: KeyStore) -> None:
    key = await create(keys, "default", "alice")
    async with AsyncMemoryClient(kafka="127.0.0.1:9", postgres="postgresql://127.0.0.1:9/none") as away:
        gate = Gate(away, tenant="default", keys=keys)
        app = build_app(away, gate, max_body=2000)
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
        transport = httpx.ASGITransport(app)
        async with (
            offering_tools(app, gate, "core"),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http,
        ):
            call = {"name": "get_memories", "arguments": {}}
            answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert "not available at the moment" in answer.text
    assert "127.0.0.1" not in answer.text
