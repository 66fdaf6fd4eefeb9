"""`make model`: the conversation of the demonstration becomes facts by a real language model, over the whole stack.

    python -m scripts.model_demo

Starts a small model on this machine, or asks the endpoint that MNEMOLOG_BASE_URL names. Each person says a turn when
the turn before has its end, as in a chat. The transcript is written into docs/model.md.
"""

import argparse
import asyncio
import io
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NoReturn
from uuid import UUID

from mnemolog.all_in_one import StopRequested, cancel_on_stop
from mnemolog.cli.demo import all_in_one, data_folder, shifted_records
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.runtime import run_and_exit, stop_on_signals
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.turn_files import TurnFilePublisher
from mnemolog.logs import configure_logs
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings
from scripts.model_server import endpoint, model_settings
from tests.bench.machine import Machine
from tests.quality.model_page import Change, Transcript, TranscriptTurn, write_page

TURN_SECONDS: Final = 900.0


async def converse(settings: Settings, most: int | None, said: list[TranscriptTurn]) -> None:
    """Say the turns, of each person so many at the most and one after another; add to `said` what becomes of each."""
    turns = defaultdict(list)
    for line in shifted_records(datetime.now(UTC).date()):
        try:
            turn = Turn.model_validate_json(line)
        except ValueError:
            continue  # the record that is no turn
        turns[turn.scope.user_id].append(turn)
    async with AsyncMemoryClient(settings=settings) as client, asyncio.TaskGroup() as group:
        for some in turns.values():
            group.create_task(_say_all(client, settings, some[:most], said))


async def _say_all(
    client: AsyncMemoryClient, settings: Settings, turns: Sequence[Turn], said: list[TranscriptTurn]
) -> None:
    texts: dict[UUID, str] = {}
    for turn in turns:
        publisher = TurnFilePublisher(settings, raw=True, progress=lambda *_: None)
        began = time.monotonic()
        (receipt,) = await publisher.publish(io.BytesIO(turn.to_bytes()))
        end = await client.wait(receipt, timeout=TURN_SECONDS)
        texts |= {one.fact_id: one.text or "" for one in end.changes if one.fact_id}
        one = transcript_turn(turn, end, texts, time.monotonic() - began)
        sys.stdout.write(f"{one.shown()}\n")
        sys.stdout.flush()
        said.append(one)


def transcript_turn(turn: Turn, end: Result, texts: Mapping[UUID, str], seconds: float) -> TranscriptTurn:
    return TranscriptTurn(
        speaker=turn.speaker or "",
        said=" ".join(one.content for one in turn.messages if one.role == "user"),
        status=end.status,
        error=end.error,
        changes=tuple(
            Change(
                event=one.event,
                text=one.text or "",
                of=tuple(texts.get(target, "") for target in one.targets),
            )
            for one in end.changes
        ),
        seconds=round(seconds, 1),
        calls=end.llm_calls,
        input_tokens=end.tokens.input,
        output_tokens=end.tokens.output,
    )


async def run(most: int | None) -> int:
    machine, began = Machine.describe(), time.monotonic()
    model, said, code = "", list[TranscriptTurn](), 0
    try:
        async with stop_on_signals() as stop, endpoint(stop) as base_url:
            with data_folder(None) as folder:
                settings = model_settings(base_url, kafka=None, postgres=None, data_dir=folder, metrics_port=0)
                model = settings.chat_model
                configure_logs("error", settings.log_format)
                async with all_in_one(settings, stop, kept=False) as servers:
                    found = {"kafka": servers.kafka, "postgres": servers.postgres}
                    began = time.monotonic()
                    await cancel_on_stop(stop, converse(settings.model_copy(update=found), most, said))
    except StopRequested:
        code = INTERRUPTED
    if said:
        seconds = round(time.monotonic() - began)
        Transcript(at=machine.at, machine=machine.hardware, model=model, seconds=seconds, turns=tuple(said)).save()
        write_page()
        sys.stdout.write("the transcript is in docs/model.md\n")
    return code


def main() -> NoReturn:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, metavar="N", help="only the first N turns of each person")
    run_and_exit(run(parser.parse_args().turns))


if __name__ == "__main__":
    main()
