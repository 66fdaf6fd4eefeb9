"""Decides turns with the real resolver on real tables and a scripted model, without Kafka."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import ExtractedFact, MatchedFact, content_hash
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import Embeddings, NumberedConflicts, Prompt, Reply, TaskPrompt, Usage
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.processor import ReceivedEnvelope
from tests.support.builders.commits import ALICE, MODEL, day, vector
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.command_harness import command_envelope
from tests.support.harnesses.projected_database import ProjectedDatabase

TOPIC = "conversation_turns"
ScriptedReply = str | Callable[[Prompt], str]


@dataclass(frozen=True)
class TextVerdict:
    """A verdict on the known facts of these texts, as far as they were shown; ADD where none of them was."""

    action: str
    known: tuple[str, ...] = ()
    merged: str | None = None


def verdicts_by_text(verdicts: Mapping[str, TextVerdict]) -> ScriptedReply:
    """A reply that decides each new fact by its text; of others it says ADD."""

    def reply(prompt: Prompt) -> str:
        decisions = []
        for conflict in numbered_conflicts(prompt).conflicts:
            verdict = verdicts.get(conflict.fact.text, TextVerdict("ADD"))
            labels = [label for label, known in conflict.candidates if known.text in verdict.known]
            action = verdict.action if labels else "ADD"
            merged = verdict.merged if action == "MERGE" else None
            decisions.append(decision_json(conflict.number, action, *labels, text=merged))
        return decisions_reply(*decisions)

    return reply


def numbered_conflicts(prompt: Prompt) -> NumberedConflicts:
    assert isinstance(prompt, TaskPrompt)
    assert isinstance(prompt.task, NumberedConflicts)
    return prompt.task


@dataclass
class ScriptedChatModel:
    """A chat model that gives one reply after another, and then repeats the last one."""

    replies: deque[ScriptedReply] = field(default_factory=deque)
    prompts: list[Prompt] = field(default_factory=list)
    model: str = "reader-1"

    def set_replies(self, *replies: ScriptedReply | list[dict[str, Any]]) -> None:
        self.replies = deque(decisions_reply(*reply) if isinstance(reply, list) else reply for reply in replies)

    @property
    def shown(self) -> list[list[str]]:
        """The texts of the known facts that each conflict of the last prompt named."""
        return [[known.text for _, known in one.candidates] for one in numbered_conflicts(self.prompts[-1]).conflicts]

    async def complete(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        said = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        text = said if isinstance(said, str) else said(prompt)
        return Reply(text=text, model=prompt.model or self.model, usage=Usage(input_tokens=10, output_tokens=5))

    async def close(self) -> None:
        return None


class SimilarEmbedder:
    """An embedder whose vectors are all similar."""

    model = MODEL

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        return Embeddings(vectors=tuple(map(similar_vector, texts)), usage=Usage(input_tokens=len(texts)))

    async def close(self) -> None:
        return None


class ResolverHarness:
    """Decides one turn after another over the tables of `stored`, each three seconds after the latest occurred."""

    def __init__(self, stored: ProjectedDatabase, **settings: Any) -> None:
        self.stored = stored
        self.chat_model = ScriptedChatModel()
        self.now = day(0)
        self._turns = 0
        replies = ReplyStore(stored.pool)
        self.chat = self.resolver = CachedChatModel(self.chat_model, replies)
        self.embedder = CachedEmbedder(SimilarEmbedder(), replies, max_texts=256, max_wait=0, max_concurrent=1)
        given = StreamsSettings(**settings)
        self.stages = DecisionStages(
            Stores.of_pool(stored.pool, given), cast("Any", self), given, clock=lambda: self.now
        )
        self.follow_ups: list[Command] = []
        self.stage = self.stages.build_resolver(publish=self._publish)

    async def resolve_turn(
        self, *said: str | ExtractedFact, at: datetime, source_id: str | None = None, **fields: Any
    ) -> Commit:
        """Decide a turn with these facts, and project its commit."""
        source_id = source_id or f"t{self._turns}"
        commit = await self.resolve(matched_envelope(*said, at=at, source_id=source_id, offset=self._turns, **fields))
        assert commit is not None
        return commit

    async def resolve(self, matched: MatchedFacts) -> Commit | None:
        """The commit of one envelope, projected, or None where it has one."""
        self._turns += 1
        self.now = max(self.now, matched.occurred_at + timedelta(seconds=3))
        record = KafkaRecord(topic=TOPIC, partition=0, offset=0, key=matched.key, value=b"", timestamp=0)

        commit = await self.stage(ReceivedEnvelope(matched), record)
        if commit is not None:
            await self.stored.apply(commit)
        return commit

    async def send_command(self, command: Command) -> Commit:
        """Decide a command, and project its commit."""
        commit = await self.resolve(command_envelope(command))
        assert commit is not None
        return commit

    async def send_follow_ups(self) -> list[Commit]:
        """Decide the commands that follow from what was decided before, and those that follow from them."""
        commits = []
        while self.follow_ups:
            commits.append(await self.send_command(self.follow_ups.pop(0)))
        return commits

    async def _publish(self, command: Command) -> None:
        self.follow_ups.append(command)

    async def active_texts(self, scope: Scope = ALICE) -> list[str]:
        """The texts of the active facts of a scope, in alphabetical order."""
        rows = await self.stored.rows("SELECT owner, text FROM facts WHERE status = 'active' ORDER BY text")
        return [text for owner, text in rows if owner == scope.owner]

    async def statuses(self) -> dict[str, str]:
        """The status of each fact by its text; of equal texts the last."""
        rows = await self.stored.rows("SELECT text, status FROM facts ORDER BY recorded_at, ordinal")
        return {row[0]: row[1] for row in rows}

    async def close(self) -> None:
        await self.chat.close()
        await self.embedder.close()


def matched_envelope(
    *said: str | ExtractedFact, at: datetime, source_id: str = "t", offset: int = 0, **fields: Any
) -> MatchedFacts:
    """A turn as it reaches the resolver, whose candidates are looked up there."""
    facts = [extracted_fact(one) if isinstance(one, str) else one for one in said]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": ALICE,
        "origin": Origin(topic=TOPIC, partition=0, offset=offset),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "scope_version": 1_000_000,  # ahead of every scope: the resolver looks for candidates itself
        "facts": tuple(MatchedFact(fact=fact, vector=similar_vector(fact.search_text)) for fact in facts),
    }
    return MatchedFacts(**defaults | fields)


def extracted_fact(text: str, **fields: Any) -> ExtractedFact:
    return ExtractedFact(**{"text": text, "excerpt": text, "search_text": text, **fields})


def home(text: str, **fields: Any) -> ExtractedFact:
    """A statement about where Mira lives: a key that holds one value at a time."""
    return extracted_fact(text, **{"key": "home_city", "subject": "Mira", "single_valued": True, **fields})


def similar_vector(text: str) -> Vector:
    """Any two texts have a similarity of .8: near enough for a conflict, too far for a duplicate."""
    own = 1 + int(content_hash(text), 16) % 500
    return vector(math.sqrt(0.8), *(math.sqrt(0.2) * (axis == own) for axis in range(1, 501)))
