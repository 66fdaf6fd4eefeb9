"""How the figures of `quality` are shown."""

from datetime import timedelta
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries
from mnemolog.cli.results.words import age, cell, counted, moment

if TYPE_CHECKING:
    from mnemolog.projections.queries.quality import DecisionQuality


def show_quality(figures: "DecisionQuality", _: ShortIds = WHOLE_IDS) -> None:
    rate = cell(figures.wrong_overwrite_rate) or "unknown"
    print_text(f"decisions from {moment(figures.since)} to {moment(figures.until)}")
    if figures.overwrites:
        entries = [
            Entry(
                one.event,
                f"{counted(one.overwrites, 'overwrite')}: {one.undone} undone, {one.rejected} rejected, "
                f"{one.corrected} corrected",
                [", ".join(filter(None, (one.model, one.prompt_version)))],
            )
            for one in figures.overwrites
        ]
        print_entries(f"overwrites by models, rate of wrong ones {rate}", entries)
    else:
        print_text(f"no overwrites by models, rate of wrong ones {rate}")
    held = figures.held
    print_text(
        f"{counted(held.held, 'overwrite')} held back: {held.confirmed} confirmed, {held.rejected} rejected, "
        f"{held.overtaken} overtaken (resolution rate {cell(held.resolution_rate) or 'unknown'})"
    )
    if held.open:
        print_text(f"{held.open} waiting now, the oldest for {age(timedelta(seconds=held.oldest_seconds))}")
    print_text(
        f"{counted(figures.unresolved, 'unresolved fact')}; "
        f"{counted(figures.stale, 'decision')} on what had changed meanwhile (stale)"
    )
