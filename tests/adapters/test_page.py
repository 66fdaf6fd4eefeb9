"""The examples of docs/how-to/frameworks.md as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest

from mnemolog.testing import AsyncInMemoryClient, InMemoryClient
from tests.adapters import test_google_adk, test_langchain, test_openai_agents, test_pydantic_ai

PAGE = (Path(__file__).parents[2] / "docs/how-to/frameworks.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"(?ms)^## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```", PAGE))


def model_of(framework: str) -> Any:
    answers = ["Good.", "In Bern."]
    match framework:
        case "LangChain":
            return test_langchain.answering(*answers)
        case "OpenAI Agents":
            return test_openai_agents.Answers(*answers)
        case "Google ADK":
            return test_google_adk.answering(*answers)
        case "Pydantic AI":
            return test_pydantic_ai.answering(*answers)
    return None


def test_each_section_has_an_example() -> None:
    assert [*EXAMPLES] == re.findall(r"(?m)^## (.*)", PAGE)


@pytest.mark.parametrize("framework", EXAMPLES)
def test_an_example_works(framework: str, memory: InMemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    async_memory = AsyncInMemoryClient()
    exec(EXAMPLES[framework], {"memory": memory, "async_memory": async_memory, "model": model_of(framework)})  # noqa: S102 - the page's own code
    clients: Any = (memory, async_memory)
    (text,) = (row.fact.text for one in clients for row in one._connections.tables.facts.values())
    assert "Bern" in text or "Otto" in text
