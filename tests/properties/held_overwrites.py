"""What becomes of held overwrites, by the log: objections reject them, and none waits for what is no longer there."""

from collections.abc import Iterator

from tests.properties.log_reader import OPEN, Json, Log, LoggedFact, moment
from tests.properties.telling import Told

REPETITIONS = ("fact_skipped", "fact_confirmed")
OBJECTED_BY_REPETITION = ("replace", "contradict", "retract")
"""A statement of the old value objects to these; a merge and an announced end it does not contradict."""


def unheard_objections(told: Told, commit: Json) -> Iterator[str]:
    """Held overwrites that still wait although a later statement has said again what they would end.

    A human's word waits for a human: no statement objects to it.
    """
    turn = told.turns.get(commit["source_id"])
    if turn is None or not turn.infer:
        return
    for event in commit["events"]:
        if event["event"] not in REPETITIONS or not event.get("statement"):
            continue
        repeated = told.log.facts[event["target"]]
        for pending in _waiting(told.log):
            held = told.log.held_back[pending.id]
            is_later = moment(pending.commit["occurred_at"]) < moment(commit["occurred_at"])
            is_human = pending.fact.get("authority") == "human"
            objects = held["action"] in OBJECTED_BY_REPETITION and is_later and pending.commit is not commit
            if (
                repeated.status == "active"
                and objects
                and not is_human
                and repeated.id in told.log.standing_for(held["targets"])
            ):
                yield f"{repeated.text!r} was said again, and {pending.text!r} still waits to end it"


def waiting_for_nothing(told: Told) -> Iterator[str]:
    """Held overwrites of which everything that they were shown has ended."""
    for pending in _waiting(told.log):
        held = told.log.held_back[pending.id]
        if not any(told.log.facts[one].status in OPEN for one in told.log.standing_for(held["targets"])):
            texts = [told.log.facts[one].text for one in held["targets"]]
            yield f"{pending.text!r} still waits, and nothing that it would end is left: {texts}"


def _waiting(log: Log) -> list[LoggedFact]:
    return [fact for fact in log.facts.values() if fact.status == "pending_confirmation" and fact.id in log.held_back]
