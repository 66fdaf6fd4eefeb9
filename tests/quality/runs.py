"""What the runs of labelled sets have in common: the command line, a pipeline, costs, rates and baselines."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import orjson

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.schemas.base import Record
from mnemolog.schemas.commit import Commit
from mnemolog.streams.llm.ports import ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import ReplyNotRecordedError, chosen_models
from tests.support.databases import temporary_folder
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline

AT_ONCE: Final = 16
"""How many cases run at a time."""


class Labelled(Protocol):
    @property
    def family(self) -> str: ...

    @property
    def split(self) -> str: ...


Case = TypeVar("Case", bound=Labelled)
Result = TypeVar("Result")
AnyScore = TypeVar("AnyScore", bound=Record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A rate with what it is made of; a rate of nothing is 0."""

    of: int
    count: int

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f} % ({self.count}/{self.of})" if self.of else "- (0/0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a case took, all its turns together; milliseconds are those of its last turn.

    Tokens are those of the chat model: those of an embedding call are shared out to whoever is at work meanwhile.
    """

    llm_calls: int = 0
    embedding_calls: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: float = 0.0

    @classmethod
    def of(cls, commits: Sequence[Commit], milliseconds: float = 0.0) -> "Cost":
        steps = [step for commit in commits for step in commit.provenance.steps]
        return cls(
            llm_calls=sum(step.llm_calls for step in steps),
            embedding_calls=sum(step.embedding_calls for step in steps),
            input_tokens=sum(step.input_tokens for step in steps if step.llm_calls),
            output_tokens=sum(step.output_tokens for step in steps),
            milliseconds=round(milliseconds, 3),
        )


def run_parser(program: str, about: str | None, *, families: Sequence[str], page: str) -> argparse.ArgumentParser:
    """Which cases run with which provider, and what is written of it; `page` is what `--write-docs` writes."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline")
    parser.add_argument("--split", choices=("dev", "test", "all"), default="all")
    parser.add_argument("--family", choices=families, help="only cases of this family")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th case of a family and split")
    parser.add_argument("--json", type=Path, help="write what came of each case to this file")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="cases at a time")
    parser.add_argument("--verbose", action="store_true", help="list the cases that are not right")
    tape = parser.add_mutually_exclusive_group()
    tape.add_argument("--record", type=Path, metavar="DIR", help="keep every reply of the models in this folder")
    tape.add_argument("--replay", type=Path, metavar="DIR", help="take the replies from there, without a server")
    parser.add_argument("--update-baseline", action="store_true", help="record the offline figures to compare with")
    parser.add_argument("--write-docs", action="store_true", help=f"write {page} from the offline figures")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments. Ends the program where a baseline or a page is asked for, and not all cases run offline."""
    given = parser.parse_args()
    chosen = (given.family, getattr(given, "language", None), given.replay, given.every > 1)
    is_whole = given.split == "all" and given.provider == "offline" and not any(chosen)
    if (given.update_baseline or given.write_docs) and not is_whole:
        sys.exit("the baseline and the page are of all cases with the offline provider: leave the other choices out")
    return given


def each_nth(cases: Sequence[Case], every: int) -> list[Case]:
    """The first, and each `every`-th after it, of each family and split."""
    groups: dict[tuple[object, object], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.family, case.split), []).append(case)
    taken = {id(case) for group in groups.values() for case in group[::every]}
    return [case for case in cases if id(case) in taken]


@asynccontextmanager
async def pipeline_over(
    database: str, provider: str = "offline", *, record: Path | None = None, replay: Path | None = None
) -> AsyncIterator[InProcessPipeline]:
    """The stages without Kafka over a migrated database."""
    settings = StreamsSettings.model_validate({"provider": provider, "postgres": database})
    async with in_process_pipeline(settings, *chosen_models(settings, record=record, replay=replay)) as running:
        yield running


@asynccontextmanager
async def own_database() -> AsyncIterator[str]:
    """A migrated Postgres of the run's own, which goes away with it."""
    with temporary_folder("mnemolog-quality-") as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            await migrate(stack.postgres_url)
            yield stack.postgres_url


RunCase = Callable[[InProcessPipeline, int, Case], Awaitable[Result]]


async def run_all(
    pipeline: InProcessPipeline, cases: Sequence[Case], run: RunCase[Case, Result], *, at_once: int = AT_ONCE
) -> list[Result]:
    """What happened to each case, in their order; each has a partition of its own."""
    places = asyncio.Semaphore(at_once)

    async def one(number: int, case: Case) -> Result:
        async with places:
            return await run(pipeline, number, case)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, case)) for number, case in enumerate(cases)]
    return [task.result() for task in tasks]


def results_of(given: argparse.Namespace, cases: Sequence[Case], run: RunCase[Case, Result]) -> list[Result]:
    """Run the cases as the arguments say. Ends the program where a model cannot be asked or a reply is missing."""

    async def over_own_database() -> list[Result]:
        async with (
            own_database() as database,
            pipeline_over(database, given.provider, record=given.record, replay=given.replay) as running,
        ):
            return await run_all(running, cases, run, at_once=given.at_once)

    fault = ""
    try:
        return asyncio.run(over_own_database())
    except* (ReplyNotRecordedError, ProviderConfigurationError) as errors:
        fault = str(next(_single(errors)))
    sys.exit(fault)


def _single(errors: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _single(error)
        else:
            yield error


def save_scores(scores: Sequence[Record], path: Path) -> None:
    """One case a line, so that a change shows which cases it moved."""
    lines = ",\n".join(orjson.dumps(one.model_dump(exclude_defaults=True)).decode() for one in scores)
    path.write_text(f"[\n{lines}\n]\n")


def load_scores(kind: type[AnyScore], path: Path) -> dict[str, AnyScore]:
    """The scores by case id; none where none were recorded."""
    if not path.exists():
        return {}
    return {one["id"]: kind.model_validate(one) for one in orjson.loads(path.read_bytes())}


def exit_status(
    given: argparse.Namespace, scores: Sequence[AnyScore], baseline: Path, regressions: Callable[[], list[str]]
) -> int:
    """Record offline figures as the baseline, or compare them with it and print what is worse."""
    if given.update_baseline:
        save_scores(scores, baseline)
        return 0
    if given.provider != "offline" or given.replay:
        return 0
    worse = regressions()
    if worse:
        sys.stdout.write("\nWorse than the baseline:\n" + "\n".join(worse) + "\n")
    return 1 if worse else 0
