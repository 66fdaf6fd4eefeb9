"""The value of `memory_events`: everything that one source did, at once."""

from typing import Annotated

from pydantic import Field

from mnemolog.schemas.base import Count, Identifier, IfAny, Metadata, Outcome, SourceKind, Text, Timestamp, Versioned
from mnemolog.schemas.command import CommandPayload
from mnemolog.schemas.entity_events import AnyEntityEvent
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Origin, Provenance
from mnemolog.schemas.scope import Scope


class Commit(Versioned):
    """The end of one source. `based_on` is the version of the scope that the decisions saw.

    Enough to fold (facts with vectors and times), to explain (a decision at each event) and to
    account for (calls, tokens and milliseconds at each step). `attempt` counts the commits of a source: a turn that
    failed, or was rejected for a limit, may be published again, and its next commit takes the place of that end.
    `speaker` is the speaker of the turn. `entity_events` say which entities the facts of `events` name.
    """

    source_id: Identifier
    source_kind: SourceKind = "turn"
    attempt: Annotated[int, Field(ge=1)] = 1
    scope: Scope | None
    origin: Origin
    occurred_at: Timestamp
    published_at: Timestamp
    decided_at: Timestamp
    outcome: Outcome
    reason: Text | None = None
    detail: Text = ""
    limit: LimitHit | None = None
    order: CommandPayload | None = None
    actor: Text | None = None
    speaker: Text | None = None
    events: tuple[MemoryEvent, ...] = ()
    entity_events: IfAny[tuple[AnyEntityEvent, ...]] = ()
    provenance: Provenance = Provenance.model_construct()
    based_on: Count = 0
    metadata: Metadata = Field(default_factory=dict)

    @property
    def owner(self) -> str:
        return self.scope.owner if self.scope else self.source_id

    @property
    def key(self) -> bytes:
        return self.scope.key if self.scope else self.source_id.encode()

    @property
    def retryable(self) -> bool:
        """Whether the source may have another commit: a turn that failed, or what was over a limit, did nothing."""
        return self.limit is not None or (self.source_kind == "turn" and self.outcome == "failed")
