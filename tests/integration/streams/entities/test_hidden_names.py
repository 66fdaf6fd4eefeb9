"""What only deleted facts tell is shown by no reader, an undo shows it again, and a rebuild changes nothing."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient
from mnemolog.errors import UnknownEntityError
from mnemolog.projections.context import summaries_of_facts
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.stores.entities import EntityStore, ShownEntitiesRequest
from mnemolog.projections.stores.facts import FactStore, ShownFactsRequest
from mnemolog.schemas.command import CommandPayload, Delete, DeleteAll, ForgetEntity, RenameEntity, SummariseEntity
from mnemolog.streams.llm.background import TIE_HEADS, names_said_in
from mnemolog.streams.text.differences import USER_WORDS
from tests.support.builders.commits import ALICE
from tests.support.cases.entity_readers import CHECKED
from tests.support.databases import fresh_database
from tests.support.harnesses.named_people import START, NamedPeople, named_people

pytestmark = pytest.mark.postgres
FRIEND: Final = {"subject": "Diana", "predicate": "friend", "object": "Ana Goldmann", "strength": "strong"}
QUESTION: Final = "Does my wife, Diana's friend or Ana Goldmann sing?"
DELETED: Final = (
    "Ana Goldmann sings",
    "I met my wife Ana Goldmann",
    "Diana is a friend of Ana Goldmann",
    "Silver runs",
)
NAMES: Final = {
    "delete": r"\b(Ana|Goldmann|Silver)\b",
    "delete_all": r"\b(Ana|Goldmann|Silver|Robert|Diana|wife)\b",
    "forget": r"\b(Ana|Goldmann)\b",
}
"""What is hidden after each command. "Diana" has a hidden name in it, and is none."""
ABOUT_ANA: Final = [name for name in CHECKED if name not in ("history", "explain")]
CASES: Final = [
    *((command, reader) for command in ("delete", "delete_all") for reader in CHECKED),
    *(("forget", reader) for reader in ABOUT_ANA),
]


def whole_text(shown: object) -> str:
    """Every field of what a reader shows: a `repr` is brief."""
    if is_dataclass(shown) and not isinstance(shown, type):
        return str(asdict(shown))
    if isinstance(shown, Mapping):
        return whole_text(list(shown.values()))
    return "\n".join(map(whole_text, shown)) if isinstance(shown, list | tuple) else str(shown)


@dataclass
class Readers:
    """What each reader shows of a scope in which Ana Goldmann, a wife, Diana and Silver are named."""

    people: NamedPeople
    memory: AsyncMemoryClient
    facts: dict[str, UUID] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    told_at: datetime = START

    async def fill(self) -> None:
        await self._say("My wife paints", ("my wife", "person"))
        await self._say("Diana plays chess", subject="Diana")
        await self._say("Ana Goldmann sings", ("Ana Goldmann", "person"))
        await self._say("I met my wife Ana Goldmann", ("my wife Ana Goldmann", "person"))
        friend = ("Ana Goldmann", "person")
        await self._say("Diana is a friend of Ana Goldmann", friend, subject="Diana", relations=[FRIEND])
        await self._say("Silver runs", subject="Silver")
        self.ids = {one.name: one.entity_id for one in await self.memory.entities.list(user_id="alice")}
        await self.people.order(RenameEntity(entity_id=self.ids["Silver"], name="Robert"))
        await self._say("Robert swims", subject="Robert")
        await self.people.order(SummariseEntity(entity_id=self.ids["Diana"]))

    async def _say(self, text: str, *named: tuple[str, str], **fields: Any) -> None:
        commit = await self.people.say(text, *named, **fields)
        self.told_at = commit.decided_at
        fact = commit.events[0].new_fact
        assert fact is not None
        self.facts[text] = fact.fact_id

    def command(self, kind: str) -> CommandPayload:
        match kind:
            case "delete":
                return Delete(fact_ids=tuple(self.facts[text] for text in DELETED))
            case "delete_all":
                return DeleteAll()
        return ForgetEntity(entity_id=self.ids["Ana Goldmann"], facts=True)

    async def read(self) -> dict[str, str]:
        """What each reader shows, as text; nothing where it finds nothing."""
        shown = {}
        for name in CHECKED:
            shown[name] = ""
            with suppress(UnknownEntityError):
                shown[name] = whole_text(await self._shown(name))
        return shown

    async def _shown(self, name: str) -> object:  # noqa: C901, PLR0911, PLR0912 - one case a reader
        memory, pool = self.memory, self.people.pipeline.pool
        entities, at = EntityStore(pool, ties=TIE_HEADS), datetime(2026, 12, 1, tzinfo=UTC)
        match name:
            case "entities":
                return await memory.entities.list(user_id="alice")
            case "entity" | "history":
                return await memory.entities.get("Diana" if name == "entity" else "Robert", user_id="alice")
            case "relations":  # those of now, and those that were known before the command
                now = await memory.entities.relations(user_id="alice", all_versions=True)
                return now, await memory.entities.relations(user_id="alice", believed_at=self.told_at)
            case "neighbours":
                return await memory.entities.neighbours("Diana", user_id="alice")
            case "graph":
                graph = await memory.entities.graph(user_id="alice", all_versions=True)
                return graph.mermaid, graph.entities, graph.relations
            case "who":
                return await memory.entities.who("my wife", user_id="alice")
            case "pending":
                return [one for one in await memory.pending(user_id="alice") if isinstance(one, PendingMerge)]
            case "explain":
                return (await memory.explain(self.facts["Robert swims"], user_id="alice")).entities
            case "known facts":
                asked = ShownFactsRequest(scope=ALICE, speaker="Alice", said=QUESTION, at=at, facts=10)
                return await FactStore(pool, user_words=USER_WORDS).shown_facts([asked])
            case "names in doubt":
                return sorted(map(repr, (await entities.shown(list(self.ids.values()), most=10)).values()))
            case "known names":
                said = names_said_in(f"My wife, Diana, Ana, Robert, Bob, Silver, Ana Goldmann.\n{QUESTION}")
                whom = ShownEntitiesRequest(
                    scope=ALICE,
                    said=said.text,
                    heads=said.heads,
                    ties=said.ties,
                    predicates=said.predicates,
                    at=at,
                    entities=100,
                    facts=10,
                )
                return await entities.shown_entities([whom])
            case "commands":
                named = [one for own, one in self.ids.items() if own != "Silver"]  # whom a person named
                found = await entities.entities(named)
                return [(one.name, one.aliases) for _, one in sorted(found.items())]
            case "summaries":
                async with pool.connection() as connection:
                    return await summaries_of_facts(connection, await memory.facts(user_id="alice"))
        return sorted(map(str, await self.people.rows(f"TABLE {name}")))


@dataclass(frozen=True)
class Stages:
    """What the readers show before a command, after it, after a rebuild, and after its undo."""

    before: dict[str, str]
    after: dict[str, str]
    rebuilt: dict[str, str]
    undone: dict[str, str]
    hidden: re.Pattern[str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stages(postgres_admin_url: str, template_database: str) -> AsyncIterator[dict[str, Stages]]:
    found = {}
    for kind, names in NAMES.items():
        with fresh_database(postgres_admin_url, template=template_database) as url:
            async with (
                named_people(url, entity_summary="on_demand") as people,
                AsyncMemoryClient(postgres=url) as memory,
            ):
                found[kind] = await read_stages(Readers(people, memory), kind, names)
    yield found


async def read_stages(readers: Readers, kind: str, names: str) -> Stages:
    await readers.fill()
    before = await readers.read()
    commit = await readers.people.order(readers.command(kind))
    after = await readers.read()
    assert await readers.people.is_rebuilt_equal(in_place=True)
    rebuilt = await readers.read()
    await readers.people.undo(commit)
    return Stages(before, after, rebuilt, await readers.read(), re.compile(f"{names}|{readers.ids['Ana Goldmann']}"))


@pytest.mark.parametrize(("kind", "reader"), CASES)
async def test_what_is_hidden_is_shown_by_no_reader_until_an_undo(
    stages: dict[str, Stages], kind: str, reader: str
) -> None:
    seen = stages[kind]
    assert seen.hidden.search(seen.before[reader])
    assert not seen.hidden.search(seen.after[reader]), seen.after[reader]
    assert seen.rebuilt[reader] == seen.after[reader]
    hidden = set(re.findall(NAMES[kind], seen.before[reader]))
    assert set(re.findall(NAMES[kind], seen.undone[reader])) == hidden


@pytest.mark.parametrize("reader", ["entities", "entity", "memory.entities", "commands"])
async def test_a_name_that_has_a_hidden_one_in_it_is_shown(stages: dict[str, Stages], reader: str) -> None:
    assert "Diana" in stages["delete"].after[reader]
