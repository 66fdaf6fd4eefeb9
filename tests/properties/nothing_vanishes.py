"""Property 2: what is no longer answered was ended by somebody who had it before them, and answers again without them.

A fact may end by its own term, by a decision of a model that was shown it for exactly that, or by a command that
named it. It is judged by the log, the questions that the model got, and the answers of `facts`; not by the resolver.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from tests.properties.harness import Harness
from tests.properties.held_overwrites import unheard_objections
from tests.properties.log_reader import Ending, Json, Log, LoggedFact, moment
from tests.properties.oracle import OVERWRITES
from tests.properties.statement_places import REPETITIONS, event_text, misplaced_statements
from tests.properties.stories import Story
from tests.properties.telling import Told, tell


async def check_nothing_vanishes(harness: Harness, story: Story) -> None:
    """Tell the story: each fact that is no longer answered has a reason, and each statement a place."""
    watch = _Watch()
    told = await tell(harness, story, watch.after_step)
    faults = [*watch.faults, *_unreopened(told)]
    assert not faults, "\n  ".join(["; ".join(faults), str(told)])


@dataclass
class _Watch:
    """The answers after the last step, and what was wrong so far."""

    answered: frozenset[str] = frozenset()
    faults: list[str] = field(default_factory=list)

    async def after_step(self, told: Told, commits: Sequence[Json]) -> None:
        history = told.history
        async with history.harness.pool.connection() as conn:
            found = await facts(conn, ScopeFilter(user_id=history.scope.user_id), at=history.now)
        answered = frozenset(str(fact.fact_id) for fact in found)
        for fact_id in sorted(self.answered - answered):
            fact = told.log.facts[fact_id]
            if not any(self._reasons(told, fact)):
                self.faults.append(f"{fact.text!r} is gone: {_how(told, fact)}")
        for commit in commits:
            self.faults += misplaced_statements(told, commit)
            self.faults += unheard_objections(told, commit)
        self.answered = answered

    def _reasons(self, told: Told, fact: LoggedFact) -> Iterator[bool]:
        now = told.history.now
        yield fact.valid_until is not None and fact.valid_until <= now and _own_term(told, fact)
        for ending in told.log.endings(fact):
            yield (ending.at is None or ending.at <= now) and is_justified(told, fact, ending)
        yield fact.status == "undone"
        yield any(_reverts(event, fact) for _, event in told.log.events())


def _reverts(event: Json, fact: LoggedFact) -> bool:
    return event["event"] == "decision_undone" and any(one["fact_id"] == fact.id for one in event["reversals"])


def _how(told: Told, fact: LoggedFact) -> str:
    endings = [f"{one.event['event']} of {one.commit['source_id']}" for one in told.log.endings(fact)]
    return ", ".join(endings) or f"{fact.status}, term {fact.valid_until}"


def _own_term(told: Told, fact: LoggedFact) -> bool:
    """Whether the term of a fact is that of all that it says: of its statement, and of each fact merged into it."""
    return all(parent.valid_until == fact.valid_until for parent in merged_parents(told.log, fact)) and (
        (said := told.said(fact.commit["source_id"], event_text(fact.event))) is None
        or said.meaning.until == fact.valid_until
    )


def merged_parents(log: Log, fact: LoggedFact) -> list[LoggedFact]:
    if fact.event["event"] == "facts_merged":
        return [log.facts[target] for target in fact.event["targets"]]
    if fact.event["event"] == "fact_pending" and fact.event["action"] == "merge":
        return [log.facts[target] for target in fact.event["targets"]]
    return []


def is_justified(told: Told, fact: LoggedFact, ending: Ending) -> bool:
    """Whether whoever ended a fact had it before them for that."""
    event, commit = ending.event, ending.commit
    by = event["decision"]["by"]
    if by == "timer":
        return any(_has_come(other, commit) for other in told.log.endings(fact) if other is not ending) or (
            fact.valid_until is not None and fact.valid_until <= moment(commit["decided_at"]) and _own_term(told, fact)
        )
    if ending.action == "moved":
        return True  # what the end was moved for is judged where it ended the fact first
    if commit["source_kind"] == "command":
        return _was_commanded(told, fact, ending)
    if by in ("hash", "threshold") and event["event"] == "facts_merged":  # a repetition that says more
        return bool(event["fact"]["text"].casefold() == fact.text.casefold())
    if event["event"] == "pending_confirmed":
        return _was_held_for(told, fact, event) and not _was_said_again(told, fact, event)
    return _was_shown_for(told, commit["source_id"], fact, event)


def _has_come(ending: Ending, commit: Json) -> bool:
    return ending.at is not None and ending.at <= moment(commit["decided_at"])


def _was_shown_for(told: Told, source_id: str, fact: LoggedFact, event: Json) -> bool:
    """Whether the model that decided a source was shown the fact, and named it for an end."""
    for one in told.reader.decided:
        if one.source_id != source_id or source_id in told.reader.invalid:
            continue
        named = fact.id in map(str, one.named) or fact.id in _just_said(told, source_id, one.named_texts)
        if named and (one.verdict in OVERWRITES or (one.verdict == "KEEP" and event["event"] == "facts_merged")):
            return True
        asked_again = (one.text == fact.text and fact.id not in map(str, one.shown)) or fact.id == event.get("target")
        if asked_again and event["event"] in ("conflict_resolved", "fact_expired", "facts_merged"):
            return True  # the unresolved fact itself was the question
    return False


def _just_said(told: Told, source_id: str, texts: Sequence[str]) -> set[str]:
    """The facts that statements of the same turn became, or repeated."""
    commit = next(commit for commit in told.log.commits if commit["source_id"] == source_id)
    return {
        str(event.get("confirmed") or event.get("target") or event["fact"]["fact_id"])
        for event in commit["events"]
        if event_text(event) in texts and (event.get("target") or event.get("fact"))
    }


def _was_commanded(told: Told, fact: LoggedFact, ending: Ending) -> bool:
    order, event = ending.commit["order"], ending.event
    match order["kind"]:
        case "delete_all":
            return order.get("key") in (None, fact.fact.get("key"))
        case "confirm":
            return event["event"] != "pending_confirmed" or _was_held_for(told, fact, event)
        case "resolve":
            asked = told.log.facts[order["fact_id"]]
            named = {order["fact_id"], *order.get("targets", ()), *_shown_beside(told, asked)}
            return fact.id in named
        case "undo":
            return True
        case _:
            return fact.id in str(order)


def _shown_beside(told: Told, fact: LoggedFact) -> set[str]:
    """The facts that the question was about after which a fact was kept as unresolved."""
    source_id = fact.commit["source_id"]
    asked = [one for one in told.reader.decided if (one.source_id, one.text) == (source_id, fact.text)]
    just_said = (_just_said(told, source_id, one.shown_texts) for one in asked)
    return {str(known) for one in asked for known in one.shown}.union(*just_said)


def _was_held_for(told: Told, fact: LoggedFact, event: Json) -> bool:
    """Whether the overwrite that is confirmed was about the fact itself: what its target has become is left alone."""
    held = told.log.held_back[event["target"]]
    source_id = told.log.facts[event["target"]].commit["source_id"]
    if fact.id not in held["targets"]:
        return False
    return _was_shown_for(told, source_id, fact, held) or _enriches_pending(told, held)


def _enriches_pending(told: Told, held: Json) -> bool:
    """Whether it is the richer form of another pending overwrite, whose targets it has."""
    return any(target in told.log.held_back for target in held["targets"])


def ancestors(log: Log, fact: LoggedFact) -> list[LoggedFact]:
    """The facts whose place a fact has taken, by merging or correcting them."""
    found = [fact]
    for one in found:
        for other in log.facts.values():
            taken = (
                end.ender == one.id and end.action in ("merge", "correct", "replace") for end in log.endings(other)
            )
            if any(taken) and other not in found:
                found.append(other)
    return found[1:]


def _was_said_again(told: Told, fact: LoggedFact, event: Json) -> bool:
    """Whether the fact, or what was merged into it, was repeated after the challenge that a statement confirms."""
    held = told.log.held_back[event["target"]]
    challenge = told.log.facts[event["target"]].commit
    if held["action"] in ("merge", "expire"):
        return False
    family = {fact.id, *(one.id for one in ancestors(told.log, fact))}
    for commit, other in told.log.events():
        if other is event:
            return False
        if other["event"] in REPETITIONS and other["target"] in family and other.get("statement"):
            turn = told.turns.get(commit["source_id"])
            if turn is not None and turn.infer and moment(commit["occurred_at"]) > moment(challenge["occurred_at"]):
                return other["event_id"] not in told.log.undone
    return False


def _unreopened(told: Told) -> Iterator[str]:
    """Facts that are ended by nothing but what is no longer believed."""
    now = told.history.now
    for fact in told.log.facts.values():
        if (
            not fact.endings
            or fact.status == "withdrawn"
            or fact.is_answered(now)
            or fact.status in ("undone", "pending_confirmation")
        ):
            continue
        if fact.valid_until is not None and fact.valid_until <= now:
            continue
        endings = told.log.endings(fact)
        if (
            fact.event["event"] == "fact_pending"
            and not fact.believed
            and not any(
                event["event"] == "pending_confirmed" and event["target"] == fact.id for _, event in told.log.events()
            )
        ):
            continue
        if endings and not any(_stands(told, one, endings) for one in endings):
            enders = [told.log.facts[one.ender].text for one in endings if one.ender]
            yield f"{fact.text!r} stays ended by {enders}, which is not believed any more"


def _stands(told: Told, ending: Ending, endings: Sequence[Ending], depth: int = 0) -> bool:
    """Whether what ended a fact is still believed, or has become a part of what is."""
    if ending.event["decision"]["by"] == "timer":
        others = [one for one in endings if one is not ending]
        return not others or any(_stands(told, one, others, depth) for one in others)
    if ending.ender is None or depth > 20:
        return True
    ender = told.log.facts[ending.ender]
    if ender.believed or ender.status == "pending_confirmation":
        return True
    taken = told.log.endings(ender)
    if any((one.commit["order"] or {}).get("kind") == "delete_all" for one in taken):
        return True  # it deleted what the key held, and what it held before stays history
    heirs = [one for one in taken if one.action in ("merge", "correct", "keep_old")]
    return any(_stands(told, one, taken, depth + 1) for one in heirs)
