"""The command line that the labelled sets have in common."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

AT_ONCE: Final = {"offline": 4, "openai": 16}
"""How many cases run at a time, by provider."""


def run_parser(program: str, about: str | None, *, families: Sequence[str], page: str) -> argparse.ArgumentParser:
    """Which cases run with which provider, and what is written of it; `page` is what `--write-docs` writes."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--provider", choices=tuple(AT_ONCE), default="offline")
    parser.add_argument("--split", choices=("dev", "test", "all"), default="all")
    parser.add_argument("--family", choices=families, help="only cases of this family")
    parser.add_argument("--json", type=Path, help="write what came of each case to this file")
    parser.add_argument("--at-once", type=int, help="cases at a time; 4 offline, 16 with a server")
    parser.add_argument("--verbose", action="store_true", help="list the cases that are not right")
    tape = parser.add_mutually_exclusive_group()
    tape.add_argument("--record", type=Path, metavar="DIR", help="keep every reply of the models in this folder")
    tape.add_argument("--replay", type=Path, metavar="DIR", help="take the replies from there, without a server")
    parser.add_argument("--update-baseline", action="store_true", help="record the offline figures to compare with")
    parser.add_argument("--write-docs", action="store_true", help=f"write {page} from the offline figures")
    return parser


def writes_of_some(given: argparse.Namespace) -> bool:
    """Whether a baseline or a page is asked for, and not all cases run with the offline provider."""
    chosen = (given.family, getattr(given, "language", None), given.replay)
    is_whole = given.split == "all" and given.provider == "offline" and not any(chosen)
    return (given.update_baseline or given.write_docs) and not is_whole


def at_once(given: argparse.Namespace) -> int:
    """How many cases run at a time."""
    chosen: int | None = given.at_once
    return chosen or AT_ONCE[given.provider]
