"""Replies about one conflict: harmful ones, with what the complaint has to say, and honest ones.

A line of `harmful_replies.txt` or `honest_replies.txt` is: action | new fact | known fact | merged text | a part of the
complaint | ended_at. Those of `seen_` and `unseen_` were written without sight of the rules, which were then mended by
the seen ones alone; they have no complaint.
"""

from pathlib import Path
from typing import Final, NamedTuple


class ReplyCase(NamedTuple):
    """A reply of a model: what it decides about a new and a known fact, and the complaint, if it deserves one."""

    action: str
    new: str
    known: str
    merged: str
    complaint: str
    ended_at: str = ""


def _read(name: str) -> list[ReplyCase]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    rows = ([part.strip() for part in line.split("|")] for line in lines)
    return [ReplyCase(*[*row, *[""] * len(ReplyCase._fields)][: len(ReplyCase._fields)]) for row in rows]


HARMFUL: Final = _read("harmful_replies.txt")
HONEST: Final = _read("honest_replies.txt")
SEEN_HARMFUL: Final = _read("seen_harmful_replies.txt")
SEEN_HONEST: Final = _read("seen_honest_replies.txt")
UNSEEN_HARMFUL: Final = _read("unseen_harmful_replies.txt")
UNSEEN_HONEST: Final = _read("unseen_honest_replies.txt")
