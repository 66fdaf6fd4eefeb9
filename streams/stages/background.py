"""Reads what an extraction is shown beside its turn, and keeps it for repeated deliveries."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final

import psycopg

from mnemolog.common.logs import get_logger
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.faults import without_rows
from mnemolog.projections.stores.entities import EntityStore, ShownEntities, ShownEntitiesRequest
from mnemolog.projections.stores.facts import FactStore, ShownFacts, ShownFactsRequest
from mnemolog.projections.stores.turns import MAX_CHARACTERS, ConversationRequest, Journal
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import Background, EarlierMessage, ReplyKey, StoredReply
from mnemolog.schemas.turn import Turn
from mnemolog.streams import metrics
from mnemolog.streams.llm.background import (
    best_shown,
    in_turn,
    last_messages,
    names_said_in,
)
from mnemolog.streams.llm.ports import ReplyStore
from mnemolog.streams.micro_batcher import MicroBatcher
from mnemolog.streams.stages.shared_lookups import LOOKUP_OPTIONS

MAX_OWNERS: Final = 2048
MAX_TURNS: Final = 32
MAX_OWNER_CHARACTERS: Final = 16_000
"""What is remembered of an owner at the most: the journal is seconds late, not hours."""
MAX_SAID: Final = 4000
"""Characters of a turn and of what was said before it in which known entities are looked for."""

_VERSION: Final = "background-2"
_NO_FACTS: Final = ShownFacts(names=(), facts=())
_NO_ENTITIES: Final = ShownEntities()

log = get_logger(__name__)

Place = tuple[datetime, int]
"""Where a record stands in the order of its owner: the broker's time of it, and its offset."""


@dataclass(frozen=True, slots=True)
class _RecentTurn:
    scope: Scope
    occurred_at: datetime
    messages: tuple[EarlierMessage, ...]
    characters: int


@dataclass(slots=True)
class _Owner:
    turns: dict[Place, _RecentTurn] = field(default_factory=dict)  # in the order in which they were extracted
    deleted_at: datetime | None = None


class RecentTurns:
    """Remembers the last turns of some owners, each with its place in the log, and their last deletions.

    What it knows is true whichever process has a partition: it may only lack turns that another one has extracted.
    """

    def __init__(self) -> None:
        self._owners: OrderedDict[str, _Owner] = OrderedDict()

    def remember(self, turn: Turn, place: Place) -> None:
        """Keep a turn for those after it; one that is delivered again is kept once."""
        turns, messages = self._owner(turn.scope.owner).turns, tuple(messages_of(turn))
        characters = sum(len(message.content) for message in messages)
        turns.setdefault(place, _RecentTurn(turn.scope, turn.occurred_at, messages, characters))
        while len(turns) > MAX_TURNS or sum(one.characters for one in turns.values()) > MAX_OWNER_CHARACTERS:
            del turns[next(iter(turns))]

    def forget(self, owner: str, published_at: datetime) -> None:
        """Forget what an owner said before a deletion that was published then."""
        known = self._owner(owner)
        known.turns.clear()
        known.deleted_at = max(published_at, known.deleted_at or published_at)

    def deleted_at(self, owner: str) -> datetime | None:
        """When the last deletion of an owner that this process has seen was published."""
        known = self._owners.get(owner)
        return known.deleted_at if known else None

    def messages_before(self, request: ConversationRequest) -> tuple[EarlierMessage, ...]:
        """The messages that were said before a turn, as the journal would give them, the oldest first."""
        known = self._owners.get(request.scope.owner)
        turns = [
            (one.occurred_at, place, one.messages)
            for place, one in (known.turns.items() if known else ())
            if one.scope == request.scope
            and place < (request.published_at, request.offset)
            and request.said_at - request.age <= one.occurred_at <= request.said_at
            and all(message.turn_id != request.turn_id for message in one.messages)
        ]
        return tuple(message for _, _, messages in sorted(turns, key=itemgetter(0, 1)) for message in messages)

    def _owner(self, owner: str) -> _Owner:
        known = self._owners.setdefault(owner, _Owner())
        self._owners.move_to_end(owner)
        while len(self._owners) > MAX_OWNERS:
            self._owners.popitem(last=False)
        return known


def messages_of(turn: Turn) -> list[EarlierMessage]:
    """What the user and the assistant say in a turn."""
    return [
        EarlierMessage(
            turn_id=turn.turn_id,
            role=message.role,
            name=message.name or (turn.speaker if message.role == "user" else None),
            content=message.content[-MAX_CHARACTERS:],
            at=turn.occurred_at,
        )
        for message in turn.messages
        if message.role in ("user", "assistant")
    ]


class BackgroundReader(RecentTurns):
    """Reads backgrounds, several in one statement, and keeps each beside the replies of its source.

    The messages come from the journal and from the turns of this process, which the journal may not have yet.
    """

    def __init__(self, messages: Journal, facts: FactStore, entities: EntityStore, replies: ReplyStore) -> None:
        super().__init__()
        self._messages: MicroBatcher[ConversationRequest, tuple[EarlierMessage, ...]] = MicroBatcher(
            messages.messages_before, **LOOKUP_OPTIONS
        )
        self._facts: MicroBatcher[ShownFactsRequest, ShownFacts] = MicroBatcher(facts.shown_facts, **LOOKUP_OPTIONS)
        self._entities: MicroBatcher[ShownEntitiesRequest, ShownEntities] = MicroBatcher(
            entities.shown_entities, **LOOKUP_OPTIONS
        )

        async def get_many(keys: list[ReplyKey]) -> list[Background | None]:
            stored = await replies.get_many(keys)
            return [Background.model_validate_json(stored[key][0].reply) if key in stored else None for key in keys]

        self._gets: MicroBatcher[ReplyKey, Background | None] = MicroBatcher(get_many, max_wait=0)
        self._puts: MicroBatcher[StoredReply, StoredReply] = MicroBatcher(replies.put_many, max_wait=0)

    async def background_of(self, turn: Turn, place: Place, rules: EffectivePolicy) -> Background:
        """What the turn at `place` is shown: what was kept at its first delivery, or else what is known now."""
        background, new = await self.read_background(turn, place, rules)
        if new is not None:
            await self._puts.submit(new)
        return background

    async def read_background(
        self, turn: Turn, place: Place, rules: EffectivePolicy
    ) -> tuple[Background, StoredReply | None]:
        """As `background_of`, of a turn that still waits: where nothing is kept, what to keep with the reply to it.

        A turn that gets no reply then is shown what is known when it is processed.
        """
        key = (turn.scope.owner, turn.turn_id, "extract", _VERSION)
        kept, messages = await asyncio.gather(self._gets.submit(key), self._messages_of(turn, place, rules))
        if kept is not None:
            return kept, None
        shown, named, notes = await self._known_for(turn, messages, rules)
        entities, facts = best_shown(named.entities, in_turn(named.facts, shown.facts), tokens=rules.known_tokens)
        background = Background(
            messages=messages,
            entities=entities,
            facts=facts,
            names=shown.names,
            notes=notes,
        )
        return background, StoredReply(
            owner=turn.scope.owner,
            source_id=turn.turn_id,
            stage="extract",
            version=_VERSION,
            attempt=0,
            reply=background.model_dump_json(),
            model="",
            input_tokens=0,
            output_tokens=0,
            cached_tokens=None,
            milliseconds=0.0,
        )

    async def _messages_of(self, turn: Turn, place: Place, rules: EffectivePolicy) -> tuple[EarlierMessage, ...]:
        if not rules.conversation_messages or not rules.conversation_tokens:
            return ()
        published_at, offset = place
        request = ConversationRequest(
            scope=turn.scope,
            turn_id=turn.turn_id,
            published_at=published_at,
            offset=offset,
            said_at=turn.occurred_at,
            age=timedelta(seconds=rules.conversation_age),
            messages=rules.conversation_messages,
            since=self.deleted_at(turn.scope.owner),
        )
        journalled = await self._messages.submit(request)
        known = {message.turn_id for message in journalled}
        newer = [one for one in self.messages_before(request) if one.turn_id not in known]
        messages = sorted((*journalled, *newer), key=lambda message: message.at)
        return last_messages(messages, count=rules.conversation_messages, tokens=rules.conversation_tokens)

    async def _known_for(
        self, turn: Turn, messages: tuple[EarlierMessage, ...], rules: EffectivePolicy
    ) -> tuple[ShownFacts, ShownEntities, tuple[str, ...]]:
        """Known facts and entities; without, where reading them fails or takes too long, the extraction goes on."""
        if not rules.known_tokens or not rules.known_timeout or not (rules.known_facts or rules.known_entities):
            return _NO_FACTS, _NO_ENTITIES, ()
        try:
            async with asyncio.timeout(rules.known_timeout):
                found = self._facts_for(turn, messages, rules), self._entities_for(turn, messages, rules)
                return *(await asyncio.gather(*found)), ()
        except TimeoutError:
            reason = f"reading them took more than {rules.known_timeout:g} s"
        except (psycopg.Error, StatementTimeoutError) as error:
            reason = "reading them failed"
            log.warning("known_facts_not_read", error=without_rows(error))
        metrics.BLIND_EXTRACTIONS.inc()
        return _NO_FACTS, _NO_ENTITIES, (f"extracted without known facts and entities: {reason}",)

    async def _facts_for(self, turn: Turn, messages: tuple[EarlierMessage, ...], rules: EffectivePolicy) -> ShownFacts:
        if not rules.known_facts:
            return _NO_FACTS
        said = [*(message.content for message in messages[-1:]), *(message.content for message in turn.messages)]
        request = ShownFactsRequest(
            scope=turn.scope,
            speaker=turn.speaker,
            others=tuple(dict.fromkeys(one.name for one in turn.messages if one.role == "user" and one.name)),
            single_valued=rules.single_valued,
            said="\n".join(said),
            at=turn.occurred_at,
            facts=rules.known_facts,
        )
        return await self._facts.submit(request)

    async def _entities_for(
        self, turn: Turn, messages: tuple[EarlierMessage, ...], rules: EffectivePolicy
    ) -> ShownEntities:
        if not rules.known_entities:
            return _NO_ENTITIES
        # What the turn says comes first: there the limits begin.
        before = (message.content for message in reversed(messages))
        said = "\n".join((*(message.content for message in turn.messages), *before))
        names = names_said_in(said[:MAX_SAID])
        request = ShownEntitiesRequest(
            scope=turn.scope,
            said=names.text,
            heads=names.heads,
            ties=names.ties,
            predicates=names.predicates,
            at=turn.occurred_at,
            entities=rules.known_entities,
            facts=rules.known_facts,
        )
        return await self._entities.submit(request)

    async def close(self) -> None:
        for batcher in (self._messages, self._facts, self._entities, self._gets, self._puts):
            await batcher.close()
