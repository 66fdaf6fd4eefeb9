"""Replies of a real model, kept with what became of each case: `make test` replays them, `make recordings` makes them.

A model is asked only what the folder of a split has no reply to; replies that no case asks for any more are left out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

import orjson

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.base import Record
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactsMerged
from mnemolog.settings import Settings
from mnemolog.streams.llm.ports import Prompt
from mnemolog.streams.settings import StreamsSettings
from tests.quality import cases as conflicts
from tests.quality import scores as conflict_scores
from tests.quality.first_hits import TOP_K, Found, FoundFact, questions
from tests.quality.model_sources import RecordedChatModel, ReplyNotRecordedError, chosen_models
from tests.quality.runs import Cost, own_database, run_all
from tests.quality.understanding import cases as dialogues
from tests.quality.understanding import scores as dialogue_scores
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline

FOLDER: Final = Path(__file__).with_name("replies")
OUTCOMES: Final = "outcomes.json"
ROUNDS: Final = 3
"""How many cases of each family and split: those conflicts that have a question, and the first dialogues.

The other moves of dev are recorded too: the first prompt was measured with all of them.
"""
AnyCase = conflicts.Case | dialogues.DialogueCase
Kind = Literal["conflict", "dialogue"]
_now: ContextVar[datetime] = ContextVar("now")


class Outcome(Record):
    """What a case came to: its score (`Score` or `CaseScore`, what is not default), what it left, and what it took."""

    id: str
    kind: Kind
    score: dict[str, Any]
    facts: tuple[str, ...]
    turns: int
    calls: int
    input_tokens: int
    output_tokens: int
    found: Found | None = None

    def told(self) -> str:
        """Score and facts, for a message."""
        score = {name: value for name, value in self.score.items() if name != "id"}
        return f"{orjson.dumps(score).decode()}, {self.calls} calls, facts: {'; '.join(self.facts) or 'none'}"


def sample(split: str, rounds: int) -> list[AnyCase]:
    """So many cases of each family of both sets, in English, a round over all families after another; other moves."""
    asked = questions()
    moves = [one for one in conflicts.load() if (one.family, one.split, one.language) == ("move", split, "en")]
    others = [one for one in moves if split == "dev" and one.id not in asked]
    families: list[list[AnyCase]] = [
        [one for one in conflicts.load() if one.family == family and one.split == split and one.id in asked]
        for family in conflicts.FAMILIES
    ]
    for family in dialogues.FAMILIES:
        own = [one for one in dialogues.read(family) if one.split == split and one.language == "en"]
        families.append([*own])
    return [some[number] for number in range(rounds) for some in families if number < len(some)] + others


@dataclass(frozen=True, slots=True)
class CaseRunner:
    """Runs cases of both sets.

    A case has no outcome where it asks for a reply that is not recorded, or would begin after `until`.
    """

    client: AsyncMemoryClient
    until: float = float("inf")

    async def run(self, pipeline: InProcessPipeline, partition: int, case: AnyCase) -> Outcome | None:
        if time.monotonic() > self.until:
            return None
        try:
            if isinstance(case, dialogues.DialogueCase):
                return await self._dialogue(pipeline, partition, case)
            return await self._conflict(pipeline, partition, case)
        except (ReplyNotRecordedError, ExceptionGroup) as error:
            if isinstance(error, ExceptionGroup) and error.split(ReplyNotRecordedError)[1]:
                raise
            return None

    async def _conflict(self, pipeline: InProcessPipeline, partition: int, case: conflicts.Case) -> Outcome:
        seen = await conflict_scores.run_case(pipeline, partition, case)
        commits = (*seen.known, seen.turn)
        found = None
        if question := questions().get(case.id):
            _now.set(max(one.at for one in (*case.known, case.turn)) + len(commits) * conflict_scores.DECIDED_AFTER)
            hits = await self.client.search(question, user_id=case.id, limit=TOP_K)
            places = _places(commits)
            found = Found(
                id=case.id,
                stored=tuple(sum(event.new_fact is not None for event in commit.events) for commit in commits),
                hits=tuple(FoundFact(text=hit.fact.text, places=places[hit.fact.fact_id]) for hit in hits),
                calls=seen.cost.llm_calls,
                input_tokens=seen.cost.input_tokens,
                output_tokens=seen.cost.output_tokens,
            )
        facts = tuple(f"{row.status}: {row.text}" for row in seen.after)
        score = conflict_scores.score(case, seen)
        return _outcome("conflict", score, facts, seen.cost, turns=len(commits), found=found)

    async def _dialogue(self, pipeline: InProcessPipeline, partition: int, case: dialogues.DialogueCase) -> Outcome:
        seen = await dialogue_scores.run_case(pipeline, partition, case)
        facts = tuple(f"{'held' if fact.is_held else 'not held'}: {fact.text}" for fact in seen.facts.values())
        return _outcome("dialogue", dialogue_scores.score(case, seen), facts, seen.cost, turns=len(case.turns))


def _outcome(
    kind: Kind,
    score: conflict_scores.Score | dialogue_scores.CaseScore,
    facts: tuple[str, ...],
    cost: Cost,
    *,
    turns: int,
    found: Found | None = None,
) -> Outcome:
    return Outcome(
        id=score.id,
        kind=kind,
        score=score.model_dump(exclude_defaults=True),
        facts=facts,
        turns=turns,
        calls=cost.llm_calls,
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        found=found,
    )


def _places(commits: Sequence[Commit]) -> dict[UUID, tuple[int, ...]]:
    """By fact the places of the commits whose statements it holds: its own, and those of facts merged into it."""
    places: dict[UUID, tuple[int, ...]] = {}
    for place, commit in enumerate(commits):
        for event in commit.events:
            if event.new_fact is not None:
                merged = event.targets if isinstance(event, FactsMerged) else ()
                former = {number for target in merged for number in places.get(target, ())}
                places[event.new_fact.fact_id] = (*sorted(former), place)
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcomes of the cases that have one, the others, the questions, and the versions of the prompts on tape."""

    outcomes: Sequence[Outcome]
    without: Sequence[str]
    unused: int
    asked: Mapping[str, Prompt]
    recorded_versions: frozenset[str]


async def run_split(
    database: str,
    folder: Path,
    some: Sequence[AnyCase],
    *,
    live: StreamsSettings | None = None,
    minutes: float | None = None,
) -> Run:
    """Replay the cases from `folder`. The model of `live` is asked what is missing, and what is not asked for goes."""
    if live is None:
        settings = StreamsSettings(provider="openai", embedding_provider="offline")
        chat, embedder = chosen_models(settings, replay=folder)
    else:
        settings = live
        chat, embedder = chosen_models(settings, record=folder)
    assert isinstance(chat, RecordedChatModel)
    settings = settings.model_copy(update={"postgres": database})
    reader = Settings(postgres=database, kafka="127.0.0.1:1", provider="offline")
    until = float("inf") if minutes is None else time.monotonic() + 60 * minutes
    async with (
        AsyncMemoryClient(settings=reader, now=_now.get) as client,
        in_process_pipeline(settings, chat, embedder) as pipeline,
    ):
        found = await run_all(pipeline, some, CaseRunner(client, until).run, at_once=2 if live else 16)
    run = Run(
        outcomes=[one for one in found if one],
        without=[case.id for case, one in zip(some, found, strict=True) if one is None],
        unused=len(chat.tape.keys - chat.asked.keys()),
        asked=chat.asked,
        recorded_versions=frozenset(chat.tape.versions()),
    )
    if live is not None:
        chat.tape.keep(chat.tape.keys & chat.asked.keys())
        run = replace(run, unused=0)
    return run


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """By case. Raises FileNotFoundError for a folder that is no recording."""
    return {one["id"]: Outcome.model_validate(one) for one in orjson.loads((folder / OUTCOMES).read_bytes())}


def write_outcomes(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """One case a line, so that a change shows which cases it moved."""
    lines = ",\n".join(one.model_dump_json(exclude_defaults=True) for one in outcomes)
    (folder / OUTCOMES).write_text(f"[\n{lines}\n]\n")


def differences(expected: dict[str, Outcome], run: Run) -> Iterator[str]:
    """What is not as it was recorded, a line each: stale replies first, then each case whose outcome is another."""
    if run.without or run.unused:
        changed = sorted({one.version for one in run.asked.values()} - run.recorded_versions)
        yield (
            f"recordings are stale: {len(run.without)} cases ask what was never asked ({', '.join(run.without)}), "
            f"{run.unused} replies are asked for by no case"
            + (f"; prompts without a recording: {', '.join(changed)}" if changed else "")
            + ". Record them anew: make recordings"
        )
    for one in run.outcomes:
        # Hits of equal weight come in any order, and tokens of a call for several cases are shared out.
        if (was := expected[one.id].told()) != one.told():
            yield f"{one.id}: was {was}\n  now {one.told()}"


def split_cases(expected: dict[str, Outcome]) -> list[AnyCase]:
    """The cases that have a recorded outcome, in its order."""
    every: list[AnyCase] = [*conflicts.load(), *dialogues.load()]
    by_id = {case.id: case for case in every}
    return [by_id[case_id] for case_id in expected]


async def record(split: conflicts.Split, rounds: int, minutes: float | None, live: StreamsSettings | None) -> str:
    """Record a split, or (without a model) write down the outcomes that the replies have now; what came of it.

    Raises `ReplyNotRecordedError` where replies are missing and there is no model.
    """
    folder = FOLDER / split
    some = sample(split, rounds) if live else split_cases(read_outcomes(folder))
    async with own_database() as database:
        run = await run_split(database, folder, some, live=live, minutes=minutes)
    if live is None and (run.without or run.unused):
        raise ReplyNotRecordedError(next(differences({}, run)))
    write_outcomes(folder, run.outcomes)
    calls, tokens = sum(one.calls for one in run.outcomes), sum(one.output_tokens for one in run.outcomes)
    return f"{split}: {len(run.outcomes)} cases, {calls} calls, {tokens} tokens of replies; left out: {run.without}"
