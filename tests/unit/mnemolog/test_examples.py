import runpy

import httpx
import pytest

import mnemolog
from mnemolog.testing import AsyncInMemoryClient
from tests.support.paths import ROOT
from tests.support.servers.canned_replies import ChatRequest
from tests.support.servers.openai_server import OpenAiServer


def repeat_prompt(request: ChatRequest) -> str:
    return " ".join(message["content"] for message in request.body["messages"])


async def test_the_chat_over_http_remembers_each_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnemolog, "AsyncMemoryClient", AsyncInMemoryClient)
    monkeypatch.setenv("MODEL", "some-model")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    app = runpy.run_path(str(ROOT / "examples/fastapi_chat.py"))["app"]
    with OpenAiServer(repeat_prompt) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        transport = httpx.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as browser:

            async def say(user_id: str, text: str) -> str:
                reply = await browser.post(f"http://127.0.0.1/users/{user_id}/chat", json={"text": text})
                return str(reply.json())

            assert await say("alice", "I live in Bern.") == "I live in Bern."
            assert "lives in Bern" in await say("alice", "Where do I live?")
            assert await say("bob", "Where do I live?") == "Where do I live?"
            facts = await app.state.memory.facts(user_id="alice")
            assert [(fact.value, fact.mention_count) for fact in facts] == [("Bern", 1)]
