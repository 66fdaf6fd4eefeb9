"""A log of commits to search in and to rebuild from; no model is asked for it."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from tests.bench.environment import Environment
from tests.bench.sample_turns import sentence
from tests.support.builders.commits import added, commit, day
from tests.support.servers.kafka_client import producer

FACTS_PER_USER: Final = 100
FACTS_PER_COMMIT: Final = 2
DIMENSIONS: Final = 1536
MODEL: Final = "text-embedding-3-small"
BATCH_SIZE: Final = 500
# The upper byte of a half between .5 and 2 in size: any sign and mantissa, an exponent of 14 or 15.
_ORDINARY: Final = bytes(upper & 0b1_00001_11 | 0b0_01110_00 for upper in range(256))


def random_vector(chance: random.Random) -> Vector:
    """Halves that no compression makes smaller, as real embeddings are."""
    raw = bytearray(chance.randbytes(2 * DIMENSIONS))
    raw[1::2] = raw[1::2].translate(_ORDINARY)
    return Vector(model=MODEL, dimensions=DIMENSIONS, data=bytes(raw))


def fact_text(user: int, turn: int, place: int) -> str:
    return " ".join(sentence(user, turn, place)).capitalize() + "."


def commits(facts: int, vector_of: Callable[[str], Vector] | None = None) -> Iterator[Commit]:
    """Commits with `facts` facts in all, of users with a hundred each, one user's turn after another's.

    Vectors are random ones, or what `vector_of` makes of a text.
    """
    chance = random.Random(facts)
    users = facts // FACTS_PER_USER
    for number in range(facts // FACTS_PER_COMMIT):
        user, turn = number % users, number // users
        texts = [fact_text(user, turn, place) for place in range(FACTS_PER_COMMIT)]
        drafts = [
            added(
                text,
                vector=vector_of(text) if vector_of else random_vector(chance),
                category=CATEGORIES[(turn + place) % len(CATEGORIES)],
            )
            for place, text in enumerate(texts)
        ]
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
