"""How counts, and lists of users, agents and runs, are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mnemolog.cli.output import print_line, print_note, print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import counted

if TYPE_CHECKING:
    from mnemolog.client.files.fact_files import ImportReport
    from mnemolog.projections.lists.counts import IdCount


_MAX_SHOWN: Final = 10


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


def show_import(report: "ImportReport") -> None:
    print_line(f"{counted(report.read, 'line')} read, {counted(report.sent, 'fact')} sent")
    if report.not_active:
        print_line(f"{counted(report.not_active, 'fact')} passed over, not active")
    if report.added or report.known:
        print_line(f"{report.added} added, {report.known} known already")
    damaged = [f"line {number}: {what}" for number, what in report.damaged.items()][:_MAX_SHOWN]
    rejected = [f"{command_id}: {what}" for command_id, what in report.rejected.items()][:_MAX_SHOWN]
    for note in (*damaged, *rejected):
        print_note(note)
    if hidden := report.damaged_count + report.rejected_count - len(damaged) - len(rejected):
        print_note(f"and {hidden} more")
