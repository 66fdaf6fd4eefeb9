"""Counts overwrites from the JSON of events alone; it shares nothing with the view, the counters and the queries."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Event = Mapping[str, Any]
DIRECT = ("facts_merged", "fact_replaced", "fact_contradicted", "fact_retracted", "fact_expired", "fact_corrected")
WRONG = ("undone", "rejected", "corrected")


@dataclass(frozen=True)
class Overwrite:
    """One overwrite: the event that proposed it, and what became of it."""

    event: Event
    carried_out: bool
    result: str

    @property
    def by(self) -> str:
        decision = self.event["decision"]
        return "model" if self.event["event"] == "fact_pending" and decision.get("model") else decision["by"]

    @property
    def proposer(self) -> tuple[str, str, str]:
        decision = self.event["decision"]
        return self.by, decision.get("model") or "", decision.get("prompt_version") or ""


def overwrites(log: Sequence[Event]) -> dict[str, Overwrite]:
    """Every overwrite by the id of its event."""
    gone: set[str] = set()
    for event in log:
        if event["event"] == "decision_undone":
            gone.add(event["undone"])
            gone.discard(event.get("reinstated") or "")
    undone = gone
    return {one["event_id"]: _judged(one, log, undone) for one in log if _is_overwrite(one)}


def carried_out_counts(log: Sequence[Event]) -> Counter[tuple[str, ...]]:
    """What `mnemolog_overwrites_total` counts: event, by, model and prompt of each event that ended known facts."""
    found, proposals = overwrites(log), {one["fact"]["fact_id"]: one for one in log if one["event"] == "fact_pending"}
    counts: Counter[tuple[str, ...]] = Counter()
    seen: set[str] = set()
    for event in log:
        if event["event"] == "pending_confirmed" and event["targets"]:
            if event["target"] in seen:  # confirmed again after an undo
                continue
            seen.add(event["target"])
            counts["pending_confirmed", *found[proposals[event["target"]]["event_id"]].proposer] += 1
        elif _is_overwrite(event) and event["event"] != "fact_pending":
            counts[event["event"], *found[event["event_id"]].proposer] += 1
    return counts


def taken_back_counts(commits: Sequence[Sequence[Event]]) -> Counter[tuple[str, ...]]:
    """What `mnemolog_overwrites_taken_back_total` counts: each time that a commit made an overwrite a wrong one."""
    log: list[Event] = []
    before: dict[str, Overwrite] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for commit in commits:
        log += commit
        after = overwrites(log)
        for event_id, one in after.items():
            was = before[event_id].result if event_id in before else ""
            if one.by == "model" and one.result in WRONG and one.result != was:
                counts[one.result, *one.proposer[1:]] += 1
        before = after
    return counts


def _is_overwrite(event: Event) -> bool:
    if event["event"] == "conflict_resolved":
        return event["action"] == "keep_old" or bool(event["action"] != "keep_both" and event["targets"])
    return event["event"] in (*DIRECT, "fact_pending")


def _judged(event: Event, log: Sequence[Event], undone: set[str]) -> Overwrite:
    held = event["event"] == "fact_pending"
    mine = event["fact"]["fact_id"] if event.get("fact") else event.get("target")
    settlements = [one for one in log if held and one.get("target") == mine and one["event"].startswith("pending_")]
    valid = [one for one in settlements if one["event_id"] not in undone]
    last = valid[-1]["event"] if valid else None
    lapsed = bool(valid) and bool(valid[-1].get("overtaken"))
    carried_out = not held or any(one["event"] == "pending_confirmed" and one["targets"] for one in settlements)
    if event["event_id"] in undone:
        return Overwrite(event, carried_out, "undone")
    if last == "pending_rejected" and not lapsed:
        return Overwrite(event, carried_out, "rejected")
    if any(one["event"] == "pending_confirmed" for one in settlements) and last is None:
        return Overwrite(event, carried_out, "undone")
    if any(mine in named for named in _never_true(log, undone)):
        return Overwrite(event, carried_out, "corrected")
    if carried_out:
        return Overwrite(event, True, "kept")
    is_closed = any(mine in _named(one) for one in log if one["event"] in DIRECT and one["event_id"] not in undone)
    return Overwrite(event, False, "overtaken" if is_closed or last else "open")


def _never_true(log: Sequence[Event], undone: set[str]) -> Iterator[list[str]]:
    """The facts of which a human said, in effect, that they never were true."""
    for event in log:
        if event["event_id"] in undone or event["decision"]["by"] != "person":
            continue
        if event["event"] == "fact_corrected" and not event.get("ended_at"):
            yield [event["target"]]
        if event["event"] in ("pending_confirmed", "conflict_resolved") and event["action"] == "contradict":
            yield list(event["targets"])


def _named(event: Event) -> list[str]:
    return [*event.get("targets", ()), event.get("target") or ""]
