"""How the results of the client are shown to people."""

from mnemolog.cli.results.changes import show_diff, show_explanation, show_history, show_why_not
from mnemolog.cli.results.context import show_context
from mnemolog.cli.results.entities import show_entities, show_entity, show_who
from mnemolog.cli.results.facts import show_facts, show_pending, show_profile, show_search, show_unresolved
from mnemolog.cli.results.lists import show_count, show_exported, show_ids, show_import
from mnemolog.cli.results.quality import show_quality
from mnemolog.cli.results.relations import show_graph, show_neighbours, show_relations
from mnemolog.cli.results.writes import show_receipts, show_results, show_status, show_turn_receipt

__all__ = [
    "show_context",
    "show_count",
    "show_diff",
    "show_entities",
    "show_entity",
    "show_explanation",
    "show_exported",
    "show_facts",
    "show_graph",
    "show_history",
    "show_ids",
    "show_import",
    "show_neighbours",
    "show_pending",
    "show_profile",
    "show_quality",
    "show_receipts",
    "show_relations",
    "show_results",
    "show_search",
    "show_status",
    "show_turn_receipt",
    "show_unresolved",
    "show_who",
    "show_why_not",
]
