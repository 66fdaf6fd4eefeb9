"""An installation has workers of one layout: those that chain the deciding stages, or those that run them singly.

A chain reads `conversation_turns` alone. Beside it, or before it, a single stage may write into the topics between the
stages, and what lies there is older than what the chain would begin with. The broker keeps the two out of one consumer
group, as they name different protocols; `check_layout` says the reason before a worker begins.
"""

from collections.abc import Sequence
from typing import Final

from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import MixedLayouts
from mnemolog.streams.kafka.admin import connected_admin
from mnemolog.streams.kafka.stage_lag import StageLag, chaining_workers, group_members, stage_lags
from mnemolog.streams.kafka.topics import CHAINED_BEHIND, TOPICS, group_id, topic_name
from mnemolog.streams.runtime.stage_windows import CHAINABLE

_KILLED: Final = "a killed one counts until its session has timed out"


async def check_layout(bootstrap: str, stages: Sequence[Stage], *, prefix: str = "") -> None:
    """Raise `MixedLayouts` where an App with these stages must not start; they are `CHAINABLE`, or one stage.

    Raises aiokafka's errors where no broker answers.
    """
    if len(stages) > 1:
        await _check_chain(bootstrap, prefix)
    elif stages[0] in CHAINABLE:
        await _check_single(bootstrap, prefix)


async def _check_chain(bootstrap: str, prefix: str) -> None:
    unread = [one for one in await stage_lags(bootstrap, prefix=prefix) if one.stage in CHAINED_BEHIND and one.lag]
    if unread:
        raise MixedLayouts(
            f"workers of single stages have left unread {_list(unread, prefix)}: this worker chains its stages, and "
            f"would never read them. Start `mnemolog worker {' '.join(CHAINED_BEHIND)} project` until these topics are "
            "read (`mnemolog status`), stop it, and start this worker again; or set MNEMOLOG_CHAIN=false everywhere"
        )
    async with connected_admin(bootstrap) as admin:
        alive = [stage for stage in CHAINED_BEHIND if await group_members(admin, group_id(stage, prefix))]
    if alive:
        raise MixedLayouts(
            f"workers run single stages ({', '.join(alive)}), and this one chains its stages: stop them first "
            f"({_KILLED}), or set MNEMOLOG_CHAIN=false everywhere"
        )


async def _check_single(bootstrap: str, prefix: str) -> None:
    """A chain leaves nothing unread between its stages, so that only a worker that chains now is in the way."""
    async with connected_admin(bootstrap) as admin:
        if not await chaining_workers(admin, prefix):
            return
    raise MixedLayouts(
        f"workers chain the stages {', '.join(CHAINABLE)}, and this one runs single stages: stop them first "
        f"({_KILLED}), or start this one with all of these stages and MNEMOLOG_CHAIN=true"
    )


def _list(unread: Sequence[StageLag], prefix: str) -> str:
    topics = {stage: topic_name(topic, prefix) for topic in TOPICS for stage in topic.consumers}
    return ", ".join(f"{one.lag} records of {topics[one.stage]} (read by {one.stage})" for one in unread)
