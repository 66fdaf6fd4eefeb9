"""`python -m tests.quality.natural_sentences`: how much of what people say in their own way is kept, and how truly.

Every person says their sentences in their order, a turn each, in a scope of their own, to the real pipeline with the
offline provider. The rules were mended after the sentences of `natural/seen/` and `natural/dialogues/` had been
measured; those of `natural/unseen/` were written when the rules were finished. Ends with 1 where a rate is worse than
its limit.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, LiteralString
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Count, Record, Text, Timestamp
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import Slot
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.quality.runs import Share, own_database, pipeline_over
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

FOLDER: Final = Path(__file__).with_name("natural")
LEAST_KEPT: Final = 0.95  # of the statements
MOST_WRONG: Final = 0.02  # of the stored facts
SPLITS: Final = ("seen", "unseen", "dialogues")
COVERED: Final = 0.85  # of a sentence's letters: a filler may go
DECIDED_AFTER: Final = timedelta(seconds=5)
_ROWS: Final[LiteralString] = "SELECT fact_id, status, text, key, value, source_id FROM facts WHERE user_id = %s"


class NaturalSentence(Record):
    """One sentence as a turn.

    `keep`: it states something; None: it may be kept or not. `asked` is what the assistant said before it. `slots` are
    the values that it may fill, by key; any other value in a slot is wrong. `ends` are the places, from 0, of this
    person's earlier sentences whose facts it may rightly end.
    """

    person: Text
    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")]
    speaker: Text
    occurred_at: Timestamp
    asked: Text | None = None
    text: Text
    keep: bool | None = None
    slots: Mapping[Slot, tuple[Text, ...]] = Field(default_factory=dict)
    ends: tuple[Count, ...] = ()

    def __str__(self) -> str:
        return f"{self.person} ({self.language}): {self.text}"


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A fact after all that its person said."""

    fact_id: UUID
    status: str
    text: str
    key: str | None
    value: str | None
    source_id: str

    @property
    def is_held(self) -> bool:
        return self.status in ("active", "pending_confirmation")

    @property
    def place(self) -> int:
        """Of the sentence that it came from."""
        return int(self.source_id.rpartition("/")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalResult:
    """What became of one person's sentences: the commit of each, and all facts after them."""

    said: Sequence[NaturalSentence]
    commits: Sequence[Commit]
    facts: Mapping[UUID, StoredFact]


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalScore:
    """The rates over some people, and the sentences that fail, a line each. `wrong_slots` are of the keyed facts."""

    kept: Share
    wrong_facts: Share
    wrong_slots: Share
    wrong_overwrites: Share
    failures: Sequence[str]

    def complaints(self) -> list[str]:
        """What is worse than its limit."""
        found = [f"kept {self.kept}, at least {LEAST_KEPT:.0%}"] if self.kept.of and self.kept.rate < LEAST_KEPT else []
        found += [f"wrong facts {self.wrong_facts}, at most {MOST_WRONG:.0%}"] * (self.wrong_facts.rate > MOST_WRONG)
        found += [f"wrong slots {self.wrong_slots}, none may be"] * (self.wrong_slots.count > 0)
        return found + [f"wrong overwrites {self.wrong_overwrites}, none may be"] * (self.wrong_overwrites.count > 0)

    def __str__(self) -> str:
        wrong = f"facts {self.wrong_facts}, slots {self.wrong_slots}, overwrites {self.wrong_overwrites}"
        return f"kept {self.kept}, wrong: {wrong}"


def load(folder: Path = FOLDER) -> list[NaturalSentence]:
    """All sentences in the order of their files. Raises pydantic's ValidationError for an invalid line."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines())
    return [NaturalSentence.model_validate_json(line) for line in lines if line.strip()]


async def run_people(pipeline: InProcessPipeline, sentences: Sequence[NaturalSentence]) -> list[NaturalResult]:
    """Each person's sentences, which are together in the files, as turns."""
    results = []
    for number, (person, some) in enumerate(groupby(sentences, key=lambda one: one.person)):
        user, said = f"natural-{person}", list(some)
        commits, now = [], said[0].occurred_at
        for place, sentence in enumerate(said):
            asked = [Message(role="assistant", content=sentence.asked)] if sentence.asked else []
            turn = Turn(
                turn_id=f"{user}/{place}",
                scope=Scope(user_id=user),
                messages=(*asked, Message(role="user", content=sentence.text)),
                occurred_at=sentence.occurred_at,
                speaker=sentence.speaker,
            )
            now = max(now, sentence.occurred_at) + DECIDED_AFTER
            commits.append(await pipeline.process_turn(turn, partition=number, offset=place, now=now))
        async with pipeline.pool.connection() as connection:
            facts = [StoredFact(*row) for row in await (await connection.execute(_ROWS, [user])).fetchall()]
        results.append(NaturalResult(said=said, commits=commits, facts={fact.fact_id: fact for fact in facts}))
    return results


def score(results: Sequence[NaturalResult]) -> NaturalScore:
    """The rates: what is kept of the statements, wrong of the facts that are held, and wrong of the overwrites."""
    failures: list[str] = []
    kept, wrong, wrong_slots, overwrites, wrong_overwrites = [], [], [], 0, 0
    for result in results:
        ended_rightly = {place for sentence in result.said for place in sentence.ends}
        for place, (sentence, commit) in enumerate(zip(result.said, result.commits, strict=True)):
            if sentence.keep:
                kept.append(place in ended_rightly or _is_kept(sentence, commit, result.facts))
                failures += [] if kept[-1] else [f"not kept: {sentence}"]
            ended = [result.facts[one].place for event in commit.events for one in event.ended_ids]
            bad = [other for other in ended if other not in sentence.ends]
            overwrites, wrong_overwrites = overwrites + len(ended), wrong_overwrites + len(bad)
            failures += [f"wrong overwrite of {result.said[other].text!r}: {sentence}" for other in bad]
        for fact in result.facts.values():
            if fact.is_held:
                origin = result.said[fact.place]
                allowed = [value.casefold() for value in origin.slots.get(fact.key or "", ())]
                may_fill = fact.key is None or (fact.value or "").casefold() in allowed
                wrong.append(origin.keep is False or not may_fill)
                wrong_slots += [not may_fill] if fact.key else []
                failures += [f"wrong fact {fact.text!r} ({fact.key}): {origin}"] if wrong[-1] else []
    return NaturalScore(
        kept=Share(of=len(kept), count=sum(kept)),
        wrong_facts=Share(of=len(wrong), count=sum(wrong)),
        wrong_slots=Share(of=len(wrong_slots), count=sum(wrong_slots)),
        wrong_overwrites=Share(of=overwrites, count=wrong_overwrites),
        failures=failures,
    )


def _is_kept(sentence: NaturalSentence, commit: Commit, facts: Mapping[UUID, StoredFact]) -> bool:
    """Whether held facts quote nearly all of a sentence, its own or those that it repeats."""
    quoted: set[str] = set()
    for event in commit.events:
        held = {event.subject_id, event.repeated_id} & {fact.fact_id for fact in facts.values() if fact.is_held}
        quoted |= _words(event.words.excerpt) if event.words and held else set()
    words = _words(sentence.text)
    return sum(map(len, words & quoted)) >= COVERED * sum(map(len, words))


def _words(text: str) -> AbstractSet[str]:
    """The words of a text; the characters, where it has no spaces."""
    plain = "".join(sign if sign.isalnum() else " " for sign in text.casefold())
    return set(plain.split()) if plain.isascii() or " " in plain.strip() else set(plain)


async def _measure(split: str) -> NaturalScore:
    async with own_database() as database, pipeline_over(database) as running:
        return score(await run_people(running, load(FOLDER / split)))


def main() -> None:
    complaints: list[str] = []
    for split in SPLITS:
        made = asyncio.run(_measure(split))
        complaints += made.complaints()
        sys.stdout.write("\n".join((f"{split}: {made}", *(f"  {failure}" for failure in made.failures))) + "\n")
    sys.stdout.writelines(f"{complaint}\n" for complaint in complaints)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
