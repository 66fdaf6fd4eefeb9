"""How the figures of `quality` are shown."""

from datetime import timedelta
from typing import TYPE_CHECKING

from mnemolog.cli.output import print_text
from mnemolog.cli.results.ids import WHOLE_IDS, ShortIds
from mnemolog.cli.results.tables import Entry, print_entries, print_table
from mnemolog.cli.results.words import age, cell, counted, moment

if TYPE_CHECKING:
    from mnemolog.projections.queries.costs import CostFigures
    from mnemolog.projections.queries.feedback import FeedbackFigures
    from mnemolog.projections.queries.quality import DecisionQuality, OverwriteCounts


def show_quality(figures: "DecisionQuality", _: ShortIds = WHOLE_IDS) -> None:
    print_text(f"decisions from {moment(figures.since)} to {moment(figures.until)}")
    print_text(
        f"{counted(figures.decisions, 'decision')} on statements, overwrite rate {_rate(figures.overwrite_rate)}, "
        f"rate of wrong ones {_rate(figures.wrong_overwrite_rate)}"
    )
    of_models = [one for one in figures.overwrites if one.by == "model"]
    others = [one for one in figures.overwrites if one.by != "model"]
    if of_models:
        entries = [
            Entry(one.event, _results(one), [", ".join(filter(None, (one.model, one.prompt_version)))])
            for one in of_models
        ]
        print_entries("overwrites proposed by models", entries)
    else:
        print_text("no overwrites proposed by models")
    if others:
        entries = [Entry(one.event, counted(one.overwrites, "overwrite"), [f"by {one.by}"]) for one in others]
        print_entries("other overwrites", entries)
    held = figures.held
    print_text(
        f"{counted(held.held, 'overwrite')} held back: {held.confirmed} confirmed, {held.rejected} rejected, "
        f"{held.overtaken} overtaken (resolution rate {cell(held.resolution_rate) or 'unknown'})"
    )
    if held.open:
        print_text(f"{held.open} waiting now, the oldest for {age(timedelta(seconds=held.oldest_seconds))}")
    print_text(
        f"{counted(figures.unresolved, 'unresolved fact')}; "
        f"{counted(figures.stale, 'decision')} on what had changed meanwhile (stale)"
    )
    if figures.costs.models:
        _show_costs(figures.costs)
    if figures.feedback.used:
        print_text(_feedback(figures.feedback))


def _show_costs(costs: "CostFigures") -> None:
    """The days, the money in all and for a thousand turns, and each model."""
    often = f", {costs.per_thousand_turns} for a thousand turns" if costs.per_thousand_turns else ""
    print_text(
        f"cost of {counted(costs.turns, 'turn')} published from {costs.first} to {costs.last} (UTC): "
        f"{costs.total}{often}"
    )
    rows = [
        (one.model, one.input_tokens, one.cached_tokens, one.output_tokens, one.cost.amount or "unknown")
        for one in costs.models
    ]
    print_table("cost by model", ("model", "input", "cached", "output", "cost"), rows)


def _feedback(figures: "FeedbackFigures") -> str:
    recall = ", ".join(f"{cell(share)} in the first {k}" for k, share in figures.recall_at.items() if share is not None)
    words = f"feedback: {counted(figures.used, 'fact')} used, {figures.missed} of them not shown"
    return f"{words}; recall {recall}" if recall else words


def _rate(share: float | None) -> str:
    return cell(share) or "unknown"


def _results(one: "OverwriteCounts") -> str:
    results = (f"{number} {name}" for name, number in one.results.items() if number)
    return f"{counted(one.overwrites, 'overwrite')}: {', '.join(results)}"
