"""Whether known slots keep keys stable: second statements of the recordings, asked again without the slots in use.

`make recordings ARGS=--slots` asks; docs/model.md has the shares.
"""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from mnemolog.schemas.base import Record
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ChatModel, ExtractionTask, TaskPrompt
from tests.bench.markdown import table
from tests.quality import cases as conflicts
from tests.quality.model_sources import CHAT, ReplyLog
from tests.quality.recordings import FOLDER, read_outcomes, run_split, split_cases
from tests.quality.runs import Share, own_database

RESULTS: Final = Path(__file__).with_name("results") / "slots.jsonl"
_IN_USE: Final = re.compile(r"^slots in use: .*\n", re.MULTILINE)


class SlotReply(Record):
    """The keys of what a turn states: of the known facts, with those shown, and hidden."""

    id: str
    known: tuple[str, ...]
    shown: tuple[str, ...]
    hidden: tuple[str, ...]


async def record_slots(model: ChatModel) -> None:
    """Ask for each turn of a recorded case that ends a known fact and states what is so instead."""

    async def found(prompt: TaskPrompt, task: ExtractionTask, recorded: str) -> SlotReply:
        hidden = await model.complete(prompt)
        known = tuple(one.key for one in task.background.facts if one.key)
        return SlotReply(
            id=task.turn.turn_id, known=known, shown=_keys(recorded, task), hidden=_keys(hidden.text, task)
        )

    wanted = []
    for split in conflicts.SPLITS:
        changes = [
            case
            for case in split_cases(read_outcomes(FOLDER / split))
            if isinstance(case, conflicts.Case) and (case.old, case.new) == ("ended", "kept")
        ]
        async with own_database() as database:
            run = await run_split(database, FOLDER / split, changes)
        tape = ReplyLog(FOLDER / split / CHAT)
        for key, prompt in run.asked.items():
            if isinstance(prompt, TaskPrompt) and isinstance(task := prompt.task, ExtractionTask):
                system, asked = prompt.messages
                bare = replace(asked, content=_IN_USE.sub("", asked.content))
                if bare != asked and (recorded := tape.get(key)):
                    wanted.append(found(replace(prompt, messages=(system, bare)), task, recorded["text"]))
    RESULTS.write_text("".join(f"{one.model_dump_json()}\n" for one in await asyncio.gather(*wanted)))


def _keys(reply: str, task: ExtractionTask) -> tuple[str, ...]:
    return tuple(fact.key for fact in parse_extraction(reply, task).value or () if fact.key)


def slot_table() -> str:
    """Of these turns those with a fact of a known slot, a row each for prompts with and without the slots in use."""
    found = [SlotReply.model_validate_json(line) for line in RESULTS.read_bytes().splitlines()]
    rows = []
    for name, keys in (("slots in use shown", "shown"), ("not shown", "hidden")):
        same = sum(not {*one.known}.isdisjoint(getattr(one, keys)) for one in found)
        rows.append((name, str(len(found)), str(Share(of=len(found), count=same))))
    return table(("changes of a known fact", "turns", "of its slot"), rows)
