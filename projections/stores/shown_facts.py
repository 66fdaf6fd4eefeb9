"""Reads the known facts that an extraction is shown, by words, keys and time: a vector would cost another call."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg.types.json import Jsonb

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import SINGLE_VALUED
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.stored import ShownFact

RECENT_FACTS: Final = 500
"""How many of the newest facts of a scope are looked at for a common word: a large scope is not read whole."""
MAX_SLOTS: Final = 20
MAX_LEXEMES: Final = 64
MAX_SAID: Final = 4000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFactsRequest:
    """A turn: what is `said` in it and just before it, by `speaker`, at `at`. At most `facts` near it are wanted.

    `others` are those who speak besides in it. Keys of `single_valued` hold one value, as those of the registry do.
    """

    scope: Scope
    speaker: str | None
    others: tuple[str, ...] = ()
    single_valued: tuple[str, ...] = ()
    said: str
    at: datetime
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFacts:
    """The names of the user, and the facts to be shown, the best first."""

    names: tuple[str, ...]
    facts: tuple[ShownFact, ...]


class ShownFactStore(Store):
    """Reads of the table `facts`; `user_words` are subjects that say "the user", in small letters."""

    QUERIES = queries("shown_facts")

    def __init__(self, pool: Pool, *, user_words: Collection[str]) -> None:
        super().__init__(pool)
        self._options = {
            "user_words": list(user_words),
            "recent": RECENT_FACTS,
            "limit_of_slots": MAX_SLOTS,
            "lexemes": MAX_LEXEMES,
        }

    async def shown_facts(self, requests: Sequence[ShownFactsRequest]) -> list[ShownFacts]:
        """What each turn is shown; one round trip for all."""
        columns = {
            **{name: [one.scope.columns[name] for one in requests] for name in SCOPE_FIELDS},
            "speaker": [one.speaker for one in requests],
            "speakers": [Jsonb([name for name in (one.speaker, *one.others) if name]) for one in requests],
            "slots": [Jsonb(sorted({*SINGLE_VALUED, *one.single_valued})) for one in requests],
            "said": [one.said[:MAX_SAID] for one in requests],
            "at": [one.at for one in requests],
            "facts": [one.facts for one in requests],
        }
        found: list[list[ShownFact]] = [[] for _ in requests]
        names: list[tuple[str, ...]] = [() for _ in requests]
        rows = await self._rows("known_for", {**columns, **self._options}, is_shared=len(requests) > 1)
        for place, known_names, fact_id, text, key, value, subject in rows:
            names[place - 1] = tuple(known_names)
            if fact_id is not None:
                fact = ShownFact(fact_id=fact_id, text=text, key=key, value=value, subject=subject)
                found[place - 1].append(fact)
        return [ShownFacts(names=own, facts=tuple(facts)) for own, facts in zip(names, found, strict=True)]
