"""The turns that wait behind one, as `resolve` reads them from the records behind its own."""

from collections.abc import Awaitable, Callable, Sequence

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.shared_calls.call_wait import CallWait
from mnemolog.streams.stages.envelope import ReceivedEnvelope


async def nothing_behind(_most: int, _wait: CallWait) -> Sequence[MatchedFacts]:
    """No turn waits."""
    return ()


async def undecided_behind(
    read: Callable[[KafkaRecord], ReceivedEnvelope[MatchedFacts]],
    behind: Callable[[int, int, CallWait], Awaitable[Sequence[KafkaRecord]]],
    scope: Scope | None,
    most: int,
    wait: CallWait,
) -> Sequence[MatchedFacts]:
    """The turns of `scope` among the records behind one, up to the first command: it may change any fact."""
    found: list[MatchedFacts] = []
    for record in await behind(most, most, wait):
        try:
            envelope = read(record).envelope
        except UnsupportedVersionError:  # the stage stops when it comes to this record
            break
        if envelope.source_kind == "command":
            break
        found += [envelope] if envelope.scope == scope else []
    return found
