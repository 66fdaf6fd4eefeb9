"""Every query that reads entities, their names or relations: what a reader shows of it, or why it shows no name."""

from typing import Final

CHECKED: Final[dict[str, tuple[str, ...]]] = {
    "entities": ("entities.entity_columns", "entities.listed_entities", "entities.pending_merges_of_entity"),
    "entity": (
        "entities.entities_called",
        "entities.names_of_entity",
        "entities.twins_of_entity",
        "relations.timeline_of_entity",
    ),
    "history": ("entities.history_of_entity",),
    "relations": ("relations.listed_relations",),
    "neighbours": ("entities.entities_of_ids",),
    "graph": ("relations.listed_relations", "entities.entities_of_ids"),
    "who": ("relations.aliases_of",),
    "pending": ("pending.merges",),
    "explain": ("entities.names", "history.entity_changes"),
    "known facts": (),
    "names in doubt": ("entities.shown_of_entities",),
    "known names": ("shown.entities_for",),
    "commands": ("entity_changes.entities_by_id", "entity_changes.proposals"),
    "summaries": ("summaries.summaries_of_facts",),
    "memory.entities": ("memory_views.entity_rows",),
    "memory.entity_aliases": ("memory_views.entity_alias_rows",),
    "memory.fact_entities": ("memory_views.fact_entity_rows",),
    "memory.relationships": ("memory_views.relationship_rows",),
}
"""The readers of `tests/integration/streams/entities/test_hidden_names.py`, with the queries that each checks."""

_FOLD: Final = "the fold writes it, or derives rows of it"
_IDS: Final = "it gives ids and counts, no name"
_FACTS: Final = "it shows facts: active ones, or those that were asked for in all versions"

EXPLAINED: Final[dict[str, str]] = {
    **dict.fromkeys((
        "entities.known_entities", "entities.add_entities", "entities.add_aliases", "entities.add_links",
        "entities.add_relationships", "entities.add_evidence", "entity_changes.known_changes",
        "entity_changes.entities_of_repetitions", "entity_changes.add_changes",
        "entity_changes.undo_changes", "entity_changes.named_by_facts", "entity_changes.derived_entities",
        "entity_changes.connected", "entity_changes.changes_of_entities",
        "entity_changes.registered_entities", "entity_changes.given_aliases", "entity_changes.given_types",
        "entity_changes.links_of_facts", "entity_changes.update_entities", "entity_changes.update_aliases",
        "entity_changes.update_links", "entity_changes.update_current_links", "entity_changes.update_ties",
        "entity_changes.update_shown_names", "entity_changes.show_told_names",
        "entity_changes.update_shown_entities", "entity_changes.active_entities",
    ), _FOLD),
    **dict.fromkeys((
        "relations.relations_of_scope", "relations.relations_of_entities",
        "entities.decided_pairs", "entity_changes.believed_facts_of_entity", "entity_changes.naming_facts",
        "entity_changes.selected_changes", "history.repetitions", "ids.facts_and_merges", "ids.events",
        "identity.subject_links", "stored_facts.values_since",
        "relations.given_ties", "summaries.changed_facts", "summaries.entities_named_by",
        "summaries.versions",
    ), _IDS),
    **dict.fromkeys(("entities.facts_of_entity", "summaries.facts_to_summarise"), _FACTS),
    "entities.entities_of_heads": "an entity is found again by a hidden name, and told apart; nobody is shown it",
    **dict.fromkeys(
        ("linked_facts.linked_facts", "linked_facts.entities_with_owners"),
        "a new text gets only those names over that it has; nobody is shown the others",
    ),
    "stored_facts.subjects_of_facts": "whether facts are about one entity, for the ends that move; nobody is shown it",
    "candidates.facts_of_entities": "facts of an entity by its id, for the decision on a turn",
    "summaries.summary_of_entity": "a summary holds only names that its facts have, and goes with any of them",
}  # fmt: skip
