"""What asking a model can end in, besides an answer."""

from mnemolog.streams.errors import StreamsError
from mnemolog.streams.llm.ports import TimedReply


class ReplyInvalidError(StreamsError):
    """Every reply, re-prompts included, was invalid.

    The caller ends the turn as failed (extraction) or adds the facts unresolved (resolution);
    `replies` are paid for and belong in the provenance either way, `complaints` says what was wrong with each.
    """

    def __init__(self, complaints: tuple[str, ...], replies: tuple[TimedReply, ...]) -> None:
        super().__init__(f"no valid reply after {len(replies)} calls, the last one: {complaints[-1]}")
        self.complaints = complaints
        self.replies = replies
