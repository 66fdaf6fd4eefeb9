"""`examples/langgraph_agent.py` beside a real stack, which the environment of this project runs."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from mnemolog import MemoryClient
from tests.adapters.test_langchain import answering
from tests.support.harnesses import command_line
from tests.support.paths import ROOT


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryClient]:
    monkeypatch.setattr(command_line, "EXECUTABLE", ROOT / ".venv/bin/mnemolog")
    settings = {"HTTP_PORT": "0", "METRICS_PORT": "0"}
    with TemporaryDirectory(prefix="mnemolog-tests-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, Postgres runs as another user
        with command_line.CommandLine(folder=folder, settings=settings).start("up") as up:
            up.ready_message()
            monkeypatch.setenv("MNEMOLOG_DATA_DIR", str(folder / ".mnemolog"))
            with MemoryClient() as client:
                yield client
            assert up.terminate() == 0, up.log.read_text()


def test_the_agent_is_told_what_is_known_and_keeps_notes(client: MemoryClient) -> None:
    ann = client.scope(user_id="ann")
    note = {"name": "note", "args": {"title": "home", "text": "She moved in May."}, "id": "1"}
    model = answering("Good.", AIMessage("", tool_calls=[note]), "In Bern.")
    agent = runpy.run_path(str(ROOT / "examples/langgraph_agent.py"))["build"](model, ann)
    agent.invoke({"messages": [HumanMessage("I live in Bern.")]})
    ann.add("Hello.", wait=True)  # behind the turn of the agent
    answer = agent.invoke({"messages": [HumanMessage("Where do I live?")]})
    assert answer["messages"][-1].text == "In Bern."
    assert "lives in Bern" in model.asked[-1][0].text
    assert agent.store.get(("notes",), "home").value == {"text": "She moved in May."}
