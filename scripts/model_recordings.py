"""`make recordings`: ask a real model what the recordings lack; `make model-rival`: and mem0, on the same server.

    python -m scripts.model_recordings --split dev --rounds 3 --minutes 30
    python -m scripts.model_recordings --outcomes      # no model: write what the replies come to now
    python -m scripts.model_recordings --rival

Starts a small model on this machine, or asks the endpoint that MNEMOLOG_BASE_URL names; then writes docs/model.md.
"""

import argparse
import asyncio
from typing import Final, NoReturn

from mnemolog.all_in_one import StopRequested, cancel_on_stop
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.runtime import run_and_exit, stop_on_signals
from mnemolog.streams.runtime.models import build_chat_model
from scripts.model_server import endpoint, model_settings
from tests.quality.cases import SPLITS
from tests.quality.known_slots import record_slots
from tests.quality.model_page import write_page
from tests.quality.recordings import ROUNDS, record
from tests.quality.rival import run_rival
from tests.quality.tool_choices import record as record_choices

RIVAL_TOKENS: Final = 16384
"""mem0's prompt has 8500 tokens: a slot of 8192 is too small for it."""


async def run(given: argparse.Namespace) -> int:
    try:
        async with stop_on_signals() as stop:
            await cancel_on_stop(stop, _run(given, stop))
    except StopRequested:
        return INTERRUPTED
    write_page()
    return 0


async def _run(given: argparse.Namespace, stop: asyncio.Event) -> None:
    splits = [given.split] if given.split else SPLITS
    if given.outcomes:
        for split in splits:
            print(await record(split, given.rounds, None, None))
    else:
        async with endpoint(stop, **({"slot_tokens": RIVAL_TOKENS} if given.rival else {})) as base_url:
            if given.slots:
                await record_slots(build_chat_model(model_settings(base_url, llm_concurrency=2)))
                return
            if given.tools:
                print(await record_choices(base_url, model_settings(base_url).chat_model or ""))
                return
            for split in splits:
                print(await record(split, given.rounds, given.minutes, model_settings(base_url)))
            if given.rival:
                await run_rival(base_url, split=given.split)


def main() -> NoReturn:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="cases of each family")
    parser.add_argument("--minutes", type=float, help="begin no case of a split after so many minutes")
    parser.add_argument("--outcomes", action="store_true", help="ask no model: write what the replies come to now")
    parser.add_argument("--slots", action="store_true", help="ask without the slots in use, and no more")
    parser.add_argument("--tools", action="store_true", help="ask which tools of `mnemolog mcp` it takes, and no more")
    parser.add_argument("--rival", action="store_true", help="then mem0, which .venv-rival has, on the same server")
    run_and_exit(run(parser.parse_args()))


if __name__ == "__main__":
    main()
