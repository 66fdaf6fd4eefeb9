"""Turns decided by the real resolver on real tables, with a reader that says what a test wants; without Kafka."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mnemolog.projections.known import KnownFacts
from mnemolog.projections.limits import Reservations
from mnemolog.projections.matching import Matcher
from mnemolog.projections.past import PastReader
from mnemolog.projections.policies import Policies
from mnemolog.projections.replies import Replies
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import ExtractedFact, MatchedFact, content_hash
from mnemolog.schemas.policy import Rules
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.vector import Vector
from mnemolog.streams.providers.base import Embeddings, Prompt, Reply, Usage
from mnemolog.streams.recording import ChatRecorder, EmbeddingRecorder
from mnemolog.streams.records import Record
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.commanding import Commanding
from mnemolog.streams.stages.freshness import Freshness
from mnemolog.streams.stages.limiting import Limiting
from mnemolog.streams.stages.match import Matching
from mnemolog.streams.stages.reading import Received
from mnemolog.streams.stages.resolve import Resolver
from mnemolog.streams.standards import Standards
from tests.builders import ALICE, MODEL, day, vector
from tests.conversations import decisions_reply
from tests.stored import Stored

TOPIC = "conversation_turns"
Says = str | Callable[[Prompt], str]


@dataclass
class Reader:
    """A chat model that says one thing after another, and the last one again."""

    says: deque[Says] = field(default_factory=deque)
    asked: list[Prompt] = field(default_factory=list)
    model: str = "reader-1"

    def will_say(self, *replies: Says | list[dict[str, Any]]) -> None:
        self.says = deque(decisions_reply(*reply) if isinstance(reply, list) else reply for reply in replies)

    async def complete(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        said = self.says.popleft() if len(self.says) > 1 else self.says[0]
        text = said if isinstance(said, str) else said(prompt)
        return Reply(text=text, model=prompt.model or self.model, usage=Usage(input_tokens=10, output_tokens=5))

    async def close(self) -> None:
        return None


class Near:
    """An embedder to whom all texts are alike."""

    model = MODEL

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(map(near, texts)), usage=Usage(input_tokens=len(texts)))

    async def close(self) -> None:
        return None


class AlwaysFresh(Freshness):
    """Each turn is projected before the next one is decided."""

    def __init__(self) -> None:
        """Nothing is waited for."""

    async def reached(self, owner: str, partition: int) -> None:
        """At once."""


class Memory:
    """Decides one turn after another over the tables of `stored`, each three seconds after the latest occurred."""

    def __init__(self, stored: Stored, **settings: Any) -> None:
        self.stored = stored
        self.reader = Reader()
        self.now = day(0)
        self._turns = 0
        pool, configured = stored.pool, StreamsSettings(**settings)
        standards = Standards(configured, Policies(pool))
        matcher, known = Matcher(pool), KnownFacts(pool)
        replies = Replies(pool)
        self._chat = ChatRecorder(self.reader, replies)
        self._embedder = EmbeddingRecorder(Near(), replies, max_texts=256, linger=0, max_concurrent=1)
        self.resolver = Resolver(
            matcher=matcher,
            matching=Matching(matcher, standards.thresholds_for, standards.rules_for),
            model=self._chat,
            embedder=self._embedder,
            freshness=AlwaysFresh(),
            thresholds_for=standards.thresholds_for,
            configured=Rules(min_importance=configured.min_importance),
            rules_for=standards.rules_for,
            limiting=Limiting(Reservations(pool)),
            commanding=Commanding(known=known, past=PastReader(pool, known), clock=lambda: self.now),
            lookups=known,
            clock=lambda: self.now,
        )

    async def hear(
        self, *said: str | ExtractedFact, at: datetime, source_id: str | None = None, **fields: Any
    ) -> Commit:
        """Decide a turn that says these things, and project its commit."""
        source_id = source_id or f"t{self._turns}"
        commit = await self.decide(envelope(*said, at=at, source_id=source_id, offset=self._turns, **fields))
        assert commit is not None
        return commit

    async def decide(self, given: MatchedFacts) -> Commit | None:
        """The commit of one envelope, projected, or None where it has one."""
        self._turns += 1
        self.now = max(self.now, given.occurred_at + timedelta(seconds=3))
        record = Record(topic=TOPIC, partition=0, offset=0, key=given.key, value=b"", timestamp=0)
        commit = await self.resolver(Received(given), record)
        if commit is not None:
            await self.stored.apply(commit)
        return commit

    async def standing(self) -> dict[str, str]:
        """How each fact stands, by its text; of equal texts the last."""
        rows = await self.stored.rows("SELECT text, status FROM facts ORDER BY recorded_at, fact_id")
        return {row[0]: row[1] for row in rows}

    async def close(self) -> None:
        await self._chat.close()
        await self._embedder.close()


def envelope(
    *said: str | ExtractedFact, at: datetime, source_id: str = "t", offset: int = 0, **fields: Any
) -> MatchedFacts:
    """A turn as it reaches the resolver, whose candidates are looked up there."""
    told = [stated(one) if isinstance(one, str) else one for one in said]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": ALICE,
        "origin": Origin(topic=TOPIC, partition=0, offset=offset),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "scope_version": 1_000_000,  # no scope has come so far: the resolver looks itself
        "facts": tuple(MatchedFact(fact=fact, vector=near(fact.search_text)) for fact in told),
    }
    return MatchedFacts(**defaults | fields)


def stated(text: str, **fields: Any) -> ExtractedFact:
    return ExtractedFact(**{"text": text, "excerpt": text, "search_text": text, **fields})


def near(text: str) -> Vector:
    """Any two texts are .8 alike: near enough to clash, and too far to be the same."""
    own = 1 + int(content_hash(text), 16) % 500
    return vector(math.sqrt(0.8), *(math.sqrt(0.2) * (axis == own) for axis in range(1, 501)))
