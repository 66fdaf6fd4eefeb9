"""The guides of docs/how-to/language-model.md for naming a model: each one's variables are tried against a server."""

import re

import pytest

from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.factory import build_embedder
from mnemolog.streams.runtime.models import build_chat_model
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.prompts import extraction, user
from tests.support.paths import ROOT
from tests.support.servers.openai_server import OpenAiServer

PAGE = (ROOT / "docs/how-to/language-model.md").read_text().split("## Name a model")[1]
GUIDES = dict(
    re.findall(r"^(OpenAI|Ollama|llama\.cpp|Azure)[^\n]*\n\n```bash\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
)
LONGEST = 6  # lines


def variables_of(guide: str) -> dict[str, str]:
    return dict(re.findall(r"^export (MNEMOLOG_\w+)=(\S+)$", GUIDES[guide], re.MULTILINE))


@pytest.mark.parametrize(
    ("guide", "address"),
    [
        ("OpenAI", None),
        ("Ollama", "http://localhost:11434/v1"),
        ("llama.cpp", "http://localhost:8080/v1"),
        ("Azure", "https://NAME.openai.azure.com/openai/v1"),
    ],
)
async def test_a_guide_s_variables_lead_to_facts_and_vectors(
    guide: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, variables = GUIDES[guide].splitlines(), variables_of(guide)
    assert len(lines) <= LONGEST
    assert lines[-1] == "mnemolog up"
    assert address in (None, variables.get("MNEMOLOG_BASE_URL"))
    with OpenAiServer() as server:
        server.keep_bodies = True
        for name, value in (variables | {"MNEMOLOG_BASE_URL": server.base_url}).items():
            monkeypatch.setenv(name, value)
        settings = StreamsSettings()
        chat, embedder = build_chat_model(settings), build_embedder(settings)
        task = extraction(user("I live in Berlin.", "Alice"), speaker="Alice")
        reply = await chat.complete(extraction_prompt(task))
        embedded = await embedder.embed(["Alice lives in Berlin."])
        await chat.close()
        await embedder.close()
    assert parse_extraction(reply.text, task).value
    assert len(embedded.vectors) == 1
    asked = {body["model"] for body in server.bodies}
    assert asked == {value for name, value in variables.items() if name.endswith("_MODEL")}
