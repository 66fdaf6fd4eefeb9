"""What an application does with the client, and the errors that it gets."""

from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from mnemolog import (
    AsyncMemoryClient,
    InvalidTurnError,
    PartlyPublishedError,
    PublishError,
    ServerUnavailableError,
    WaitTimeoutError,
)
from mnemolog.client.search_models import QueryEmbedder
from mnemolog.projections.errors import QueryError, UnknownFactError, UnknownTurnError
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.settings import Settings
from tests.support.harnesses.command_line import CommandLine
from tests.support.imports import packages_loaded_by

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
NOBODY = "127.0.0.1:9"


@pytest.fixture
def settings(shell: CommandLine) -> Settings:
    """The settings of the running installation, as an application would have them."""
    return Settings.model_validate({name.lower(): value for name, value in shell.settings.items()})


def turn(turn_id: str, content: str, user: str) -> Turn:
    message = Message(role="user", content=content, name=user.capitalize())
    return Turn(turn_id=turn_id, scope=Scope(user_id=user), messages=(message,), occurred_at=NOW)


async def test_a_turn_becomes_a_fact_that_is_found(settings: Settings) -> None:
    async with AsyncMemoryClient.from_settings(settings) as client:
        accepted = await client.add("I live in Bern.", user_id="ada", speaker="Ada", occurred_at=NOW)
        assert accepted.status == "pending"
        assert UUID(accepted.turn_id).version == 7
        result = await client.wait(accepted.turn_id)
        assert [(memory.event, memory.text) for memory in result.memories] == [("fact_added", "Ada lives in Bern.")]
        assert (await client.status(accepted.turn_id)).status == "facts"

        found = await client.search("Where is Ada's home?", user_id="ada")
        assert (found.mode, found.notice) == ("hybrid", None)
        assert found.hits[0].fact.text == "Ada lives in Bern."
        assert [fact.text for fact in await client.facts(user_id="ada")] == ["Ada lives in Bern."]
        assert (await client.profile(user_id="ada")).identity[0]["value"] == "Bern"
        history = await client.history(found.hits[0].fact.fact_id)
        assert [event.event for event in history.events] == ["fact_added"]
        changes = await client.diff(datetime.now(UTC) - timedelta(hours=1), user_id="ada")
        assert [change.text for change in changes.added] == ["Ada lives in Bern."]


async def test_many_turns_are_published_in_their_order(settings: Settings) -> None:
    said = ["Likes tea.", "Owns a dog.", "Works at night."]
    turns = [turn(f"cy-{number}", text, "cy").model_copy(update={"infer": False}) for number, text in enumerate(said)]
    async with AsyncMemoryClient.from_settings(settings) as client:
        accepted = await client.add_many(turns)
        assert [one.turn_id for one in accepted] == ["cy-0", "cy-1", "cy-2"]
        await client.wait("cy-2")
        assert [fact.text for fact in await client.facts(user_id="cy")] == said


async def test_a_raw_store_keeps_the_words(settings: Settings) -> None:
    async with AsyncMemoryClient.from_settings(settings) as client:
        accepted = await client.add("Prefers e-mail; since 2019.", user_id="dan", infer=False, metadata={"from": "crm"})
        result = await client.wait(accepted.turn_id)
        assert result.llm_calls == 0
        (fact,) = await client.facts(user_id="dan")
        assert (fact.text, fact.metadata) == ("Prefers e-mail; since 2019.", {"from": "crm"})


async def test_wrong_questions_are_told_so(settings: Settings) -> None:
    async with AsyncMemoryClient.from_settings(settings) as client:
        with pytest.raises(UnknownTurnError):
            await client.status("never-published")
        with pytest.raises(WaitTimeoutError, match="not in the tables yet: check the tenant"):
            await client.wait("never-published", timeout=0.3)
        with pytest.raises(UnknownFactError):
            await client.history(UUID(int=0))
        with pytest.raises(QueryError, match="user_id or an agent_id"):
            await client.facts()
        with pytest.raises(QueryError):
            await client.search("  ", user_id="ada")
        with pytest.raises(InvalidTurnError, match="user_id"):
            await client.add("I live in Bern.")


async def test_a_search_finds_nothing_where_nothing_is_near_and_says_so(settings: Settings) -> None:
    async with AsyncMemoryClient.from_settings(settings) as client:
        await client.wait((await client.add("Likes the opera.", user_id="kay", infer=False)).turn_id)
        await client.wait((await client.add("Likes tea.", user_id="kay", run_id="r1", infer=False)).turn_id)
        found = await client.search("quantum chromodynamics", user_id="kay")
        assert (found.hits, found.mode) == ((), "hybrid")
        assert found.notice is not None
        assert found.notice.startswith("nothing known is near enough to this question; facts in scopes that also name")
        everything = await client.search("quantum chromodynamics", user_id="kay", threshold=0)
        assert [hit.fact.text for hit in everything.hits] == ["Likes the opera."]
        stranger = await client.search("tea", user_id="nobody-knows")
        assert stranger.notice == "nothing is known in this scope"


async def test_a_search_without_embedder_uses_the_words_and_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(QueryEmbedder, timeout_seconds=0.5)
    monkeypatch.setattr("mnemolog.client.connections.QueryEmbedder", impatient)
    without_embedder = settings.model_copy(update={"embedding_provider": "openai", "base_url": f"http://{NOBODY}/v1"})
    async with AsyncMemoryClient.from_settings(settings) as client:
        await client.wait((await client.add("Likes the opera.", user_id="hal", infer=False)).turn_id)
    async with AsyncMemoryClient.from_settings(without_embedder) as client:
        found = await client.search("opera", user_id="hal")
    assert found.mode == "lexical"
    assert found.notice
    assert [hit.fact.text for hit in found.hits] == ["Likes the opera."]


async def test_servers_that_are_away_are_named(settings: Settings) -> None:
    away = settings.model_copy(update={"kafka": NOBODY, "postgres": f"postgresql://mnemolog@{NOBODY}/x"})
    async with AsyncMemoryClient.from_settings(away) as client:
        with pytest.raises(ServerUnavailableError, match=f"Kafka at {NOBODY} cannot be reached"):
            await client.add("I live in Bern.", user_id="ada")
        with pytest.raises(ServerUnavailableError, match=f"Postgres at {NOBODY} cannot be reached"):
            await client.facts(user_id="ada")
        with pytest.raises(WaitTimeoutError, match="Postgres at"):
            await client.wait("any", timeout=0.5)


async def test_what_the_broker_does_not_confirm_is_an_error_in_time(settings: Settings) -> None:
    lost = settings.model_copy(update={"topic_prefix": "no-such-topic."})
    async with AsyncMemoryClient(settings=lost, publish_timeout=0.4) as client:
        with pytest.raises(PublishError, match=r"t-1 was not acknowledged within 0.4 s .* the same turn_id"):
            await client.add("I live in Bern.", user_id="ada", turn_id="t-1")
        with pytest.raises(PartlyPublishedError) as raised:
            await client.add_many([turn("t-2", "x", "ada"), turn("t-3", "x", "ada")])
    assert (raised.value.accepted, set(raised.value.failed)) == ((), {"t-2", "t-3"})


def test_the_client_loads_no_stage() -> None:
    servers = ("mnemolog.streams.stages", "mnemolog.streams.runtime", "faust", "onnxruntime", "openai")
    assert packages_loaded_by("mnemolog.client.async_client", *servers) == []
