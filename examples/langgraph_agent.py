"""An agent of LangGraph that remembers each user: known facts go into its prompt, and notes of its own into a store.

OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=none python examples/langgraph_agent.py alice openai:MODEL
"""

import sys
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool

from mnemolog import MemoryClient
from mnemolog.adapters.langchain import MnemologMiddleware
from mnemolog.adapters.langgraph import MnemologStore


@tool
def note(title: str, text: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Keep a note for the user under a title."""
    if runtime.store:
        runtime.store.put(("notes",), title, {"text": text})
    return f"kept as {title}"


def build(model: Any, memory: MemoryClient) -> Any:
    """The agent of one user, to whom `memory` is bound."""
    return create_agent(model, tools=[note], middleware=[MnemologMiddleware(memory)], store=MnemologStore(memory))


def main(user_id: str, model: str) -> None:
    with MemoryClient() as client:
        agent = build(model, client.scope(user_id=user_id))
        for line in filter(str.strip, sys.stdin):
            answer = agent.invoke({"messages": [{"role": "user", "content": line.strip()}]})
            print(answer["messages"][-1].text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
