"""The dashboard's row about what applications ask: contexts for prompts."""

from typing import Final

from scripts.panel_model import Panel, Row
from scripts.promql import quantile, rate

CONTEXT_TOKENS: Final = "mnemolog_client_context_tokens"

SEARCH: Final = Row(
    title="Searches and contexts",
    panels=(
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
