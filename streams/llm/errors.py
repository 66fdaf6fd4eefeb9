"""Errors of models, grouped by what the stage does about them."""

from mnemolog.schemas.errors import MnemologError
from mnemolog.streams.errors import StreamsError
from mnemolog.streams.llm.ports import TimedReply


class ProviderError(MnemologError):
    """Base of the providers' errors."""


class PromptRefusedError(ProviderError):
    """This call fails while others of its kind succeed: the turn fails, others go on.

    `replies` are those to the question before it was asked again: they are paid for.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.replies: tuple[TimedReply, ...] = ()


class BatchSuspectError(ProviderError):
    """A call for many items failed while other calls succeed: one of the items may be at fault, so ask for parts."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")


class ProviderConfigurationError(ProviderError):
    """The provider cannot work as configured (missing package, unknown model name): refused at start."""


class UnusableReplyError(ProviderError):
    """The reply to a search is not valid: the search goes on without it."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the reply of the model is not valid: {detail}")


class ReplyInvalidError(StreamsError):
    """Every reply, re-prompts included, was invalid.

    The caller ends the turn as failed (extraction) or adds the facts unresolved (resolution);
    `replies` are paid for and belong in the provenance either way, `complaints` says what was wrong with each.
    """

    def __init__(self, complaints: tuple[str, ...], replies: tuple[TimedReply, ...]) -> None:
        super().__init__(f"no valid reply after {len(replies)} calls, the last one: {complaints[-1]}")
        self.complaints = complaints
        self.replies = replies
