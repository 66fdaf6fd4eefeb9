"""`python -m tests.quality.recorded`: take recorded dialogues through the pipeline; whom are their facts about?

The dialogues are those of LoCoMo (turns.jsonl, observations.jsonl, questions.jsonl), whose licence forbids copies here.
`offline` are the rules; `server` is the test server, whose model has the facts of the annotators; `backlog` is the same
with all turns waiting in Kafka, so that they share calls. Ends with 1 where a fact is about the wrong speaker.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final, Literal

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from tests.bench.markdown import aligned
from tests.quality.model_sources import chosen_models
from tests.quality.recorded.runs import DialogueFigures, figures_table, run_backlog, run_dialogues
from tests.quality.runs import own_database, pipeline_over
from tests.recall.dialogues import Dialogues, load_dialogues
from tests.support.databases import temporary_folder
from tests.support.harnesses.in_process_pipeline import in_process_pipeline
from tests.support.harnesses.worker_harness import with_chat_server, worker_settings
from tests.support.locomo import default_folder
from tests.support.servers.canned_replies import LocomoReplies
from tests.support.servers.openai_server import OpenAiServer

Run = Literal["offline", "server", "backlog"]
RUNS: Final[tuple[Run, ...]] = ("offline", "server", "backlog")
_SHOWN: Final = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.recorded", description=__doc__)
    parser.add_argument("--dialogues", type=Path, metavar="DIR", default=default_folder(), help="the dialogues' folder")
    parser.add_argument("--turns", type=int, help="only so many of each dialogue")
    given = parser.parse_args()
    if not (given.dialogues / "questions.jsonl").is_file():
        sys.exit(f"no LoCoMo dialogues in {given.dialogues}: give --dialogues DIR, or set MNEMOLOG_TEST_DIALOGUES")
    dialogues = load_dialogues(given.dialogues)
    measured: dict[str, list[DialogueFigures]] = {
        name: asyncio.run(_run(dialogues, given.dialogues, name, given.turns)) for name in RUNS
    }
    for name, figures in measured.items():
        sys.stdout.write(f"{name}\n{aligned(figures_table(figures))}\n\n")
    every = [one.speakers for figures in measured.values() for one in figures]
    wrong = [told for one in every for told in (*one.wrong, *one.wrong_ties)]
    sys.stdout.writelines(f"wrong: {told}\n" for told in wrong[:_SHOWN])
    sys.exit(1 if wrong else 0)


async def _run(dialogues: Dialogues, folder: Path, name: Run, turns: int | None) -> list[DialogueFigures]:
    """Over servers of the run's own, which go away with it."""
    if name == "offline":
        async with own_database() as database, pipeline_over(database) as running:
            return await run_dialogues(running, dialogues, annotated=False, turns=turns)
    replies = LocomoReplies(folder / "observations.jsonl", leaves_out_speakers=True, names_entities=True)
    with temporary_folder("mnemolog-dialogues-") as place, OpenAiServer(replies) as server:
        async with await EmbeddedStack.start(place / "data", kafka=name == "backlog", test=True) as stack:
            await migrate(stack.postgres_url)
            kafka = stack.bootstrap if name == "backlog" else ""
            settings = with_chat_server(worker_settings(kafka, stack.postgres_url, prefix=""), server)
            if name == "backlog":
                return await run_backlog(settings, dialogues, turns=turns)
            async with in_process_pipeline(settings, *chosen_models(settings)) as running:
                return await run_dialogues(running, dialogues, annotated=True, turns=turns)


if __name__ == "__main__":
    main()
