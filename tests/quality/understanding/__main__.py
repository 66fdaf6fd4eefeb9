"""`python -m tests.quality.understanding`: run the labelled dialogues, and tell what of them is understood.

The provider `openai` is any endpoint that the usual MNEMOLOG_ settings name. Ends with 1 where the offline provider
is worse than its baseline.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

import orjson

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.streams.llm.ports import ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.quality.recorded_replies import ReplyNotRecordedError
from tests.quality.report import aligned
from tests.quality.run_options import at_once, run_parser, writes_of_some
from tests.quality.understanding import baseline
from tests.quality.understanding.case_runner import run_cases
from tests.quality.understanding.cases import FAMILIES, DialogueCase, load
from tests.quality.understanding.page import PAGE, page
from tests.quality.understanding.report import ScoredCase, cost_report, misses, report
from tests.quality.understanding.scores import score
from tests.support.databases import temporary_folder
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


def main() -> None:
    given = run_parser(
        "tests.quality.understanding", __doc__, families=FAMILIES, page="docs/understanding.md"
    ).parse_args()
    cases = _chosen(given)
    try:
        scored = asyncio.run(_run(cases, given))
    except (ReplyNotRecordedError, ProviderConfigurationError) as error:
        sys.exit(str(error))
    if given.verbose:
        sys.stdout.write(misses(scored) + "\n\n")
    sys.stdout.write(f"{aligned(report(scored))}\n\n{aligned(cost_report(scored))}\n")
    if given.json:
        given.json.write_bytes(orjson.dumps([one.score.model_dump() for one in scored], option=orjson.OPT_INDENT_2))
    sys.exit(_compared(scored, given))


def _chosen(given: argparse.Namespace) -> list[DialogueCase]:
    if writes_of_some(given):
        sys.exit("the baseline and the page are of all cases with the offline provider: leave the other choices out")
    cases = load(None if given.split == "all" else given.split)
    return [case for case in cases if given.family in (None, case.family)]


async def _run(cases: Sequence[DialogueCase], given: argparse.Namespace) -> list[ScoredCase]:
    """Over a Postgres of the run's own, which goes away with it."""
    with temporary_folder("mnemolog-understanding-") as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            await migrate(stack.postgres_url)
            settings = StreamsSettings.model_validate({"provider": given.provider, "postgres": stack.postgres_url})
            chat, embedder = chosen_models(settings, record=given.record, replay=given.replay)
            async with in_process_pipeline(settings, chat, embedder) as running:
                seen = await run_cases(running, cases, at_once=at_once(given))
    pairs = zip(cases, seen, strict=True)
    return [ScoredCase(case=case, score=score(case, one), cost=one.cost) for case, one in pairs]


def _compared(scored: Sequence[ScoredCase], given: argparse.Namespace) -> int:
    """Hold offline figures against the baseline, or record them as it; the exit status."""
    if given.write_docs:
        PAGE.write_text(page(scored))
    if given.update_baseline:
        baseline.save([one.score for one in scored])
        return 0
    if given.provider != "offline" or given.replay:
        return 0
    worse = baseline.regressions([one.score for one in scored], baseline.load())
    if worse:
        sys.stdout.write("\nWorse than the baseline:\n" + "\n".join(worse) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    main()
