"""The application without servers: no route without a right, without keys local programs alone, advice in problems."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from inline_snapshot import snapshot

from mnemolog import errors
from mnemolog.client.administration import AdminMethods
from mnemolog.client.base import Order
from mnemolog.client.commands import CommandMixin
from mnemolog.client.entities import EntityMethods
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.audit import FailedTurn
from mnemolog.schemas.policy import LimitHit
from mnemolog.server import frame, serve, turns
from mnemolog.server.access import EVERYBODY, NotAuthenticatedError, Principal, Right, UserPattern
from mnemolog.server.app import PUBLIC, build_app
from mnemolog.server.gate import Access, Authorise, Gate, RateLimit, TooManyRequestsError
from mnemolog.server.operations import Pipe
from mnemolog.server.problems import STATUSES, status_of
from mnemolog.settings import Settings, load_settings
from mnemolog.testing import AsyncInMemoryClient
from tests.support.harnesses.offline_client import OfflineClient


def local_app(**gate: Any) -> tuple[FastAPI, OfflineClient]:
    client = OfflineClient()
    return build_app(client, Gate(client, tenant="default", keys=None, **gate), max_body=2000), client


def browser(app: FastAPI, **headers: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8464", headers=headers)


def calls(dependant: Dependant) -> Iterator[Any]:
    for one in dependant.dependencies:
        yield one.call
        yield from calls(one)


def test_every_route_asks_for_a_right() -> None:
    app, _ = local_app()
    walked = {one.path or "": one.original_route for one in iter_route_contexts(app.routes)}
    assert all(isinstance(route, APIRoute) for route in walked.values())
    rights = {
        path: [call for call in calls(route.dependant) if isinstance(call, Authorise)]
        for path, route in walked.items()
        if isinstance(route, APIRoute)
    }
    assert sorted(path for path, asked in rights.items() if not asked) == sorted(PUBLIC)
    assert len(walked) > 30


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 202),
        ({"Host": "localhost:1"}, 202),
        ({"Origin": "http://localhost:3000"}, 202),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
async def test_without_keys_no_web_page_of_others_gets_in(headers: Mapping[str, str], status: int) -> None:
    app, client = local_app()
    async with browser(app, **headers) as http:
        answer = await http.post("/v1/turns", json={"messages": "I live in Bern.", "user_id": "alice", "turn_id": "t1"})
    assert answer.status_code == status
    assert len(client.producer.records) == (status == 202)
    if status == 202:
        assert answer.json()["turn_id"] == "t1"
    else:
        assert "programs of this machine alone" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/page/facts?user_id=alice&believed=1001", 422),
        ("GET", "/page/diff?user_id=alice&since=soon", 422),
        ("GET", "/page/diff?user_id=alice&axis=other", 422),
        ("GET", "/page/fact?user_id=alice", 422),
        ("GET", f"/page/search?user_id=alice&q={'a' * 2001}", 422),
        ("GET", "/page/static/other.js", 422),
        ("GET", "/page/fact?user_id=alice&fact_id=00000000", 404),
        ("GET", "/page/nothing", 404),
        ("DELETE", "/page/facts", 405),
        ("POST", "/page/settle", 422),
        ("POST", "/page/settle?what=confirm", 422),
        ("GET", "/page/people?user_id=alice", 500),
    ],
)
async def test_whatever_is_wrong_with_a_page_is_said_on_a_page(method: str, path: str, status: int) -> None:
    async with AsyncInMemoryClient() as client:
        app = build_app(client, Gate(client, tenant="default", keys=None), max_body=2000)
        async with browser(app) as http:
            answer = await http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert 'role="alert"' in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


async def test_the_sliders_lead_from_the_first_moments_to_now() -> None:
    async with AsyncInMemoryClient() as client:
        app = build_app(client, Gate(client, tenant="default", keys=None), max_body=2000)
        async with browser(app) as http:
            assert "0 facts" in (await http.get("/page/facts", params={"user_id": "alice", "true": 0})).text
            await client.add("I live in Bern.", user_id="alice", occurred_at="2020-05-01")
            await client.add("I moved from Bern to Bonn.", user_id="alice", occurred_at="2024-05-01")
            first = await http.get("/page/facts", params={"user_id": "alice", "true": 0})
            now = await http.get("/page/facts", params={"user_id": "alice"})
    assert "2020-05-01 00:00 (UTC)" in first.text
    assert ("Bern" in first.text, "Bonn" in first.text) == (True, False)
    assert ("Bern" in now.text, "Bonn" in now.text) == (False, True)


async def test_the_page_of_failed_turns_says_what_turns_wait_for_and_nothing_of_another_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def failed_turns(*_: object, **__: object) -> list[FailedTurn]:
        end: Any = {"status": "failed", "reason": "invalid_record", "attempt": 1, "published_at": None}
        whose: Any = dict.fromkeys(("user_id", "agent_id", "app_id", "run_id", "decided_at"))
        rest = {**end, **whose, "position": "", "can_retry": False}
        return [FailedTurn(turn_id="1", tenant=tenant, detail=f"of {tenant!r}", **rest) for tenant in ("default", "")]

    async def problems(_: object) -> list[str]:
        return ["chat m: the server refuses the key"]

    monkeypatch.setattr(AdminMethods, "failed_turns", failed_turns)
    monkeypatch.setattr(AsyncInMemoryClient, "_problems", problems)
    async with AsyncInMemoryClient() as client:
        app = build_app(client, Gate(client, tenant="default", keys=None), max_body=2000)
        async with browser(app) as http:
            text = (await http.get("/page/failed")).text
    assert ["of &#39;default&#39;" in text, "of &#39;&#39;" in text] == [True, False]
    assert "refuses the key" in text


@pytest.mark.parametrize(
    ("method", "more"), [("GET", ""), ("GET", "/relations"), ("GET", "/neighbours"), ("POST", "/forget")]
)
async def test_a_name_with_a_slash_is_a_name_in_a_path(method: str, more: str) -> None:
    async with AsyncInMemoryClient() as client:
        app = build_app(client, Gate(client, tenant="default", keys=None), max_body=2000)
        async with browser(app) as http:
            scope: Any = {"json" if method == "POST" else "params": {"user_id": "alice"}}
            answer = await http.request(method, f"/v1/entities/A%2FB{more}", **scope)
    assert answer.json()["type"] == "urn:mnemolog:problem:NotInMemory"  # the client looks the name up


@pytest.mark.parametrize("several", [5, [5], {"user_id": "bob"}, [{"user_id": ["bob"]}], [{"user_id": 5}]])
def test_what_is_no_list_of_scopes_is_told_before_it_is_authorised(several: object) -> None:
    principal = Principal(name="key:1", tenant="default", rights=frozenset({"read"}), users=UserPattern.read("alice"))
    with pytest.raises(QueryError, match=r"^any"):
        Access(principal, local_app()[1]).scopes(several)


async def test_a_body_that_does_not_come_ends_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "BODY_SECONDS", 0.01)

    async def part() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    app, client = local_app()
    async with browser(app) as http:
        answer = await http.post("/v1/turns", content=part())
    assert (answer.status_code, len(client.producer.records)) == (408, 0)
    assert "send it again" in answer.json()["detail"]


async def test_a_stream_of_an_unknown_turn_ends_as_waiting_for_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "ALIVE_SECONDS", 0.01)
    async with AsyncInMemoryClient() as client:
        app = build_app(client, Gate(client, tenant="default", keys=None), max_body=2000)
        async with browser(app) as http:
            await http.post("/v1/turns", json={"messages": "I live in Bern.", "user_id": "alice", "turn_id": "t1"})
            known = await http.get("/v1/turns/t1/events", params={"user_id": "alice"})
            unknown = await http.get("/v1/turns/t2/events", params={"user_id": "alice"})
            polled = await http.get("/v1/turns/t2", params={"user_id": "alice", "wait": 0.01})
    assert known.text.startswith("event: end\ndata: {")
    name, data, *_ = unknown.text.splitlines()
    assert name == "event: problem"
    assert polled.status_code == 404
    assert json.loads(data.removeprefix("data: ")) | polled.json() == polled.json() | {"request_id": ANY}


class KnownText:
    """Knows whose one text is."""

    def __init__(self, text: str, *rights: Right) -> None:
        self._text, self._rights = text, frozenset(rights or ("publish",))

    async def principal(self, text: str) -> Principal:
        if text != self._text:
            raise NotAuthenticatedError("unknown")
        return Principal(name="key:1", tenant="acme", rights=self._rights, users=EVERYBODY)


@pytest.mark.parametrize(
    ("kinds", "headers", "detail"),
    [
        ("keys", {"Authorization": "Bearer mnl_1"}, ""),
        ("keys", {"Authorization": "bearer  mnl_1"}, ""),
        ("keys", {"X-API-Key": "mnl_1"}, ""),
        ("keys tokens", {"X-API-Key": "mnl_1"}, ""),
        ("keys tokens", {"Authorization": "Bearer ey.1"}, ""),
        ("tokens", {"Authorization": "Bearer ey.1"}, ""),
        ("keys", {}, "has no key"),
        ("keys", {"Authorization": "Bearer mnl_2"}, "unknown"),
        ("keys", {"Authorization": "Basic mnl_1"}, "has no key"),
        ("keys", {"Authorization": "mnl_1"}, "has no key"),
        ("keys", {"Authorization": "Bearer ey.1"}, "takes no tokens"),
        ("tokens", {"Authorization": "Bearer mnl_1"}, "takes no keys"),
        ("tokens", {"X-API-Key": ""}, "has no key"),
    ],
)
async def test_a_request_has_a_key_or_a_token_that_is_known(
    kinds: str, headers: Mapping[str, str], detail: str
) -> None:
    client = OfflineClient()
    keys = KnownText("mnl_1") if "keys" in kinds else None
    tokens = KnownText("ey.1") if "tokens" in kinds else None
    app = build_app(client, Gate(client, tenant="default", keys=keys, tokens=tokens), max_body=2000)
    async with browser(app, **headers) as http:
        answer = await http.post("/v1/turns", json={"messages": "Hi.", "user_id": "alice"})
    assert (answer.status_code, len(client.producer.records)) == ((401, 0) if detail else (202, 1))
    assert detail in answer.json().get("detail", "")


@pytest.mark.parametrize(
    ("rights", "turns", "status"),
    [
        (("command",), False, 200),
        (("command",), True, 403),
        (("publish",), True, 403),
        (("command", "publish"), True, 200),
    ],
)
async def test_an_import_of_conversations_needs_the_right_to_publish(
    rights: tuple[Right, ...], turns: bool, status: int
) -> None:
    client = OfflineClient()
    gate = Gate(client, tenant="default", keys=KnownText("mnl_1", *rights))
    said = {"messages": "I live in Bern.", "turn_id": "t1", "occurred_at": "2026-01-01T00:00:00Z"}
    lines = b"\n".join(json.dumps(one).encode() for one in ({"text": "A."}, said if turns else {"text": "B."}))
    async with browser(build_app(client, gate, max_body=2000), **{"X-API-Key": "mnl_1"}) as http:
        answer = await http.post("/v1/import", params={"user_id": "alice"}, content=lines)
    assert (answer.status_code, len(client.producer.records)) == (status, 2 if status == 200 else 0)


async def test_a_thread_that_writes_an_export_ends_where_nobody_reads_on() -> None:
    pipe = Pipe()
    loop = asyncio.get_running_loop()
    written = loop.run_in_executor(None, lambda: [pipe.write(b"x") for _ in range(100)])
    assert await pipe.read_batch() == b"x"
    pipe.abandon()
    with pytest.raises(BrokenPipeError):
        await written


async def test_a_problem_says_what_to_do_and_has_the_id_of_the_request() -> None:
    app, client = local_app()
    async with browser(app, **{"X-Request-Id": "abc-1"}) as http:
        wrong = [
            await http.post("/v1/turns", json={"messages": "Hi.", "user": "alice"}),
            await http.post("/v1/turns", json={"messages": "Hi."}),
            await http.post("/v1/turns", content=b"{"),
            await http.post("/v1/turns", json={"messages": "a" * 2000, "user_id": "alice"}),
            await http.get("/v1/nothing"),
            await http.get("/v1/facts", params={"user_id": "alice", "filters": "["}),
            await http.get("/v1/facts", params={"user_id": "alice", "filter": "{}"}),
            await http.post("/v1/facts/delete-all", params={"key": "home_city"}, json={"user_id": "alice"}),
            await http.post("/v1/turns", json={"messages": 5, "user_id": "alice"}),
            await http.post("/v1/search", json={"query": "home", "user_id": "alice", "include": "people"}),
            await http.get("/v1/facts", params={"user_id": "alice", "limit": "a"}),
            await http.post("/v1/turns", content=b"{}"),
            await http.post("/v1/turns", json=["Hi."]),
            await http.post("/v1/turns/batch", json={"turns": []}),
            await http.post("/v1/turns", content=b"[" * 1999, headers={"Content-Type": "application/json"}),
        ]
    assert [answer.status_code for answer in wrong] == [422] * 3 + [413, 404] + [422] * 9 + [400]
    assert not client.producer.records
    assert {answer.headers["content-type"] for answer in wrong} == {"application/problem+json"}
    assert (
        {answer.headers["x-request-id"] for answer in wrong}
        == {answer.json()["request_id"] for answer in wrong}
        == {"abc-1"}
    )
    assert [answer.json()["detail"] for answer in wrong] == snapshot(
        [
            "user is not a known field: check its name",
            "give a user_id or an agent_id",
            "send a JSON object with the header Content-Type: application/json",
            "Request Entity Too Large: send it in parts, or raise MNEMOLOG_HTTP_MAX_BODY",
            "Not Found: see /openapi.json",
            'filters is not valid JSON (unexpected end of data: line 1 column 2 (char 1)): write {"categories": "health"}',  # noqa: E501 - a sentence
            "filter: this route has no such parameter in its query",
            "key: this route has no such parameter in its query",
            "messages must be a text, or a list of messages with role and content, not int",
            "include.0 must be 'facts' or 'turns', not 'people'",
            "limit must be a whole number, not text",
            "send a JSON object with the header Content-Type: application/json",
            "send a JSON object with the header Content-Type: application/json",
            "turns must have at least 1 item, not 0",
            "There was an error parsing the body: send JSON in UTF-8 that is not nested deeply",
        ]
    )


def test_every_error_of_the_package_has_a_status_and_embedded_ones_are_faults_of_the_server() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.MnemologError)]
    unmapped = {kind.__name__ for kind in kinds if not any(base in STATUSES for base in kind.__mro__)}
    embedded = {kind.__name__ for kind in kinds if issubclass(kind, errors.EmbeddedError)}
    assert unmapped == {*embedded, "MnemologError", "MissingExtraError", "UnknownArgumentError"}
    hit = LimitHit(name="active_facts", level="scope", count=5, limit=5)
    assert status_of(errors.LimitExceededError("t1", hit)) == 403


def test_every_command_of_the_client_has_a_route() -> None:
    app, _ = local_app()
    commands = {
        name for owner in (CommandMixin, EntityMethods) for name, one in vars(owner).items() if isinstance(one, Order)
    }
    walked = (one.original_route for one in iter_route_contexts(app.routes))
    routes = {one.name.rpartition(".")[2] for one in walked if isinstance(one, APIRoute)}
    assert commands - routes == set()


def test_a_principal_sends_so_many_requests_and_no_more() -> None:
    now = [0.0]
    limit = RateLimit(2.0, clock=lambda: now[0])
    for _ in range(4):
        limit.take("key:1")
    with pytest.raises(TooManyRequestsError, match=r"more than 2 requests a second: send the next one after 1 s"):
        limit.take("key:1")
    limit.take("key:2")
    now[0] = 0.5
    limit.take("key:1")
    with pytest.raises(TooManyRequestsError):
        limit.take("key:1")


async def test_a_request_too_many_is_answered_429() -> None:
    app, _ = local_app(rate=0.5)
    async with browser(app) as http:
        answers = [await http.get("/v1/profile", params={"user_id": "*"}) for _ in range(2)]
    assert [answers[-1].status_code, answers[-1].headers["retry-after"]] == [429, "2"]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - that is refused
        ("::", False),
        ("10.0.0.1", False),
        ("example", False),
    ],
)
async def test_without_keys_only_this_machine_is_served(host: str, loopback: bool) -> None:
    assert serve.is_loopback(host) is loopback
    if not loopback:
        with pytest.raises(errors.SettingsError, match="everybody could read all memory: make a key by `mnemolog keys"):
            async with serve.serving(Settings(http_host=host), without_keys=True):
                pass


def test_tokens_need_an_audience_and_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_JWKS_URL", "https://issuer.example/keys")
    with pytest.raises(errors.SettingsError, match="MNEMOLOG_JWKS_URL needs MNEMOLOG_JWT_AUDIENCE"):
        load_settings()
