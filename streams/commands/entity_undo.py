"""Which changes of entities an undo takes back, or puts back into effect.

None depends on another one: the state of entities is what it would be if what was undone had not happened.
"""

from collections.abc import Sequence

from mnemolog.schemas.entities.changes import EntityDecisionUndone
from mnemolog.schemas.entities.stored import LoggedChange
from mnemolog.streams.commands.context import CommandContext


def undo_changes(context: CommandContext, selected: Sequence[LoggedChange]) -> tuple[EntityDecisionUndone, ...]:
    """One event for each selected change that holds, and for each undo that is the last word on its change."""
    wanted = {one.original_id: one for one in selected if one.in_effect == one.enables and _is_last_word(one)}
    return tuple(_undo(context, one) for one in reversed(wanted.values()))


def _is_last_word(change: LoggedChange) -> bool:
    """A change that was undone and is in effect again is undone at its last event; an undo only as the last one."""
    return change.enables or change.event_id == change.latest_id


def _undo(context: CommandContext, change: LoggedChange) -> EntityDecisionUndone:
    decision = context.decision("human", f"took back {change.event} of {change.source_id}")
    return EntityDecisionUndone(
        **context.event_fields(0, decision),
        undone=change.original_id if change.enables else change.event_id,
        undone_event=change.original_event if change.enables else change.event,
        reinstated=None if change.enables else change.original_id,
        named=change.entity_ids,
    )
