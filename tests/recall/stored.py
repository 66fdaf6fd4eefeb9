"""Dialogues in tables: facts and raw messages as commits of the log, written by the projector."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

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

Kind = Literal["facts", "quoted", "turns"]
"""`quoted` are facts with the messages that they rest on as excerpts."""
KINDS: Final[tuple[Kind, ...]] = ("facts", "quoted", "turns")
BATCH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A fact or message as a turn that is stored as it is, the recorded turns that it rests on, and its excerpt.

    Nothing is extracted from a turn without evidence: it is there to be found by `include="turns"`.
    """

    turn: Turn
    evidence: frozenset[str] = frozenset()
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
    """Each fact, without and with an excerpt, each message, and each message again beside the facts."""
    texts = {said.turn_id: said.text for said in dialogues.turns}
    kinds: tuple[Kind, ...] = ("facts", "quoted")
    for fact in dialogues.facts:
        quoted = " ".join(texts[turn_id] for turn_id in sorted(fact.evidence))
        for kind in kinds:
            turn = Turn(
                turn_id=fact.fact_id,
                scope=Scope(user_id=user_of(kind, fact.conversation)),
                messages=(Message(role="user", content=fact.text, name=fact.subject),),
                occurred_at=dialogues.said_at(fact),
                infer=False,
            )
            yield StoredTurn(turn=turn, evidence=fact.evidence, excerpt=quoted if kind == "quoted" else None)
    kinds = ("turns", "facts")
    for kind in kinds:
        for said in dialogues.turns:
            turn = Turn(
                turn_id=said.turn_id,
                scope=Scope(user_id=user_of(kind, said.conversation)),
                messages=(Message(role="user", content=said.text, name=said.speaker),),
                occurred_at=said.occurred_at,
                infer=kind != "turns",
            )
            yield StoredTurn(turn=turn, evidence=frozenset({said.turn_id} if kind == "turns" else ()))


async def commits_of(turns: Sequence[StoredTurn], embedder: Embedder) -> list[Commit]:
    """One commit a turn that adds what a raw turn adds: nothing is compared with what is known, or dropped."""
    facts = [raw_facts(one.turn)[0] for one in turns if one.evidence]
    vectors = (await embedder.embed([fact.search_text for fact in facts])).vectors if facts else ()
    drafts = iter(zip(facts, vectors, strict=True))
    commits = []
    for one in turns:
        added_facts = []
        if one.evidence:
            fact, vector = next(drafts)
            excerpt = one.excerpt or fact.excerpt
            added_facts = [
                added(fact.text, search_text=fact.search_text, subject=fact.subject, vector=vector, excerpt=excerpt)
            ]
        commits.append(commit(one.turn.turn_id, *added_facts, scope=one.turn.scope, at=one.turn.occurred_at))
    return commits


@asynccontextmanager
async def stored(dialogues: Dialogues, embedder: Embedder, folder: Path) -> AsyncIterator[StoredDialogues]:
    """The dialogues in a Postgres of the run's own in `folder`, written as the stages write them."""
    turns, evidence = list(recorded_turns(dialogues)), {}
    async with await EmbeddedStack.start(folder, kafka=False, test=True) as stack:
        await migrate(stack.postgres_url)
        async with open_pool(stack.postgres_url, min_size=1, max_size=4, application_name="recall") as pool:
            journal, projector = Journal(pool), Projector(pool)
            for start in range(0, len(turns), BATCH):
                some = turns[start : start + BATCH]
                entries, records = [], []
                for offset, (one, made) in enumerate(zip(some, await commits_of(some, embedder), strict=True), start):
                    records.append(LogRecord(offset=offset, value=made.to_bytes()))
                    entries.append(
                        JournalEntry(
                            parsed=one.turn,
                            topic="conversation_turns",
                            partition=0,
                            offset=offset,
                            published_at=one.turn.occurred_at,
                        )
                    )
                    if one.evidence:
                        evidence[one.turn.turn_id] = one.evidence
                await journal.record(entries)
                await projector.apply({0: records})
            async with pool.connection() as connection:
                await connection.execute("ANALYZE facts, commits, turn_journal")
            yield StoredDialogues(pool=pool, evidence=evidence)
