"""The public names of Mnemolog.

with MemoryClient() as memory:
    result = memory.add("I moved to Bern.", user_id="alice", wait=True)
    found = memory.search("Where does Alice live?", user_id="alice")

`AsyncMemoryClient` has the same methods for asyncio. docs/client.md is the reference.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.base import ClientOptions
    from mnemolog.client.files import ImportReport
    from mnemolog.client.inputs import BoundArgs, CommandArgs, ScopeArgs, TurnArgs
    from mnemolog.client.producer import CommandReceipt, TurnReceipt
    from mnemolog.client.records import MessageModel
    from mnemolog.client.search import SearchResult
    from mnemolog.client.search_arguments import ContextArgs, SearchArgs
    from mnemolog.client.sync_client import MemoryClient
    from mnemolog.errors import (
        AmbiguousIdError,
        AmbiguousTurnError,
        InvalidArgumentError,
        InvalidCommandError,
        InvalidTurnError,
        LimitExceededError,
        MissingExtraError,
        MnemologError,
        NotConnectedError,
        PartlyPublishedError,
        PublishError,
        QueryError,
        ServerUnavailableError,
        SettingsError,
        UnknownArgumentError,
        UnknownEntityError,
        UnknownEventError,
        UnknownFactError,
        UnknownTurnError,
        WaitTimeoutError,
    )
    from mnemolog.projections.context import Context, ContextFact, ContextSummary, LeftOut, LeftOutSummary
    from mnemolog.projections.queries.audit import FailedTurn
    from mnemolog.projections.queries.diff import Change, ChangedFact, Diff
    from mnemolog.projections.queries.entities import (
        Entity,
        EntityDetails,
        EntityFact,
        EntityHistoryEntry,
        EntityMoment,
        EntityName,
        EntityProfile,
        EntityRelation,
        EntitySummary,
    )
    from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
    from mnemolog.projections.queries.explain import (
        EntityDecision,
        Explanation,
        FactEvent,
        FactExtraction,
        FactRelation,
        FactSource,
        History,
        LinkedEntity,
    )
    from mnemolog.projections.queries.facts import IdCount
    from mnemolog.projections.queries.pending import ConflictingFact, PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.quality import (
        CostFigures,
        DecisionQuality,
        FeedbackFigures,
        HeldOverwrites,
        ModelCost,
        OverwriteCounts,
    )
    from mnemolog.projections.queries.results import (
        EventResult,
        Fact,
        FoundFact,
        Profile,
        StageCost,
        Tokens,
        WriteResult,
    )
    from mnemolog.projections.queries.trace import (
        BackgroundEntity,
        BackgroundFact,
        ExtractionBackground,
        OmittedStatement,
        RetrievedCandidate,
        Trace,
        TracedAnswer,
        TracedCall,
        TracedDecision,
        TracedName,
        TracedReprompt,
    )
    from mnemolog.projections.queries.write_result import MissingStatement, WhyNot
    from mnemolog.projections.search.search import Hit, LeftOutHits, Score, Weights
    from mnemolog.projections.search.turn_search import TurnHit, TurnScore
    from mnemolog.schemas.command import Edit
    from mnemolog.schemas.costs import Cost
    from mnemolog.schemas.instructions import DescribedCategory, ForbiddenTopic, Instructions
    from mnemolog.schemas.policy import LimitHit, Limits, Policy, StoredPolicies
    from mnemolog.schemas.provenance import FactSnapshot
    from mnemolog.schemas.scope import Scope
    from mnemolog.schemas.turn import Message, Overrides, Turn
    from mnemolog.settings import Settings
    from mnemolog.streams.llm.ports import ProviderConfigurationError, ProviderError

__all__ = [
    "AmbiguousIdError",
    "AmbiguousTurnError",
    "AsyncMemoryClient",
    "BackgroundEntity",
    "BackgroundFact",
    "BoundArgs",
    "Change",
    "ChangedFact",
    "ClientOptions",
    "CommandArgs",
    "CommandReceipt",
    "ConflictingFact",
    "Context",
    "ContextArgs",
    "ContextFact",
    "ContextSummary",
    "Cost",
    "CostFigures",
    "DecisionQuality",
    "DescribedCategory",
    "Diff",
    "Edit",
    "Entity",
    "EntityDecision",
    "EntityDetails",
    "EntityFact",
    "EntityGraph",
    "EntityHistoryEntry",
    "EntityMoment",
    "EntityName",
    "EntityProfile",
    "EntityRelation",
    "EntitySummary",
    "EventResult",
    "Explanation",
    "ExtractionBackground",
    "Fact",
    "FactEvent",
    "FactExtraction",
    "FactRelation",
    "FactSnapshot",
    "FactSource",
    "FailedTurn",
    "FeedbackFigures",
    "ForbiddenTopic",
    "FoundFact",
    "HeldOverwrites",
    "History",
    "Hit",
    "IdCount",
    "ImportReport",
    "Instructions",
    "InvalidArgumentError",
    "InvalidCommandError",
    "InvalidTurnError",
    "LeftOut",
    "LeftOutHits",
    "LeftOutSummary",
    "LimitExceededError",
    "LimitHit",
    "Limits",
    "LinkedEntity",
    "MemoryClient",
    "Message",
    "MessageModel",
    "MissingExtraError",
    "MissingStatement",
    "MnemologError",
    "ModelCost",
    "Neighbour",
    "NotConnectedError",
    "OmittedStatement",
    "Overrides",
    "OverwriteCounts",
    "PartlyPublishedError",
    "PendingFact",
    "PendingMerge",
    "Policy",
    "Profile",
    "ProviderConfigurationError",
    "ProviderError",
    "PublishError",
    "QueryError",
    "RetrievedCandidate",
    "Scope",
    "ScopeArgs",
    "Score",
    "SearchArgs",
    "SearchResult",
    "ServerUnavailableError",
    "Settings",
    "SettingsError",
    "StageCost",
    "StoredPolicies",
    "Tokens",
    "Trace",
    "TracedAnswer",
    "TracedCall",
    "TracedDecision",
    "TracedName",
    "TracedReprompt",
    "Turn",
    "TurnArgs",
    "TurnHit",
    "TurnReceipt",
    "TurnScore",
    "UnknownArgumentError",
    "UnknownEntityError",
    "UnknownEventError",
    "UnknownFactError",
    "UnknownTurnError",
    "UnresolvedFact",
    "WaitTimeoutError",
    "Weights",
    "WhyNot",
    "WriteResult",
]
_MODULES: Final = {
    "client.async_client": ("AsyncMemoryClient",),
    "client.base": ("ClientOptions",),
    "client.files": ("ImportReport",),
    "client.inputs": ("BoundArgs", "CommandArgs", "ScopeArgs", "TurnArgs"),
    "client.producer": ("CommandReceipt", "TurnReceipt"),
    "client.records": ("MessageModel",),
    "client.search": ("SearchResult",),
    "client.search_arguments": ("ContextArgs", "SearchArgs"),
    "client.sync_client": ("MemoryClient",),
    "errors": (
        "AmbiguousIdError",
        "AmbiguousTurnError",
        "InvalidArgumentError",
        "InvalidCommandError",
        "InvalidTurnError",
        "LimitExceededError",
        "MissingExtraError",
        "MnemologError",
        "NotConnectedError",
        "PartlyPublishedError",
        "PublishError",
        "QueryError",
        "ServerUnavailableError",
        "SettingsError",
        "UnknownArgumentError",
        "UnknownEntityError",
        "UnknownEventError",
        "UnknownFactError",
        "UnknownTurnError",
        "WaitTimeoutError",
    ),
    "projections.context": ("Context", "ContextFact", "ContextSummary", "LeftOut", "LeftOutSummary"),
    "projections.queries.audit": ("FailedTurn",),
    "projections.queries.diff": ("Change", "ChangedFact", "Diff"),
    "projections.queries.entities": (
        "Entity",
        "EntityDetails",
        "EntityFact",
        "EntityHistoryEntry",
        "EntityMoment",
        "EntityName",
        "EntityProfile",
        "EntityRelation",
        "EntitySummary",
    ),
    "projections.queries.entity_graph": ("EntityGraph", "Neighbour"),
    "projections.queries.explain": (
        "EntityDecision",
        "Explanation",
        "FactEvent",
        "FactExtraction",
        "FactRelation",
        "FactSource",
        "History",
        "LinkedEntity",
    ),
    "projections.queries.facts": ("IdCount",),
    "projections.queries.pending": ("ConflictingFact", "PendingFact", "PendingMerge", "UnresolvedFact"),
    "projections.queries.quality": (
        "CostFigures",
        "DecisionQuality",
        "FeedbackFigures",
        "HeldOverwrites",
        "ModelCost",
        "OverwriteCounts",
    ),
    "projections.queries.results": (
        "EventResult",
        "Fact",
        "FoundFact",
        "Profile",
        "StageCost",
        "Tokens",
        "WriteResult",
    ),
    "projections.queries.trace": (
        "BackgroundEntity",
        "BackgroundFact",
        "ExtractionBackground",
        "OmittedStatement",
        "RetrievedCandidate",
        "Trace",
        "TracedAnswer",
        "TracedCall",
        "TracedDecision",
        "TracedName",
        "TracedReprompt",
    ),
    "projections.queries.write_result": ("MissingStatement", "WhyNot"),
    "projections.search.search": ("Hit", "LeftOutHits", "Score", "Weights"),
    "projections.search.turn_search": ("TurnHit", "TurnScore"),
    "schemas.command": ("Edit",),
    "schemas.costs": ("Cost",),
    "schemas.instructions": ("DescribedCategory", "ForbiddenTopic", "Instructions"),
    "schemas.policy": ("LimitHit", "Limits", "Policy", "StoredPolicies"),
    "schemas.provenance": ("FactSnapshot",),
    "schemas.scope": ("Scope",),
    "schemas.turn": ("Message", "Overrides", "Turn"),
    "settings": ("Settings",),
    "streams.llm.ports": ("ProviderConfigurationError", "ProviderError"),
}
"""Where each name is."""
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: the command line starts without the drivers."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'mnemolog' has no attribute {name!r}")
    return getattr(import_module(f"mnemolog.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
