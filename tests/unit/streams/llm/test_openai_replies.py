"""Where a server is asked, and what is read of its replies."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from mnemolog.streams.llm.openai_models import (
    Endpoint,
    OpenAiChatModel,
    create_client,
    reply_of,
    retry_after,
    tokens_of,
)
from mnemolog.streams.llm.ports import ProviderConfigurationError, Reply
from mnemolog.streams.runtime import models
from mnemolog.streams.settings import Fallback, StreamsSettings
from tests.simulation.servers.models import StoredReplies
from tests.support.polling import eventually
from tests.support.servers.openai_server import OpenAiServer


@pytest.mark.parametrize("path", ["", "/", "?x=1"])
async def test_an_endpoint_is_below_the_address_of_its_server(path: str) -> None:
    with OpenAiServer() as server:
        server.keep_bodies = True
        model = OpenAiChatModel(Endpoint(base_url=f"{server.base_url}{path}", api_key="k"), "m")
        assert isinstance(await model.probe(), Reply)
        await model.close()
        assert server.urls == [f"/v1/chat/completions?{path.removeprefix('?') if '?' in path else ''}"]


@pytest.mark.parametrize("name", ["small", "x" * 3000])
def test_a_name_that_fits_into_no_index_is_cut(name: str) -> None:
    body = {"model": name, "choices": [{"message": {"content": "{}"}}], "usage": None}
    reply = reply_of("asked", None, json.dumps(body).encode())
    assert isinstance(reply, Reply)
    assert reply.model == name[:200]


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({"cached_tokens": 6}, 6),
        ({"cached_tokens": 60}, 10),
        ({"cached_tokens": None}, None),
        ({}, None),
        (None, None),
        ("many", None),
    ],
)
def test_what_a_server_had_in_its_cache_is_read_where_it_tells(details: object, cached: int | None) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": details}
    tokens = tokens_of({"usage": usage})
    assert (tokens.input_tokens, tokens.cached_tokens) == (10, cached)


@pytest.mark.parametrize("told", [-1, None, 1.5, True, "7", 2**31, 10**30, [], {}])
def test_what_is_no_count_of_tokens_is_none_and_refuses_no_reply(told: object) -> None:
    for usage in ({"prompt_tokens": told, "completion_tokens": 2}, told):
        assert tokens_of({"usage": usage}).input_tokens == 0


def test_retry_after_comes_as_seconds_milliseconds_or_date() -> None:
    now = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
    assert retry_after({"retry-after": "7"}, now) == 7
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}, now) == 0.25
    for seconds, expected in ((90, 90), (-90, 0), (1e9, 86400)):
        date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
        assert retry_after({"retry-after": date}, now) == expected
    for unread in ({"retry-after": "soon"}, {"retry-after": "nan"}, {}):
        assert retry_after(unread, now) is None


def test_a_missing_key_is_said_at_start_and_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderConfigurationError, match="MNEMOLOG_API_KEY"):
        create_client(Endpoint())
    assert create_client(Endpoint(base_url="http://127.0.0.1:9/v1")).api_key == "none"
    assert "secret" not in repr(Endpoint(api_key="secret"))


async def test_a_start_tells_each_model_and_server_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAiServer() as server, OpenAiServer() as other, OpenAiServer() as small, capture_logs() as logs:
        fallbacks = (Fallback(base_url=other.base_url, embeds=True), Fallback(base_url=small.base_url, chat_model="s"))
        hanging, refusing = server.base_url, other.base_url
        settings = StreamsSettings(
            provider="openai",
            base_url=hanging,
            api_key=SecretStr("k"),
            chat_model="c",
            resolve_model="r",
            embedding_model="e",
            fallbacks=fallbacks,
        )
        assert await models.failing_models(settings) == {}
        expected = [{"chat": 2, "embeddings": 1}, {"chat": 2, "embeddings": 1}, {"chat": 1}]
        assert ([dict(one.requests) for one in (server, other, small)], logs) == (expected, [])
        server.fail(mode="hang", times=None)
        other.fail(mode="status", status=401, times=None, path="chat", containing='"r"')
        monkeypatch.setattr(models, "PROBE_SECONDS", 4.0)
        asking = asyncio.create_task(models.failing_models(settings))
        await eventually(lambda: server.requests == {"chat": 4, "embeddings": 2})
        # They are asked at once, before the first has failed.
        assert all(one["server"] != hanging for one in logs)
        assert await asking == {}  # a fallback may do for it
        alone = settings.model_copy(update={"base_url": refusing, "fallbacks": ()})
        told = await models.failing_models(alone)
    assert told == {"resolve r": "at the start the server refuses the key: correct MNEMOLOG_API_KEY (http_401)"}
    failed = {(one["model"], one["server"]) for one in logs if one["event"] == "model_fails"}
    assert failed == {(name, hanging) for name in "cre"} | {("r", refusing)}
    assert {"no reply within 4 s" in one["problem"] for one in logs if one.get("server") == hanging} == {True}


KEY = "sk-proj-abcdefghijklmnop1234"


@pytest.mark.parametrize(
    "quoted", [KEY, f"'{KEY}'", f"{KEY[:8]}********{KEY[-4:]}", f"Bearer {KEY},", f"...{KEY[-4:]}"]
)
async def test_no_key_that_a_server_quotes_is_shown_or_logged(quoted: str) -> None:
    with OpenAiServer() as server, capture_logs() as logs:
        body = {"error": {"message": f"Incorrect API key provided: {quoted}. Ask temperature."}}
        server.fail(mode="as_is", times=1, status=400, body=body)
        asked = Endpoint(base_url=server.base_url, api_key=KEY)
        model = OpenAiChatModel(asked, "m")
        assert isinstance(await model.probe(), Reply)
        await model.close()
    shown = f"{logs} {asked.problems}"
    assert "Incorrect API key provided: " in shown
    assert not any(part in shown for part in (KEY[:8], KEY[-4:]))


async def test_the_model_of_stored_vectors_is_kept() -> None:
    settings = StreamsSettings(provider="openai", base_url="http://127.0.0.1:9/v1", embedding_model="e")
    kept = models.StageModels(settings, StoredReplies(), stored=("e", 8))
    kept.build_for("embed")
    await kept.close()
    with pytest.raises(
        ProviderConfigurationError, match="vectors of former, which cannot be compared with those of e: set MN"
    ):
        models.StageModels(settings, StoredReplies(), stored=("former", 8)).build_for("embed")
