"""A model's reply as it is stored before it is used, so that a turn that is delivered again needs no second call."""

from dataclasses import dataclass

ReplyKey = tuple[str, str, str, str]
"""Owner, source id, stage and version of the prompt and model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """The reply to one attempt; `reply` is its text."""

    owner: str
    source_id: str
    stage: str
    version: str
    attempt: int
    reply: str
    model: str
    input_tokens: int
    output_tokens: int
    milliseconds: float

    @property
    def key(self) -> ReplyKey:
        return (self.owner, self.source_id, self.stage, self.version)

    @property
    def attempt_key(self) -> tuple[ReplyKey, int]:
        """Identifies one reply."""
        return self.key, self.attempt


class ReplyNotStorableError(ValueError):
    """The database refuses the content of a reply."""
