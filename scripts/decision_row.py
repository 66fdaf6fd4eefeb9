"""The dashboard's row about decisions: how often memory is overwritten, how often wrongly, and what is pending."""

from typing import Final

from scripts.figures import (
    OVERWRITE_RATE,
    PROPOSER,
    SETTLED,
    WRONG,
    WRONG_OVERWRITE_RATE,
    WRONG_OVERWRITE_RATE_BY_MODEL,
    recent,
)
from scripts.panel_model import Panel, Row
from scripts.promql import rate, share_of_each

RECENT_PENDING: Final = "max by (settlement) (mnemolog_recent_held)"

DECISIONS: Final = Row(
    title="Decisions",
    panels=(
        Panel(
            title="Decisions by kind",
            description="Events folded into the tables.",
            unit="cps",
            queries={"{{event}}": rate("mnemolog_events_projected_total", "event")},
        ),
        Panel(
            title="Overwrites",
            description="Events that ended at least one known fact, by who proposed it: models, applications, humans "
            "or the timer.",
            unit="cps",
            queries={"{{event}} by {{by}} {{model}}": rate("mnemolog_overwrites_total", "event", "by", "model")},
        ),
        Panel(
            title="Overwrite rate",
            description="Overwrites that models proposed, divided by all decisions on statements. Check it after a "
            "change of model or prompt.",
            unit="percentunit",
            queries={"overwritten": OVERWRITE_RATE},
        ),
        Panel(
            title="Wrong-overwrite rate",
            description="Of the overwrites that models proposed in the last 30 days and that are settled, the share "
            "that was wrong, by how.",
            unit="percentunit",
            queries={
                "all": WRONG_OVERWRITE_RATE,
                "{{result}}": share_of_each(recent(WRONG, "result"), recent(SETTLED)),
            },
        ),
        Panel(
            title="Wrong-overwrite rate by model",
            description="The same for each model and prompt version that proposed overwrites.",
            unit="percentunit",
            queries={"{{model}} {{prompt_version}}": WRONG_OVERWRITE_RATE_BY_MODEL},
        ),
        Panel(
            title="Overwrites undone, rejected or corrected",
            description="Proposed by models; by how: undone, rejected while pending, or corrected by a human.",
            unit="cps",
            queries={
                "{{how}} {{model}} {{prompt_version}}": rate("mnemolog_overwrites_taken_back_total", "how", *PROPOSER)
            },
        ),
        Panel(
            title="Pending and unresolved",
            description="Overwrites that wait for a confirmation, and facts whose conflict could not be decided.",
            queries={"pending": "max(mnemolog_pending)", "unresolved": "max(mnemolog_unresolved_facts)"},
        ),
        Panel(
            title="Age of pending facts",
            description="The oldest pending fact, and the median time until one was settled in the last 30 days.",
            unit="s",
            queries={
                "oldest": "max(mnemolog_pending_oldest_seconds)",
                "median until settled": "max(mnemolog_pending_median_seconds)",
            },
        ),
        Panel(
            title="Pending facts by outcome",
            description="Of the overwrites held back in the last 30 days, the share by settlement; confirmed and "
            "rejected together are the resolution rate.",
            unit="percentunit",
            queries={"{{settlement}}": share_of_each(RECENT_PENDING, f"sum({RECENT_PENDING})")},
        ),
        Panel(
            title="Ends of turns",
            description="Commits folded into the tables, by outcome.",
            unit="cps",
            queries={"{{outcome}}": rate("mnemolog_commits_projected_total", "outcome")},
        ),
        Panel(
            title="Budgets of the day",
            description="Turns that met a spent budget, by what became of them.",
            queries={
                "{{result}} a second": rate("mnemolog_over_budget_total", "result"),
            },
        ),
        Panel(
            title="Statements not stored",
            description="Left out before anything was decided about them, by reason.",
            unit="cps",
            queries={"{{reason}}": rate("mnemolog_facts_dropped_total", "reason")},
        ),
        Panel(
            title="Unresolved and stale decisions",
            description="Unresolved: kept beside the known fact because no valid decision was made. Stale: the target "
            "had changed since.",
            unit="cps",
            queries={
                "unresolved": rate("mnemolog_unresolved_total"),
                "stale": rate("mnemolog_stale_decisions_total"),
            },
        ),
    ),
)
