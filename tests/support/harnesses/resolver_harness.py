"""Turns decided by the real resolver on real tables, with a reader that says what a test wants; without Kafka."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.limits import LimitReservations
from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import ExtractedFact, MatchedFact, content_hash
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.vector import Vector
from mnemolog.streams.commands.handler import CommandHandler
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import Embeddings, Prompt, Reply, Usage
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.runtime.effective_settings import EffectiveSettings
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.match import MatchStage
from mnemolog.streams.stages.received import ReceivedEnvelope
from mnemolog.streams.stages.resolve import ResolveStage
from tests.support.builders.commits import ALICE, MODEL, day, vector
from tests.support.builders.prompts import decisions_reply
from tests.support.harnesses.projected_database import ProjectedDatabase

TOPIC = "conversation_turns"
ScriptedReply = str | Callable[[Prompt], str]


@dataclass
class ScriptedChatModel:
    """A chat model that says one thing after another, and the last one again."""

    replies: deque[ScriptedReply] = field(default_factory=deque)
    prompts: list[Prompt] = field(default_factory=list)
    model: str = "reader-1"

    def set_replies(self, *replies: ScriptedReply | list[dict[str, Any]]) -> None:
        self.replies = deque(decisions_reply(*reply) if isinstance(reply, list) else reply for reply in replies)

    async def complete(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        said = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        text = said if isinstance(said, str) else said(prompt)
        return Reply(text=text, model=prompt.model or self.model, usage=Usage(input_tokens=10, output_tokens=5))

    async def close(self) -> None:
        return None


class SimilarEmbedder:
    """An embedder to whom all texts are alike."""

    model = MODEL

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(map(similar_vector, texts)), usage=Usage(input_tokens=len(texts)))

    async def close(self) -> None:
        return None


class NoProjectionWait(ReadYourWrites):
    """Each turn is projected before the next one is decided."""

    def __init__(self) -> None:
        """Nothing is waited for."""

    async def wait_until_projected(self, owner: str, partition: int) -> None:
        """At once."""


class ResolverHarness:
    """Decides one turn after another over the tables of `stored`, each three seconds after the latest occurred."""

    def __init__(self, stored: ProjectedDatabase, **settings: Any) -> None:
        self.stored = stored
        self.chat_model = ScriptedChatModel()
        self.now = day(0)
        self._turns = 0
        pool, configured = stored.pool, StreamsSettings(**settings)
        standards = EffectiveSettings(configured, PolicyStore(pool))
        matcher, known = CandidateFinder(pool), FactStore(pool)
        replies = ReplyStore(pool)
        self._chat = CachedChatModel(self.chat_model, replies)
        self._embedder = CachedEmbedder(SimilarEmbedder(), replies, max_texts=256, max_wait=0, max_concurrent=1)
        self.resolver = ResolveStage(
            matcher=matcher,
            match_stage=MatchStage(matcher, standards.thresholds_for, standards.rules_for),
            model=self._chat,
            embedder=self._embedder,
            read_your_writes=NoProjectionWait(),
            thresholds_for=standards.thresholds_for,
            default_rules=EffectivePolicy(min_importance=configured.min_importance),
            rules_for=standards.rules_for,
            limits=LimitEnforcer(LimitReservations(pool)),
            handle_command=CommandHandler(
                known=known, event_history=EventHistoryStore(pool, known), clock=lambda: self.now
            ),
            lookups=known,
            clock=lambda: self.now,
        )

    async def resolve_turn(
        self, *said: str | ExtractedFact, at: datetime, source_id: str | None = None, **fields: Any
    ) -> Commit:
        """Decide a turn that says these things, and project its commit."""
        source_id = source_id or f"t{self._turns}"
        commit = await self.resolve(matched_envelope(*said, at=at, source_id=source_id, offset=self._turns, **fields))
        assert commit is not None
        return commit

    async def resolve(self, matched: MatchedFacts) -> Commit | None:
        """The commit of one envelope, projected, or None where it has one."""
        self._turns += 1
        self.now = max(self.now, matched.occurred_at + timedelta(seconds=3))
        record = KafkaRecord(topic=TOPIC, partition=0, offset=0, key=matched.key, value=b"", timestamp=0)
        commit = await self.resolver(ReceivedEnvelope(matched), record)
        if commit is not None:
            await self.stored.apply(commit)
        return commit

    async def statuses(self) -> dict[str, str]:
        """How each fact stands, by its text; of equal texts the last."""
        rows = await self.stored.rows("SELECT text, status FROM facts ORDER BY recorded_at, ordinal")
        return {row[0]: row[1] for row in rows}

    async def close(self) -> None:
        await self._chat.close()
        await self._embedder.close()


def matched_envelope(
    *said: str | ExtractedFact, at: datetime, source_id: str = "t", offset: int = 0, **fields: Any
) -> MatchedFacts:
    """A turn as it reaches the resolver, whose candidates are looked up there."""
    told = [extracted_fact(one) if isinstance(one, str) else one for one in said]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": ALICE,
        "origin": Origin(topic=TOPIC, partition=0, offset=offset),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "scope_version": 1_000_000,  # no scope has come so far: the resolver looks itself
        "facts": tuple(MatchedFact(fact=fact, vector=similar_vector(fact.search_text)) for fact in told),
    }
    return MatchedFacts(**defaults | fields)


def extracted_fact(text: str, **fields: Any) -> ExtractedFact:
    return ExtractedFact(**{"text": text, "excerpt": text, "search_text": text, **fields})


def similar_vector(text: str) -> Vector:
    """Any two texts are .8 alike: near enough to clash, and too far to be the same."""
    own = 1 + int(content_hash(text), 16) % 500
    return vector(math.sqrt(0.8), *(math.sqrt(0.2) * (axis == own) for axis in range(1, 501)))
