"""What only deleted facts tell is shown by no reader, an undo shows it again, and a rebuild changes nothing."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient, UnknownEntityError
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
        self.ids = {one.name: one.entity_id for one in await self.memory.entities(user_id="alice")}
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
                shown[name] = whole_text(await self._reader(name)())
        return shown

    def _reader(self, name: str) -> Callable[[], Awaitable[object]]:
        memory = self.memory
        return {
            "entities": lambda: memory.entities(user_id="alice"),
            "entity": lambda: memory.entity("Diana", user_id="alice"),
            "history": lambda: memory.entity("Robert", user_id="alice"),
            "relations": self._relations,
            "neighbours": lambda: memory.neighbours("Diana", user_id="alice"),
            "graph": self._graph,
            "who": lambda: memory.who("my wife", user_id="alice"),
            "pending": self._pending,
            "explain": self._explained,
            "known facts": self._known_facts,
            "names in doubt": self._doubtful,
            "known names": self._known_names,
            "commands": self._stored,
            "summaries": self._summaries,
        }.get(name, lambda: self._view(name))

    async def _relations(self) -> object:
        """Those of now, and those that were known before the command."""
        now = await self.memory.relations(user_id="alice", all_versions=True)
        return now, await self.memory.relations(user_id="alice", believed_at=self.told_at)

    async def _graph(self) -> object:
        graph = await self.memory.graph(user_id="alice", all_versions=True)
        return graph.mermaid, graph.entities, graph.relations

    async def _pending(self) -> object:
        return [one for one in await self.memory.pending(user_id="alice") if isinstance(one, PendingMerge)]

    async def _explained(self) -> object:
        explained = await self.memory.explain(self.facts["Robert swims"], user_id="alice")
        return explained.entities

    async def _stored(self) -> object:
        asked = [one for name, one in self.ids.items() if name != "Silver"]  # whom a person named
        found = await EntityStore(self.people.pipeline.pool).entities(asked)
        return [(one.name, one.aliases) for _, one in sorted(found.items())]

    async def _known_facts(self) -> object:
        store = FactStore(self.people.pipeline.pool, user_words=USER_WORDS)
        at = datetime(2026, 12, 1, tzinfo=UTC)
        asked = ShownFactsRequest(scope=ALICE, speaker="Alice", said=QUESTION, at=at, facts=10)
        return await store.shown_facts([asked])

    async def _doubtful(self) -> object:
        found = await EntityStore(self.people.pipeline.pool).shown(list(self.ids.values()), most=10)
        return sorted(map(repr, found.values()))

    async def _known_names(self) -> object:
        store = EntityStore(self.people.pipeline.pool, ties=TIE_HEADS)
        told = f"My wife, Diana, Ana, Robert, Bob, Silver, Ana Goldmann.\n{QUESTION}"
        said = names_said_in(told)
        asked = ShownEntitiesRequest(
            scope=ALICE,
            said=said.text,
            heads=said.heads,
            ties=said.ties,
            predicates=said.predicates,
            at=datetime(2026, 12, 1, tzinfo=UTC),
            entities=100,
            facts=10,
        )
        return await store.shown_entities([asked])

    async def _summaries(self) -> object:
        facts = await self.memory.facts(user_id="alice")
        async with self.people.pipeline.pool.connection() as connection:
            return await summaries_of_facts(connection, facts)

    async def _view(self, name: str) -> object:
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
