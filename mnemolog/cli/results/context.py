"""How a context for a prompt is shown: its text alone on stdout, what is to be known about it beside."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from mnemolog.cli.output import print_line, print_note
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.words import counted

if TYPE_CHECKING:
    from mnemolog.projections.context.result import Context

_REASONS: Final = {"budget": "for want of room", "doubtful": "because it is doubtful"}


def show_context(found: "Context", _: ShortIds = WHOLE_IDS) -> None:
    if found.text:
        print_line(found.text)
    note = f"{counted(len(found.facts), 'fact')}, {found.tokens} of {found.budget_tokens} tokens ({found.counted_by})"
    left_out = [f"{number} left out {_REASONS[reason]}" for reason, number in found.left_out_counts.items()]
    reasons = Counter(one.reason for one in found.left_out_summaries)
    without = [f"{counted(number, 'summary', 'summaries')} {_REASONS[one]}" for one, number in reasons.items()]
    print_note("; ".join(filter(None, (note, *left_out, *without, found.notice))))
