"""The dashboard's row about entities: how names are resolved, and what is decided about entities."""

from typing import Final

from scripts.panel_model import Panel, Row
from scripts.promql import mean, quantile, rate

TURN_LINKS: Final = "mnemolog_turn_entity_links"

ENTITIES: Final = Row(
    title="Entities",
    panels=(
        Panel(
            title="Names by what found their entity",
            description="Links of facts to entities by step; new is an entity that was not known.",
            unit="cps",
            queries={"{{step}}": rate("mnemolog_entity_links_total", "step")},
        ),
        Panel(
            title="New entities",
            description="Entities that were registered, by type.",
            unit="cps",
            queries={"{{type}}": rate("mnemolog_entities_registered_total", "type")},
        ),
        Panel(
            title="Possible twins",
            description="Entities that were registered, by whether each may be the same as another one.",
            unit="cps",
            queries={"possible twin: {{possible_twin}}": rate("mnemolog_entities_registered_total", "possible_twin")},
        ),
        Panel(
            title="Decisions about entities",
            description="Merges, splits, names and undos, by who decided: a human, a model or a rule.",
            unit="cps",
            queries={"{{event}} by {{by}}": rate("mnemolog_entity_changes_total", "event", "by")},
        ),
        Panel(
            title="Links per turn",
            description="Links to entities that the facts of a turn have: mean and 95th percentile.",
            queries={"mean": mean(TURN_LINKS), "95 %": quantile(0.95, TURN_LINKS)},
        ),
    ),
)
