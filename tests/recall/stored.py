"""Dialogues in tables: facts and raw messages as commits of the log, written by the projector."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.projections.stores.turns import Journal, JournalEntry
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.stages.extract import raw_facts
from tests.recall.dialogues import Dialogues
from tests.support.builders.commits import added, commit

T = TypeVar("T")
Kind = Literal["facts", "quoted", "turns"]
"""`quoted` are facts with the messages that they rest on as excerpts."""
KINDS: Final[tuple[Kind, ...]] = ("facts", "quoted", "turns")
_KINDS_OF_FACTS: Final[Mapping[Kind, bool]] = {"facts": False, "quoted": True}
BATCH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A fact or message as a turn that is stored as it is, the recorded turns that it rests on, and its excerpt."""

    turn: Turn
    evidence: frozenset[str]
    excerpt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDialogues:
    """Tables that hold dialogues; `evidence` has the turns that each source of a fact rests on."""

    pool: Pool
    evidence: Mapping[str, frozenset[str]]


def user_of(kind: Kind, conversation: str) -> str:
    """The user in whose memory a dialogue is: its facts and its messages are apart."""
    return f"{kind}-{conversation}"


def recorded_turns(dialogues: Dialogues) -> Iterator[StoredTurn]:
    """Each fact, without and with an excerpt, and each message."""
    texts = {said.turn_id: said.text for said in dialogues.turns}
    for fact in dialogues.facts:
        quoted = " ".join(texts[turn_id] for turn_id in sorted(fact.evidence))
        message = Message(role="user", content=fact.text, name=fact.subject)
        for kind, excerpt in _KINDS_OF_FACTS.items():
            turn = Turn(
                turn_id=fact.fact_id,
                scope=Scope(user_id=user_of(kind, fact.conversation)),
                messages=(message,),
                occurred_at=dialogues.said_at(fact),
                infer=False,
            )
            yield StoredTurn(turn=turn, evidence=fact.evidence, excerpt=quoted if excerpt else None)
    for said in dialogues.turns:
        message = Message(role="user", content=said.text, name=said.speaker)
        scope = Scope(user_id=user_of("turns", said.conversation))
        turn = Turn(turn_id=said.turn_id, scope=scope, messages=(message,), occurred_at=said.occurred_at, infer=False)
        yield StoredTurn(turn=turn, evidence=frozenset({said.turn_id}))


def heard_turns(dialogues: Dialogues) -> Iterator[Turn]:
    """Each message as a turn of the user whose facts are the annotators' sentences. Nothing is extracted from it."""
    for turn in dialogues.turns:
        message = Message(role="user", content=turn.text, name=turn.speaker)
        scope = Scope(user_id=user_of("facts", turn.conversation))
        yield Turn(turn_id=turn.turn_id, scope=scope, messages=(message,), occurred_at=turn.occurred_at)


async def commits_of(turns: Sequence[StoredTurn], embedder: Embedder) -> list[Commit]:
    """One commit a turn that adds what a raw turn adds: nothing is compared with what is known, or dropped."""
    facts = [raw_facts(one.turn)[0] for one in turns]
    vectors = (await embedder.embed([fact.search_text for fact in facts])).vectors
    commits = []
    for one, fact, vector in zip(turns, facts, vectors, strict=True):
        excerpt = one.excerpt or fact.excerpt
        draft = added(fact.text, search_text=fact.search_text, subject=fact.subject, vector=vector, excerpt=excerpt)
        commits.append(commit(one.turn.turn_id, draft, scope=one.turn.scope, at=one.turn.occurred_at))
    return commits


@asynccontextmanager
async def stored(dialogues: Dialogues, embedder: Embedder, folder: Path) -> AsyncIterator[StoredDialogues]:
    """The dialogues in a Postgres of the run's own in `folder`."""
    async with await EmbeddedStack.start(folder, kafka=False, test=True) as stack:
        await migrate(stack.postgres_url)
        async with open_pool(stack.postgres_url, min_size=1, max_size=4, application_name="recall") as pool:
            evidence = await _fill(pool, dialogues, embedder)
            async with pool.connection() as connection:
                await connection.execute("ANALYZE facts, commits, turn_journal")
            yield StoredDialogues(pool=pool, evidence=evidence)


async def _fill(pool: Pool, dialogues: Dialogues, embedder: Embedder) -> dict[str, frozenset[str]]:
    evidence: dict[str, frozenset[str]] = {}
    log = _Log(pool)
    turns = list(recorded_turns(dialogues))
    for some in batched(turns):
        evidence |= {one.turn.turn_id: one.evidence for one in some}
        await log.append([one.turn for one in some], await commits_of(some, embedder))
    for heard in batched(list(heard_turns(dialogues))):
        await log.append(heard, [commit(one.turn_id, scope=one.scope, at=one.occurred_at) for one in heard])
    return evidence


class _Log:
    """Turns and their commits, written as the stages write them."""

    def __init__(self, pool: Pool) -> None:
        self._journal, self._projector, self._offset = Journal(pool), Projector(pool), 0

    async def append(self, turns: Sequence[Turn], commits: Sequence[Commit]) -> None:
        await self._journal.record([_entry(turn, self._offset + place) for place, turn in enumerate(turns)])
        records = [LogRecord(offset=self._offset + place, value=one.to_bytes()) for place, one in enumerate(commits)]
        await self._projector.apply({0: records})
        self._offset += len(records)


def _entry(turn: Turn, offset: int) -> JournalEntry:
    return JournalEntry(
        parsed=turn, topic="conversation_turns", partition=0, offset=offset, published_at=turn.occurred_at
    )


def batched(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Some at a time."""
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
