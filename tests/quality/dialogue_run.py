"""`python -m tests.quality.dialogue_run`: what becomes of answers, confirmations and pronouns, with any provider.

The provider `openai` is any endpoint that the usual MNEMOLOG_ settings name. Ends with 1 where the offline provider
is worse than its baseline.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.streams.settings import StreamsSettings
from tests.quality.dialogue_cases import DialogueCase, load
from tests.quality.dialogue_scores import DialogueScore, report, run_dialogues, save, worse
from tests.quality.model_sources import chosen_models
from tests.quality.report import aligned
from tests.support.databases import temporary_folder
from tests.support.harnesses.in_process_pipeline import in_process_pipeline


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.dialogue_run", description=__doc__)
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline")
    parser.add_argument("--split", choices=("dev", "test"))
    parser.add_argument("--verbose", action="store_true", help="list the cases that are not right")
    parser.add_argument("--update-baseline", action="store_true", help="record the offline figures to compare with")
    given = parser.parse_args()
    cases = load(given.split)
    scores = asyncio.run(_scores(cases, given.provider))
    sys.stdout.write(aligned(report(cases, scores)) + "\n")
    if given.verbose:
        sys.stdout.writelines(f"{one.id}: {one.missed=} {one.harmful=}\n" for one in scores if not one.right)
    if given.provider != "offline":
        return
    if given.update_baseline:
        save(scores)
    sys.exit(1 if worse(scores) else 0)


async def _scores(cases: Sequence[DialogueCase], provider: str) -> list[DialogueScore]:
    """Over a Postgres of the run's own."""
    with temporary_folder("mnemolog-dialogues-") as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            await migrate(stack.postgres_url)
            settings = StreamsSettings.model_validate({"provider": provider, "postgres": stack.postgres_url})
            async with in_process_pipeline(settings, *chosen_models(settings)) as running:
                return await run_dialogues(running, cases, at_once=4)


if __name__ == "__main__":
    main()
