"""How counts, and lists of users, agents and runs, are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_note, print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import counted

if TYPE_CHECKING:
    from mnemolog.projections.lists.counts import IdCount


def show_count(number: int, _: ShortIds = WHOLE_IDS) -> None:
    print_text(counted(number, "fact"))


def show_ids(found: "Sequence[IdCount]", _: ShortIds = WHOLE_IDS) -> None:
    if not found:
        print_text("none: check the tenant; `mnemolog add TEXT --user USER` makes facts")
        return
    entries = [Entry(one.id, f"{counted(one.facts, 'fact')} in {counted(one.scopes, 'scope')}") for one in found]
    print_entries(f"{len(found)} listed", entries)


def show_exported(number: int, _: ShortIds = WHOLE_IDS) -> None:
    print_note(f"{counted(number, 'fact')} written")
