"""Known entities in the prompt of an extraction: whom a turn names, with other names, ties and what is known of them."""

from collections.abc import AsyncIterator, Callable, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mnemolog.schemas.command import SetPolicy
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.llm.ports import ExtractionTask, Prompt, Reply
from tests.support.builders.commits import BOB
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


@asynccontextmanager
async def asked_people(database: str, **settings: Any) -> AsyncIterator[tuple[NamedPeople, list[str]]]:
    """With the prompts of extractions, as they are asked."""
    options = {"provider": "openai", "api_key": "x", "known_timeout": 20.0}
    async with named_people(database, **options | settings) as people:
        prompts: list[str] = []
        ask: Callable[[Prompt], Awaitable[Reply]] = people.model.complete

        async def complete(prompt: Prompt) -> Reply:
            if isinstance(prompt.task, ExtractionTask):
                prompts.append(prompt.messages[-1].content)
            return await ask(prompt)

        people.model.complete = complete  # type: ignore[method-assign]
        yield people, prompts


def subject(name: str, kind: str = "person") -> dict[str, Any]:
    return {"subject": name, "entities": [{"name": name, "type": kind, "role": "subject"}]}


def names(prompt: str) -> list[str]:
    """The lines under "names"."""
    lines = prompt.split("\n")
    if "names:" not in lines:
        return []
    rest = lines[lines.index("names:") + 1 :]
    return [line for line in rest[: next((i for i, one in enumerate(rest) if one[0] != ">"), len(rest))]]


async def test_whom_a_turn_names_is_shown_with_ties_and_what_is_known_of_her(database: str) -> None:
    async with asked_people(database) as (people, prompts):
        await people.say("My wife works at the clinic", key="employer", value="clinic", **subject("my wife"))
        await people.say("I met my wife Ana", ("my wife Ana", "person"))
        await people.say("Hm")
        commit = await people.say("Ana has a new job at Globex")
        assert '> 1. "Ana" (person), also: "wife of the user"' in names(prompts[-1])
        assert "clinic" in prompts[-1]
        ((entity_id,),) = await people.rows("SELECT entity_id FROM entities WHERE name = 'Ana'")
        assert [step.entities for step in commit.provenance.steps if step.stage == "extract"] == [(entity_id,)]
