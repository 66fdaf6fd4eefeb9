"""Turns to measure with: many users, each with facts of their own, some of which change later."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn

USERS = 2000
UPDATE_EVERY = 5
"""Every fifth turn changes the end of what its user said a turn before, which takes a second model call to decide."""
WORDS = 12
CHANGED_WORDS = 2
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "sa", "te", "vu", "zo", "fa", "ge", "hi", "ju")


def turns(*, infer: bool = True, prefix: str = "", users: int = USERS, seed: int = 1) -> Iterator[Turn]:
    """Turns without end, one user after another: two facts in every other turn, else one."""
    for number in count():
        user, turn = number % users, number // users
        yield Turn(
            turn_id=f"{prefix}{turn}-{user}",
            scope=Scope(user_id=f"user{user}"),
            messages=tuple(_messages(user, turn, seed)),
            occurred_at=BEGIN + timedelta(minutes=turn),
            infer=infer,
            speaker=f"User {user}",
        )


def _messages(user: int, turn: int, seed: int) -> Iterator[Message]:
    # Staggered over the users, so that changes are spread evenly over time.
    changes = turn > 0 and (turn + user) % UPDATE_EVERY == 0
    words = sentence(seed, user, turn - 1 if changes else turn)
    if changes:
        words = words[:-CHANGED_WORDS] + sentence(seed, user, turn)[-CHANGED_WORDS:]
    yield Message(role="user", content=" ".join(words).capitalize() + ".")
    yield Message(role="assistant", content="That is good to know. Tell me more, and I will keep it in mind for you.")
    if (turn + user) % 2:
        yield Message(role="user", content=" ".join(sentence(seed, user, turn, "also")).capitalize() + ".")


def sentence(*key: object) -> list[str]:
    """Words of a language of its own: two sentences have hardly a word in common, so their vectors are far apart."""
    chance = random.Random(repr(key))
    return ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(WORDS)]
