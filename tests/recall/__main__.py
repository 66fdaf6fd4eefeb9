"""`python -m tests.recall`: ask recorded dialogues their questions, and tell how much of the evidence a search finds.

The dialogues are those of LoCoMo (turns.jsonl, observations.jsonl, questions.jsonl), whose licence forbids copies here.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from mnemolog.client.search_models import SearchModels
from mnemolog.settings import Settings
from mnemolog.streams.llm.factory import build_embedder
from tests.quality.model_sources import RecordedEmbedder
from tests.recall.ablation import Asker, Figures
from tests.recall.dialogues import Dialogues, load_dialogues
from tests.recall.report import PAGE, SPLITS, category_table, count, main_table, page
from tests.recall.stored import stored
from tests.recall.variations import RERANKED, VARIATIONS, WITH_WORDINGS, Variation
from tests.support.databases import temporary_folder
from tests.support.locomo import default_folder

CACHE: Final = user_cache_path("mnemolog") / "recall-vectors"
MODELS: Final = {"rerank": RERANKED, "variants": WITH_WORDINGS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recall", description=__doc__)
    parser.add_argument("--dialogues", type=Path, metavar="DIR", default=default_folder(), help="the dialogues' folder")
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline", help="what embeds")
    parser.add_argument("--cache", type=Path, metavar="DIR", default=CACHE, help="keeps vectors for the next run")
    about = "measure also what a model adds, that of MNEMOLOG_SEARCH_MODEL"
    parser.add_argument("--model", action="append", choices=MODELS, default=[], help=about)
    parser.add_argument("--write-docs", action="store_true", help="write docs/recall.md")
    given = parser.parse_args()
    if not (given.dialogues / "questions.jsonl").is_file():
        sys.exit(f"no LoCoMo dialogues in {given.dialogues}: give --dialogues DIR, or set MNEMOLOG_TEST_DIALOGUES")
    dialogues = load_dialogues(given.dialogues)
    settings = Settings(embedding_provider=given.provider)
    given.cache.mkdir(parents=True, exist_ok=True)
    variations = (*VARIATIONS, *(MODELS[name] for name in given.model))
    model, measured = asyncio.run(_run(dialogues, settings, given.cache, variations))
    for figures in measured:
        for split in SPLITS:
            title = f"\n{figures.kind}, dialogues {split}, {count(figures, split)} questions\n"
            sys.stdout.write(f"{title}\n{main_table(figures, split)}\n\n{category_table(figures, split)}\n")
    if given.write_docs:
        PAGE.write_text(page(dialogues, measured, model))


async def _run(
    dialogues: Dialogues, settings: Settings, cache: Path, variations: Sequence[Variation]
) -> tuple[str, list[Figures]]:
    """Over a Postgres of the run's own, which goes away with it."""
    models, live = SearchModels(settings), build_embedder(settings)
    embedder = RecordedEmbedder(cache, live.model, live)
    with temporary_folder("mnemolog-recall-") as folder:
        try:
            async with stored(dialogues, embedder, folder / "data") as tables:
                asker = Asker(dialogues, tables, embedder, models)
                return embedder.model, await asker.measure_all(variations)
        finally:
            await embedder.close()
            await models.close()


if __name__ == "__main__":
    main()
