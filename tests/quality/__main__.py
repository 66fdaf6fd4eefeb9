"""`python -m tests.quality`: run the labelled conflicts through the pipeline and tell how well they were decided.

The provider `openai` is any endpoint that the usual MNEMOLOG_ settings name. Ends with 1 where the offline provider
is worse than its baseline.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

import orjson

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.streams.llm.ports import ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings
from tests.quality import baseline
from tests.quality.case_runner import run_cases
from tests.quality.cases import FAMILIES, LANGUAGES, Case, load
from tests.quality.model_sources import chosen_models
from tests.quality.page import PAGE, page
from tests.quality.rates import ScoredCase
from tests.quality.recorded_replies import ReplyNotRecordedError
from tests.quality.report import misses, report
from tests.quality.run_options import at_once, run_parser, writes_of_some
from tests.quality.scores import CaseResult, score, word_of
from tests.support.databases import temporary_folder
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


def main() -> None:
    given = _parser().parse_args()
    cases = _chosen(given)
    observed = _observed(cases, given)
    scored = [ScoredCase(case=case, score=score(case, one)) for case, one in zip(cases, observed, strict=True)]
    if given.verbose:
        _tell(misses(scored) + "\n")
    _tell(report(scored, [one.cost for one in observed]))
    if given.json:
        given.json.write_bytes(orjson.dumps(_details(scored, observed), option=orjson.OPT_INDENT_2))
    sys.exit(_compared(scored, given))


def _parser() -> argparse.ArgumentParser:
    parser = run_parser("tests.quality", __doc__, families=FAMILIES, page="docs/quality.md")
    parser.add_argument("--language", choices=LANGUAGES, help="only cases in this language")
    return parser


def _chosen(given: argparse.Namespace) -> list[Case]:
    if writes_of_some(given):
        sys.exit("the baseline and the page are of all cases with the offline provider: leave the other choices out")
    cases = load(None if given.split == "all" else given.split)
    return [case for case in cases if given.family in (None, case.family) and given.language in (None, case.language)]


def _observed(cases: Sequence[Case], given: argparse.Namespace) -> list[CaseResult]:
    fault = ""
    try:
        return asyncio.run(_run(cases, given))
    except* (ReplyNotRecordedError, ProviderConfigurationError) as errors:
        fault = str(next(_single(errors)))
    sys.exit(fault)


def _single(errors: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _single(error)
        else:
            yield error


async def _run(cases: Sequence[Case], given: argparse.Namespace) -> list[CaseResult]:
    """Over a Postgres of the run's own, which goes away with it."""
    with temporary_folder("mnemolog-quality-") as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            await migrate(stack.postgres_url)
            settings = StreamsSettings(provider=given.provider, postgres=stack.postgres_url)
            chat, embedder = chosen_models(settings, record=given.record, replay=given.replay)
            async with in_process_pipeline(settings, chat, embedder) as running:
                return await run_cases(running, cases, at_once=at_once(given))


def _compared(scored: Sequence[ScoredCase], given: argparse.Namespace) -> int:
    """Hold offline figures against the baseline, or record them as it; the exit status."""
    if given.write_docs:
        PAGE.write_text(page(scored))
    if given.update_baseline:
        baseline.save([one.score for one in scored])
        return 0
    if given.provider != "offline" or given.replay:
        return 0
    complaints = baseline.regressions(scored, baseline.load())
    if complaints:
        _tell("\nWorse than the baseline:\n" + "\n".join(complaints))
    return 1 if complaints else 0


def _details(scored: Sequence[ScoredCase], observed: Sequence[CaseResult]) -> list[dict[str, object]]:
    return [
        {
            **one.case.model_dump(mode="json"),
            "score": one.score.model_dump(),
            "decisions": [{"word": word_of(event), "reason": event.decision.reason} for event in seen.turn.events],
            "facts": [{"from": row.source_id, "status": row.status, "text": row.text} for row in seen.after],
        }
        for one, seen in zip(scored, observed, strict=True)
    ]


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
