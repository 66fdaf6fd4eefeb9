"""What the simulated chat model says of conflicts: it reads the question as it stands, with the numbers of the facts.

A new fact replaces the oldest that it may concern, or all where they are many, or stands beside them: that follows from
the numbers of all of them. The reason names these, so an answer shows which question it was given to.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mnemolog.streams.llm.ports import Prompt

_KNOWN: Final = re.compile(r"K(\d+) \(.*?\): \w+ number (\d+) ")
_NEW: Final = re.compile(r"N(\d+) \(.*?\): \w+ number (\d+) ")
_LISTED: Final = "  may concern: "
_BESIDE: Final = 4
"""Of the sums of the numbers, one in so many leaves all facts beside one another, as long as these are few."""
_MANY: Final = 3
Turn = list[dict[str, Any]]


def decisions_on(prompt: Prompt) -> str:
    """The reply to a question about the conflicts of one turn."""
    return json.dumps({"decisions": _turns(prompt)[0]})


def _question(prompt: Prompt) -> str:
    """Without what was answered before, and what was wrong with that."""
    return prompt.messages[1].content


def _turns(prompt: Prompt) -> list[Turn]:
    """The decisions on each turn of the question, with the numbers that stand there."""
    turns: list[Turn] = []
    known: dict[int, int] = {}
    new = label = 0
    for line in _question(prompt).splitlines():
        if line.startswith("Known facts:"):
            turns.append([])
        elif found := _KNOWN.match(line):
            known[int(found[1])] = int(found[2])
        elif found := _NEW.match(line):
            label, new = int(found[1]), int(found[2])
        elif line.startswith(_LISTED):
            listed = [int(one.removeprefix("K")) for one in line.removeprefix(_LISTED).split(", ")]
            turns[-1].append(_decision(label, new, listed, known))
    return turns


def _decision(label: int, new: int, listed: Sequence[int], known: Mapping[int, int]) -> dict[str, Any]:
    oldest_first = sorted(listed, key=lambda one: known[one])
    numbers = [known[one] for one in oldest_first]
    few = int((new + sum(numbers)) % _BESIDE > 0)
    replaced = oldest_first[: few if len(numbers) < _MANY else None]
    return {
        "new": label,
        "reason": f"{new} beside {', '.join(map(str, numbers))}",
        "action": "REPLACE" if replaced else "ADD",
        "known": replaced,
        "text": None,
        "search_text": None,
        "ended_at": None,
    }
