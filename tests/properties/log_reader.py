"""Reads the log alone: what facts are, by the JSON of its commits. Shares no code with the fold of the tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

Json = Mapping[str, Any]
ACTIONS: Final = {
    "facts_merged": "merge",
    "fact_replaced": "replace",
    "fact_contradicted": "contradict",
    "fact_expired": "expire",
    "fact_retracted": "retract",
}
"""The events that end their targets, and how."""
OPEN: Final = ("active", "pending_confirmation")


@dataclass(frozen=True)
class Ending:
    """An event that ended a fact: how, since when it is no longer true, and through which other fact."""

    event: Json
    commit: Json
    action: str
    ender: str | None
    at: datetime | None


@dataclass
class LoggedFact:
    """A fact as the log leaves it."""

    fact: Json
    event: Json
    commit: Json
    status: str
    believed: bool
    true_from: datetime
    true_to: datetime | None = None
    unresolved: bool = False
    endings: list[Ending] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.fact["fact_id"])

    @property
    def text(self) -> str:
        return str(self.fact["text"])

    @property
    def valid_until(self) -> datetime | None:
        return _time(self.fact.get("valid_until"))

    @property
    def ends(self) -> datetime | None:
        return min((end for end in (self.true_to, self.valid_until) if end), default=None)

    def is_answered(self, at: datetime) -> bool:
        """Whether it is an answer to a question at `at`."""
        return self.status == "active" and (self.ends is None or self.ends > at)

    def held(self, at: datetime) -> bool:
        """Whether it is believed now to have been so at `at`."""
        return self.believed and self.true_from <= at and (self.ends is None or self.ends > at)


@dataclass
class Log:
    """All facts by their ids, the pending overwrites by their facts, and which events are not in effect."""

    facts: dict[str, LoggedFact] = field(default_factory=dict)
    held_back: dict[str, Json] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)
    commits: list[Json] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    def append(self, record: bytes) -> Json:
        commit: Json = json.loads(record)
        self.commits.append(commit)
        for event in commit["events"]:
            self._apply(event, commit)
        return commit

    def events(self) -> Iterable[tuple[Json, Json]]:
        return ((commit, event) for commit in self.commits for event in commit["events"])

    def endings(self, fact: LoggedFact) -> Sequence[Ending]:
        """What ended a fact and is in effect."""
        return [ending for ending in fact.endings if ending.event["event_id"] not in self.undone]

    def standing_for(self, fact_ids: Sequence[str]) -> list[str]:
        """These facts, and what they were merged into or corrected to."""
        found = list(fact_ids)
        for one in found:
            taken = (end.ender for end in self.endings(self.facts[one]) if end.action in ("merge", "correct"))
            found += [ender for ender in taken if ender and ender not in found]
        return found

    def _apply(self, event: Json, commit: Json) -> None:  # noqa: C901 -- one case an event
        kind = event["event"]
        new = self._add(event, commit) if event.get("fact") else None
        match kind:
            case "fact_added" if event.get("ended_at"):
                assert new is not None
                self._end(new.id, Ending(event, commit, "history", event["ended_by"], moment(event["ended_at"])))
            case "fact_skipped" | "fact_confirmed":
                self._begin_earlier(event["target"], event)
            case "pending_confirmed":
                confirmed = self.facts[event["target"]]
                confirmed.status, confirmed.believed = "active", True
                confirmed.unresolved = event.get("unresolved", False)
                self._begin_earlier(event["target"], event)
                self._end_targets(event, commit, event["action"], event["target"])
            case "pending_rejected":
                self.facts[event["target"]].status = "archived"
                if event.get("confirmed"):
                    self._begin_earlier(event["confirmed"], event)
            case "fact_corrected":
                action = "replace" if event.get("ended_at") else "correct"
                self._end(event["target"], Ending(event, commit, action, new.id if new else None, _end_time(event)))
            case "conflict_resolved":
                self._resolve(event, commit)
            case "decision_undone":
                self._undo(event)
            case "subjects_changed":
                self._restore(event["reversals"])
            case _ if kind in ACTIONS:
                self._end_targets(event, commit, ACTIONS[kind], new.id if new else None)
            case _:
                pass
        for moved in event.get("moved_ends", ()):
            self._move_end(moved, event, commit)

    def _add(self, event: Json, commit: Json) -> LoggedFact:
        pending = event["event"] == "fact_pending"
        new = LoggedFact(
            event["fact"],
            event,
            commit,
            status="pending_confirmation" if pending else "active",
            believed=not pending,
            true_from=moment(event["fact"]["true_from"]),
            unresolved=event.get("unresolved", False),
        )
        self.facts[new.id] = new
        if pending:
            self.held_back[new.id] = event
        return new

    def _end_targets(self, event: Json, commit: Json, action: str, ender: str | None) -> None:
        for target in event["targets"]:
            if target != ender:
                self._end(target, Ending(event, commit, action, ender, _end_time(event)))

    def _end(self, target: str, ending: Ending) -> None:
        fact = self.facts[target]
        if fact.status not in OPEN:
            self.stale.append(
                f"{ending.event['event']} of {ending.commit['source_id']} on {fact.text!r}: {fact.status}"
            )
            return
        fact.endings.append(ending)
        if ending.action in ("merge", "contradict", "correct", "keep_old") or ending.at is None:
            fact.status, fact.believed, fact.unresolved = "withdrawn", False, False
            return
        fact.true_to = ending.at
        if ending.at <= moment(ending.commit["decided_at"]):
            fact.status, fact.unresolved = "ended", False

    def _resolve(self, event: Json, commit: Json) -> None:
        target = self.facts[event["target"]]
        target.unresolved = False
        if event["action"] == "keep_old":
            self._end(target.id, Ending(event, commit, "keep_old", next(iter(event["targets"]), None), None))
        elif event["action"] != "keep_both":
            self._end_targets(event, commit, event["action"], target.id)

    def _undo(self, event: Json) -> None:
        self.undone.add(event["undone"])
        if event.get("reinstated"):
            self.undone.discard(event["reinstated"])
        self._restore(event["reversals"])

    def _restore(self, reversals: Iterable[Json]) -> None:
        for reversal in reversals:
            fact, before = self.facts[reversal["fact_id"]], reversal["before"]
            if before is None:
                fact.status, fact.believed, fact.unresolved = "undone", False, False
                continue
            shown = {"superseded": "ended", "retracted": "ended", "expired": "ended"}
            withdrawn = before["believed_to"] is not None or before["status"] == "archived"
            status = before["status"]
            fact.status = status if status in OPEN else "withdrawn" if withdrawn else shown.get(status, status)
            fact.believed = before["believed_from"] is not None and before["believed_to"] is None
            fact.true_to, fact.unresolved = _time(before["true_to"]), before["unresolved"]
            if before.get("true_from"):
                fact.true_from = moment(before["true_from"])

    def _move_end(self, moved: Json, event: Json, commit: Json) -> None:
        fact = self.facts[moved["fact_id"]]
        lets_hold = event.get("target") if event["event"] == "pending_confirmed" else None
        is_new = fact.id in (lets_hold, (event.get("fact") or {}).get("fact_id"))
        if not fact.believed or (fact.true_to is None and not is_new):
            return
        fact.endings.clear()
        fact.status, fact.true_to, fact.unresolved = "active", None, moved.get("unresolved", False)
        if moved.get("ended_at"):
            self._end(fact.id, Ending(event, commit, "moved", moved.get("ended_by"), moment(moved["ended_at"])))

    def _begin_earlier(self, fact_id: str, event: Json) -> None:
        if event.get("true_from"):
            fact = self.facts[fact_id]
            fact.true_from = min(fact.true_from, moment(event["true_from"]))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time(text: str | None) -> datetime | None:
    return moment(text) if text else None


def _end_time(event: Json) -> datetime | None:
    return _time(event.get("ended_at"))
