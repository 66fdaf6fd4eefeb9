"""Every event, and with it every word that it is mapped to, driven from a turn or an order to its rows.

That every word of the others is that of an event tells tests/unit/test_vocabulary.py.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from mnemolog.client import MemoryClient
from mnemolog.ordering import Ordered
from mnemolog.settings import Settings
from projections.results import Fact, WriteResult
from projections.vocabulary import WORDS, Word
from schemas.scope import Scope
from streams.settings import StreamsSettings
from streams.topics import MEMORY_EVENTS, topic_name
from tests.builders import added, commit, decided, weighed
from tests.kafka import publish
from tests.pipeline import MONDAY, running, say, settings_for, turn

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
EVA = Scope(user_id="eva")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A turn, the words of its events, and how facts stand after it, by their texts."""

    text: str
    words: tuple[Word, ...]
    standing: dict[str, str]


STORY = (
    Said(
        text="I live in Berlin. I have a dog. I like tea. I work at Acme. I smoke.",
        words=("ADD",) * 5,
        standing={"Eva lives in Berlin.": "active"},
    ),
    Said(text="I live in Berlin.", words=("SKIP",), standing={"Eva lives in Berlin.": "active"}),
    Said(text="I love tea.", words=("KEEP",), standing={"Eva likes tea.": "active"}),
    Said(
        text="I have a dog called Rex.",
        words=("MERGE",),
        standing={"Eva has a dog.": "superseded", "Eva has a dog called Rex.": "active"},
    ),
    Said(
        text="My dog is called Rex.",
        words=("EXTEND",),
        standing={"Eva has a dog called Rex.": "active", "Eva's dog is called Rex.": "active"},
    ),
    Said(
        text="I drink tea at four.",
        words=("SIMILAR",),
        standing={"Eva likes tea.": "active", "Eva drinks tea at four.": "active"},
    ),
    Said(
        text="I moved to Munich.",
        words=("REPLACE",),
        standing={"Eva lives in Berlin.": "superseded", "Eva lives in Munich.": "active"},
    ),
    Said(text="Maybe I'm allergic to eggs.", words=("ADD",), standing={}),
    Said(
        text="I'm not allergic to eggs.",
        words=("CONTRADICT",),
        standing={"Eva is allergic to eggs.": "archived", "Eva is not allergic to eggs.": "active"},
    ),
    Said(
        text="I quit smoking.",
        words=("RETRACT",),
        standing={"Eva smokes.": "retracted", "Eva no longer smokes.": "active"},
    ),
    Said(text="My contract at Acme ends on 31 August.", words=("EXPIRE",), standing={}),
    Said(text="I'm allergic to nuts. I'm allergic to milk.", words=("SIMILAR", "SIMILAR"), standing={}),
    Said(
        text="I'm not allergic to nuts. I'm not allergic to milk.",
        words=("PENDING", "PENDING"),
        standing={"Eva is allergic to nuts.": "active", "Eva is not allergic to nuts.": "pending_confirmation"},
    ),
    Said(
        text="I'm not allergic to nuts.",
        words=("CONFIRM",),
        standing={"Eva is allergic to nuts.": "archived", "Eva is not allergic to nuts.": "active"},
    ),
    Said(
        text="I'm allergic to milk.",
        words=("REJECT",),
        standing={"Eva is allergic to milk.": "active", "Eva is not allergic to milk.": "archived"},
    ),
)


@pytest.fixture
def settings(bootstrap: str, database: str, topic_suffix: str) -> StreamsSettings:
    return settings_for(bootstrap, database, f"{topic_suffix}-")


def words_of(result: WriteResult) -> tuple[Word, ...]:
    return tuple(memory.event for memory in result.memories)


async def versions(client: MemoryClient) -> dict[str, Fact]:
    """Every version of every fact by its text."""
    return {fact.text: fact for fact in await client.facts(user_id="eva", all_versions=True)}


async def ordered(client: MemoryClient, order: Awaitable[Ordered]) -> tuple[Word, ...]:
    """Give one order, and wait for its end."""
    return words_of(await client.wait((await order).command_id))


async def left_beside(settings: StreamsSettings, client: MemoryClient) -> str:
    """A fact whose conflict no model could decide, as the log has it."""
    assert settings.kafka is not None
    tea = (await versions(client))["Eva likes tea."].fact_id
    draft = decided(added("Eva never drinks tea.", unresolved=True), by="fallback", candidates=(weighed(tea),))
    made = commit("left", draft, scope=EVA, at=MONDAY + timedelta(days=20))
    await publish(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix), [(EVA.key, made.to_bytes())])
    assert words_of(await client.wait("left")) == ("ADD",)
    return "Eva never drinks tea."


async def test_every_event_is_driven_from_its_source_to_its_rows(settings: StreamsSettings) -> None:
    driven: set[str] = set()
    async with running(settings), MemoryClient(settings=Settings.model_validate(settings.model_dump())) as client:
        for number, said in enumerate(STORY):
            at = MONDAY + timedelta(days=number)
            await say(settings, turn(f"t{number}", said.text, scope=EVA, occurred_at=at, speaker="Eva"))
            assert words_of(await client.wait(f"t{number}")) == said.words, said.text
            known = await versions(client)
            assert {text: known[text].status for text in said.standing} == said.standing
            driven.update(said.words)
        beside = await left_beside(settings, client)
        orders: dict[Word, Callable[[dict[str, Fact]], Awaitable[Ordered]]] = {
            "RESOLVE": lambda known: client.resolve(known[beside].fact_id, "keep_old", user_id="eva"),
            "CORRECT": lambda known: client.correct(
                known["Eva lives in Munich."].fact_id, "Eva lives in Bonn.", user_id="eva"
            ),
            "UNDO": lambda _: client.undo(turn_id="t5", user_id="eva"),
            "POLICY": lambda _: client.set_policy({"add_only": True}, user_id="eva"),
        }
        for word, order in orders.items():
            assert await ordered(client, order(await versions(client))) == (word,)
            driven.add(word)
        known = await versions(client)
    expected = {
        beside: "archived",
        "Eva lives in Munich.": "superseded",
        "Eva lives in Bonn.": "active",
        "Eva drinks tea at four.": "undone",
    }
    assert {text: known[text].status for text in expected} == expected
    assert known["Eva lives in Bonn."].authority == "human"
    assert known["Eva works at Acme."].true_to == datetime(2026, 9, 1, tzinfo=UTC)
    assert driven == set(WORDS.values())
