"""Which turns of a conversation are asked about in one call."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mnemolog.projections.context.tokens import estimate_tokens
from mnemolog.schemas.policy import EffectivePolicy, exceeded_turn_size
from mnemolog.schemas.turn import Overrides, Turn
from mnemolog.streams.llm.grounding.evidence import evidence_messages, shown_messages

_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTurn:
    """A turn, the broker's time of it, the position of its record, its offset there, and its size in bytes."""

    turn: Turn
    published_at: datetime
    position: str
    offset: int
    size: int

    @property
    def place(self) -> tuple[datetime, int]:
        """Where it stands in the order of its owner."""
        return self.published_at, self.offset


def turns_together(first: CallTurn, waiting: Iterable[CallTurn | None], rules: EffectivePolicy) -> tuple[CallTurn, ...]:
    """`first`, and those of the turns behind it that are asked about in the same call.

    None of `waiting` is another record, a command for instance: what is behind it comes later. Turns of other scopes
    are passed over, and so are those of the conversation that no call asks about, or a call with settings of its own.
    """
    found, tokens, turn_ids = [first], message_tokens(first.turn), {first.turn.turn_id}
    until = first.turn.occurred_at + timedelta(seconds=rules.conversation_age)
    for one in waiting:
        if one is None or len(found) >= most_turns(rules):
            break
        if one.turn.scope != first.turn.scope or not may_share(one, rules):
            continue
        tokens += message_tokens(one.turn)
        in_order = found[-1].turn.occurred_at <= one.turn.occurred_at <= until
        if tokens > rules.call_tokens or one.turn.turn_id in turn_ids or not in_order:
            break
        found.append(one)
        turn_ids.add(one.turn.turn_id)
    return tuple(found)


def may_share(one: CallTurn, rules: EffectivePolicy) -> bool:
    """Whether a turn may share its call: it needs one, has no settings of its own, and may be shown to others."""
    turn = one.turn
    shows_conversation = rules.conversation_messages > 0 and rules.conversation_tokens > 0
    is_asked = turn.infer and bool(evidence_messages(turn)) and turn.overrides == _NO_OVERRIDES
    return is_asked and shows_conversation and exceeded_turn_size(rules, one.size) is None


def most_turns(rules: EffectivePolicy) -> int:
    """How many turns a call may ask about: no more than are accepted in a minute."""
    limits = (limits.turns_per_minute for limits in rules.limits.values())
    return max(1, min([rules.call_turns, *(limit for limit in limits if limit is not None)]))


def message_tokens(turn: Turn) -> int:
    """The estimated tokens of what a prompt shows of a turn."""
    return sum(map(estimate_tokens, (*(message.content for message in shown_messages(turn)), *turn.recalled)))
