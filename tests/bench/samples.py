"""Turns and logs of commits to measure with: many users, each with facts of their own, some of which change later."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Final

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from tests.bench.environment import Environment
from tests.support.builders.commits import added, commit, day
from tests.support.servers.kafka_client import producer

USERS: Final = 2000
UPDATE_EVERY: Final = 5
"""Every fifth turn changes the end of what its user said a turn before, which takes a second model call to decide."""
WORDS: Final = 12
CHANGED_WORDS: Final = 2
BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
SYLLABLES: Final = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "sa", "te", "vu", "zo", "fa", "ge", "hi", "ju")
ACKNOWLEDGED: Final = "That is good to know. Tell me more, and I will keep it in mind for you."

FACTS_PER_USER: Final = 100
FACTS_PER_COMMIT: Final = 2
DIMENSIONS: Final = 1536
MODEL: Final = "text-embedding-3-small"
BATCH_SIZE: Final = 500
# The upper byte of a half between .5 and 2 in size: any sign and mantissa, an exponent of 14 or 15.
_ORDINARY: Final = bytes(upper & 0b1_00001_11 | 0b0_01110_00 for upper in range(256))


def sentence(*key: object) -> list[str]:
    """Words of a language of its own: two sentences have hardly a word in common, so their vectors are far apart."""
    chance = random.Random(repr(key))
    return ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(WORDS)]


def as_text(words: list[str]) -> str:
    return " ".join(words).capitalize() + "."


def turns(*, infer: bool = True, prefix: str = "", users: int = USERS, seed: int = 1) -> Iterator[Turn]:
    """Turns without end, one user after another: two facts in every other turn, else one."""
    for number in count():
        user, turn = number % users, number // users
        # Staggered over the users, so that changes are spread evenly over time.
        changes = turn > 0 and (turn + user) % UPDATE_EVERY == 0
        words = sentence(seed, user, turn - 1 if changes else turn)
        if changes:
            words = words[:-CHANGED_WORDS] + sentence(seed, user, turn)[-CHANGED_WORDS:]
        messages = [Message(role="user", content=as_text(words)), Message(role="assistant", content=ACKNOWLEDGED)]
        if (turn + user) % 2:
            messages.append(Message(role="user", content=as_text(sentence(seed, user, turn, "also"))))
        yield Turn(
            turn_id=f"{prefix}{turn}-{user}",
            scope=Scope(user_id=f"user{user}"),
            messages=tuple(messages),
            occurred_at=BEGIN + timedelta(minutes=turn),
            infer=infer,
            speaker=f"User {user}",
        )


def random_vector(chance: random.Random) -> Vector:
    """Halves that no compression makes smaller, as real embeddings are."""
    raw = bytearray(chance.randbytes(2 * DIMENSIONS))
    raw[1::2] = raw[1::2].translate(_ORDINARY)
    return Vector(model=MODEL, dimensions=DIMENSIONS, data=bytes(raw))


def fact_text(user: int, turn: int, place: int) -> str:
    return as_text(sentence(user, turn, place))


def commits(facts: int, vector_of: Callable[[str], Vector] | None = None) -> Iterator[Commit]:
    """Commits with `facts` facts in all, of users with a hundred each, one user's turn after another's.

    Vectors are random ones, or what `vector_of` makes of a text.
    """
    chance = random.Random(facts)
    users = facts // FACTS_PER_USER
    for number in range(facts // FACTS_PER_COMMIT):
        user, turn = number % users, number // users
        drafts = []
        for place in range(FACTS_PER_COMMIT):
            text = fact_text(user, turn, place)
            vector = vector_of(text) if vector_of else random_vector(chance)
            drafts.append(added(text, vector=vector, category=CATEGORIES[(turn + place) % len(CATEGORIES)]))
        yield commit(f"{turn}-{user}", *drafts, scope=Scope(user_id=f"user{user}"), at=day(turn))


async def fill_log(arena: Environment, facts: int, vector_of: Callable[[str], Vector] | None = None) -> int:
    """Append commits to the log; how many they are."""
    topic = topic_name(MEMORY_EVENTS, arena.settings.topic_prefix)
    made = commits(facts, vector_of)
    total = 0
    async with producer(arena.servers.kafka) as client:
        while batch := list(islice(made, BATCH_SIZE)):
            sent = [await client.send(topic, key=one.key, value=one.to_bytes()) for one in batch]
            for answer in sent:
                await answer
            total += len(batch)
    return total
