"""The dashboard's row about what applications ask: what of it was used, and contexts for prompts."""

from typing import Final

from scripts.figures import recall_by_feedback
from scripts.panel_model import Panel, Row
from scripts.promql import quantile, rate

CONTEXT_TOKENS: Final = "mnemolog_client_context_tokens"

SEARCH: Final = Row(
    title="Searches and contexts",
    panels=(
        Panel(
            title="Top-k recall by feedback",
            description="Of the facts that feedback of the last 30 days names as used, the share that was shown within "
            "the first 1, 5, 10 and 20.",
            unit="percentunit",
            queries={
                "first 1": recall_by_feedback("1"),
                "first 5": recall_by_feedback("1|2-5"),
                "first 10": recall_by_feedback("1|2-5|6-10"),
                "first 20": recall_by_feedback("1|2-5|6-10|11-20"),
            },
        ),
        Panel(
            title="Tokens of a context",
            description="Tokens of the contexts that applications made for prompts, as counted or estimated.",
            queries={"p50": quantile(0.5, CONTEXT_TOKENS), "p95": quantile(0.95, CONTEXT_TOKENS)},
        ),
        Panel(
            title="Facts left out of contexts",
            description="By reason: for want of room, or because no doubtful ones were wanted.",
            unit="cps",
            queries={"{{reason}}": rate("mnemolog_client_context_left_out_total", "reason")},
        ),
    ),
)
