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
    from mnemolog.client.files.fact_files import ImportReport
    from mnemolog.client.inputs.arguments import BoundArgs, CommandArgs, ScopeArgs, TurnArgs
    from mnemolog.client.inputs.messages import MessageModel
    from mnemolog.client.inputs.search_arguments import ContextArgs, SearchArgs
    from mnemolog.client.queries.search_result import SearchResult
    from mnemolog.client.receipts import CommandReceipt, TurnReceipt
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
    from mnemolog.projections.context.result import Context, ContextFact, ContextSummary, LeftOut, LeftOutSummary
    from mnemolog.projections.lists.counts import IdCount
    from mnemolog.projections.lists.entities import Entity, EntityDetails, EntityFact, EntityHistoryEntry, EntityName
    from mnemolog.projections.lists.entity_graph import EntityGraph, Neighbour
    from mnemolog.projections.lists.entity_summary import EntitySummary
    from mnemolog.projections.lists.entity_timeline import EntityMoment, EntityProfile
    from mnemolog.projections.lists.relations import EntityRelation
    from mnemolog.projections.queries.costs import CostFigures, ModelCost
    from mnemolog.projections.queries.diff import Change, ChangedFact, Diff
    from mnemolog.projections.queries.explain import (
        EntityDecision,
        Explanation,
        FactExtraction,
        FactSource,
        LinkedEntity,
    )
    from mnemolog.projections.queries.feedback import FeedbackFigures
    from mnemolog.projections.queries.history import FactEvent, FactRelation, History
    from mnemolog.projections.queries.pending import ConflictingFact, PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.quality import DecisionQuality, HeldOverwrites, OverwriteCounts
    from mnemolog.projections.queries.results import EventResult, Fact, Profile, StageCost, Tokens, WriteResult
    from mnemolog.projections.queries.turns.audit import FailedTurn
    from mnemolog.projections.queries.turns.trace import (
        BackgroundEntity,
        BackgroundFact,
        ExtractionBackground,
        OmittedStatement,
        RetrievedCandidate,
        Trace,
        TracedAnswer,
        TracedCall,
        TracedDecision,
        TracedReprompt,
    )
    from mnemolog.projections.queries.turns.traced_names import TracedName
    from mnemolog.projections.queries.turns.why_not import MissingStatement, WhyNot
    from mnemolog.projections.search.hits import Hit, LeftOutHits, Score
    from mnemolog.projections.search.options import Weights
    from mnemolog.projections.search.turn_hits import TurnHit, TurnScore
    from mnemolog.schemas.command import Edit
    from mnemolog.schemas.costs.prices import Cost
    from mnemolog.schemas.instructions.model import DescribedCategory, ForbiddenTopic, Instructions
    from mnemolog.schemas.policy import LimitHit, Limits, Policy, StoredPolicies
    from mnemolog.schemas.provenance import FactSnapshot
    from mnemolog.schemas.scope import Scope
    from mnemolog.schemas.turn import Message, Overrides, Turn
    from mnemolog.settings import Settings
    from mnemolog.streams.llm.errors import ProviderConfigurationError, ProviderError

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
    "client.files.fact_files": ("ImportReport",),
    "client.inputs.arguments": ("BoundArgs", "CommandArgs", "ScopeArgs", "TurnArgs"),
    "client.inputs.messages": ("MessageModel",),
    "client.inputs.search_arguments": ("ContextArgs", "SearchArgs"),
    "client.queries.search_result": ("SearchResult",),
    "client.receipts": ("CommandReceipt", "TurnReceipt"),
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
    "projections.lists.counts": ("IdCount",),
    "projections.lists.entity_summary": ("EntitySummary",),
    "projections.lists.entities": ("Entity", "EntityDetails", "EntityFact", "EntityHistoryEntry", "EntityName"),
    "projections.lists.entity_timeline": ("EntityMoment", "EntityProfile"),
    "projections.lists.entity_graph": ("EntityGraph", "Neighbour"),
    "projections.lists.relations": ("EntityRelation",),
    "projections.context.result": ("Context", "ContextFact", "ContextSummary", "LeftOut", "LeftOutSummary"),
    "projections.queries.turns.audit": ("FailedTurn",),
    "projections.queries.feedback": ("FeedbackFigures",),
    "projections.queries.costs": ("CostFigures", "ModelCost"),
    "projections.queries.diff": ("Change", "ChangedFact", "Diff"),
    "projections.queries.explain": ("EntityDecision", "Explanation", "FactExtraction", "FactSource", "LinkedEntity"),
    "projections.queries.history": ("FactEvent", "FactRelation", "History"),
    "projections.queries.pending": ("ConflictingFact", "PendingFact", "PendingMerge", "UnresolvedFact"),
    "projections.queries.quality": ("DecisionQuality", "HeldOverwrites", "OverwriteCounts"),
    "projections.queries.results": ("EventResult", "Fact", "Profile", "StageCost", "Tokens", "WriteResult"),
    "projections.queries.turns.trace": (
        "BackgroundEntity",
        "BackgroundFact",
        "ExtractionBackground",
        "OmittedStatement",
        "RetrievedCandidate",
        "Trace",
        "TracedAnswer",
        "TracedCall",
        "TracedDecision",
        "TracedReprompt",
    ),
    "projections.queries.turns.traced_names": ("TracedName",),
    "projections.queries.turns.why_not": ("MissingStatement", "WhyNot"),
    "projections.search.hits": ("Hit", "LeftOutHits", "Score"),
    "projections.search.options": ("Weights",),
    "projections.search.turn_hits": ("TurnHit", "TurnScore"),
    "schemas.command": ("Edit",),
    "schemas.costs.prices": ("Cost",),
    "schemas.instructions.model": ("DescribedCategory", "ForbiddenTopic", "Instructions"),
    "schemas.policy": ("LimitHit", "Limits", "Policy", "StoredPolicies"),
    "schemas.provenance": ("FactSnapshot",),
    "schemas.scope": ("Scope",),
    "schemas.turn": ("Message", "Overrides", "Turn"),
    "settings": ("Settings",),
    "streams.llm.errors": ("ProviderConfigurationError", "ProviderError"),
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
