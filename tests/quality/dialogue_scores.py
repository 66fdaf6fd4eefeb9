"""Runs labelled dialogues through the pipeline, and says what is right, missed and harmful."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import orjson

from mnemolog.schemas.base import Record
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.quality.dialogue_cases import FAMILIES, DialogueCase, ExpectedFact
from tests.quality.report import table
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

BASELINE: Final = Path(__file__).with_name("dialogues_baseline.json")
START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)


class DialogueScore(Record):
    """One case: `missed` a fact that had to come, `harmful` one that must not; and what its extraction cost."""

    id: str
    missed: bool
    harmful: bool
    llm_calls: int = 0
    input_tokens: int = 0

    @property
    def right(self) -> bool:
        return not (self.missed or self.harmful)


async def run_dialogues(
    pipeline: InProcessPipeline, cases: Sequence[DialogueCase], *, at_once: int
) -> list[DialogueScore]:
    """The score of each case, in their order; each has a scope of its own."""
    places = asyncio.Semaphore(at_once)

    async def one(number: int, case: DialogueCase) -> DialogueScore:
        async with places:
            return await _run(pipeline, number, case)

    return list(await asyncio.gather(*(one(number, case) for number, case in enumerate(cases))))


async def _run(pipeline: InProcessPipeline, number: int, case: DialogueCase) -> DialogueScore:
    commits = [
        await pipeline.process_turn(
            _turn(case, place, messages), partition=number, offset=place, now=START + place * STEP
        )
        for place, messages in enumerate((*case.before, case.turn))
    ]
    return score(case, commits[-1])


def _turn(case: DialogueCase, place: int, messages: tuple[Message, ...]) -> Turn:
    return Turn(
        turn_id=f"{case.id}/{place}",
        scope=Scope(user_id=case.id),
        messages=messages,
        occurred_at=START + place * STEP,
        speaker=case.speaker,
    )


def score(case: DialogueCase, commit: Commit) -> DialogueScore:
    """What the facts of a turn's commit are worth."""
    facts = [event.words for event in commit.events if isinstance(event.words, ExtractedFact)]
    texts = [fact.text.casefold() for fact in facts]
    steps = [step for step in commit.provenance.steps if step.stage == "extract"]
    return DialogueScore(
        id=case.id,
        missed=not all(any(_is_meant(fact, one) for fact in facts) for one in case.facts),
        harmful=any(word.casefold() in text for word in case.never for text in texts),
        llm_calls=sum(step.llm_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
    )


def _is_meant(fact: ExtractedFact, expected: ExpectedFact) -> bool:
    text, subject = fact.text.casefold(), (fact.subject or "").casefold()
    return all(word.casefold() in text for word in expected.says) and expected.about.casefold() in subject


def report(cases: Sequence[DialogueCase], scores: Sequence[DialogueScore]) -> str:
    """A line a family and split: right, missed, harmful; calls and prompt tokens of the turn that counts."""
    rows = []
    for family in FAMILIES:
        for split in ("dev", "test"):
            own = [one for case, one in zip(cases, scores, strict=True) if (case.family, case.split) == (family, split)]
            if own:
                rows.append((f"{family}, {split}", *_figures(own)))
    return table(("cases of", "number", "right", "missed", "harmful", "calls", "prompt tokens"), rows)


def _figures(scores: Sequence[DialogueScore]) -> tuple[str, ...]:
    count = len(scores)
    marks = (sum(one.right for one in scores), sum(one.missed for one in scores), sum(one.harmful for one in scores))
    calls, tokens = (sum(getattr(one, name) for one in scores) / count for name in ("llm_calls", "input_tokens"))
    return (str(count), *map(str, marks), f"{calls:.2f}", f"{tokens:.0f}")


def save(scores: Iterable[DialogueScore], path: Path = BASELINE) -> None:
    """One case a line."""
    lines = ",\n".join(orjson.dumps(one.model_dump(include={"id", "missed", "harmful"})).decode() for one in scores)
    path.write_text(f"[\n{lines}\n]\n")


def worse(scores: Iterable[DialogueScore], path: Path = BASELINE) -> list[str]:
    """The cases that are worse than the baseline says, or are not in it."""
    known = {one["id"]: DialogueScore.model_validate(one) for one in orjson.loads(path.read_bytes())}
    return [
        one.id
        for one in scores
        if one.id not in known or (one.missed, one.harmful) > (known[one.id].missed, known[one.id].harmful)
    ]
