"""Where the statements of a turn went: none is lost, taken for another, or history because of somebody else."""

from collections.abc import Iterator

from tests.properties.log_reader import ACTIONS, Json, moment
from tests.properties.sentences import Meaning, read
from tests.properties.telling import Told

REPETITIONS = ("fact_skipped", "fact_confirmed")


def misplaced_statements(told: Told, commit: Json) -> Iterator[str]:
    """What is wrong with what a commit made of the statements of its turn."""
    yield from _lost_statements(told, commit)
    for event in commit["events"]:
        yield from _wrong_repetition(told, commit, event)
        yield from _wrong_history(told, commit, event)
        yield from _outdated_end(told, commit, event)
        yield from _lost_human_word(told, event)
        yield from _held_correction(told, commit, event)


def event_text(event: Json) -> str:
    """The text of the statement that led to an event."""
    return str((event.get("statement") or event.get("fact") or {}).get("text", ""))


def _lost_statements(told: Told, commit: Json) -> Iterator[str]:
    """The statements of a turn that have neither an event nor a reason why they were dropped, or the wrong reason."""
    turn = told.turns.get(commit["source_id"])
    if turn is None or commit["outcome"] not in ("facts", "no_facts"):
        return
    steps = commit.get("provenance", {}).get("steps", ())
    dropped = {one["text"]: one for step in steps for one in step.get("dropped", ())}
    kept = {part["text"] for event in commit["events"] for part in (event.get("fact"), event.get("statement")) if part}
    kept |= {one.text for one in told.reader.decided if one.source_id == turn.turn_id and one.verdict == "MERGE"}
    claims = [one.meaning.claim for one in turn.said]
    for one in turn.said:
        reason = dropped.get(one.text)
        if one.text in kept:
            continue
        if reason is None:
            yield f"{one.text!r} of {turn.turn_id} left no trace"
        elif reason["reason"] == "near_duplicate" and claims.count(one.meaning.claim) < 2:
            yield f"{one.text!r} of {turn.turn_id} was dropped as a near duplicate of something else"
        elif reason["reason"] == "recalled" and not any(_recalls(text, one.meaning) for text in turn.recalled):
            yield f"{one.text!r} of {turn.turn_id} was dropped as recalled: {turn.recalled}"


def _recalls(text: str, meaning: Meaning) -> bool:
    recalled = read(text)
    return recalled is not None and (recalled.key, recalled.value, recalled.form) == (
        meaning.key,
        meaning.value,
        meaning.form,
    )


def _wrong_repetition(told: Told, commit: Json, event: Json) -> Iterator[str]:
    """A statement counted as a repetition of what says something else: then it is nowhere."""
    if event["event"] not in REPETITIONS or not event.get("statement"):
        return
    said, known = told.said(commit["source_id"], event["statement"]["text"]), told.log.facts[event["target"]]
    meaning = told.meaning(known)
    if said is None or meaning is None:
        return
    new, turn = said.meaning, told.turns[commit["source_id"]]
    in_doubt = not (said.subject and known.fact.get("subject")) or not _names_are_known(told, commit)
    if event["decision"]["by"] == "model" and new.person != meaning.person and in_doubt:
        return  # whom a fact without a subject is about, and whose a name is, is left to the model
    if event["decision"]["by"] == "model" and known.fact.get("value") is None:
        return  # without a value, as of a raw text, another value is told from other words by the model alone
    same = (new.topic, new.holds) == (meaning.topic, meaning.holds)
    same = same and (new.holds or new.form == meaning.form or event["decision"]["by"] == "model")
    same = same and new.details <= meaning.details
    same = same and new.begins in (None, meaning.begins)
    if event["decision"]["by"] in ("hash", "threshold"):
        same = same and (new.until == known.valid_until or not turn.infer)  # a raw text has no term
    if not same:
        yield f"{said.text!r} (until {new.until}) was taken for {known.text!r} (until {known.valid_until})"


def _names_are_known(told: Told, commit: Json) -> bool:
    """Whether somebody was named as the speaker by then."""
    for one in told.log.commits:
        turn = told.turns.get(one["source_id"])
        if turn is not None and turn.speaker is not None:
            return True
        if one is commit:
            break
    return False


def _wrong_history(told: Told, commit: Json, event: Json) -> Iterator[str]:
    """A new fact that was born ended: only by what is of its slot, was said later, or was shown to the model for it."""
    if event["event"] != "fact_added" or not event.get("ended_by"):
        return
    new, newer = told.log.facts[event["fact"]["fact_id"]], told.log.facts[event["ended_by"]]
    if told.person(new) != told.person(newer) and not _was_named(told, commit, event, newer.id):
        yield f"{new.text!r} became history because of {newer.text!r} of another person"
    said, other = (min(moment(one["occurred_at"]), moment(one["published_at"])) for one in (commit, newer.commit))
    is_later = (
        newer.commit["source_kind"] == "turn" and said > other and new.true_from >= moment(commit["published_at"])
    )
    if is_later and newer.fact.get("event_time") is None:
        yield f"{new.text!r} became history because of {newer.text!r}, which was said before it"


def _was_named(told: Told, commit: Json, event: Json, known: str) -> bool:
    """Whether the reader named a known fact for a statement."""
    place = commit["source_id"], event_text(event)
    return any(known in map(str, one.named) for one in told.reader.decided if (one.source_id, one.text) == place)


def _outdated_end(told: Told, commit: Json, event: Json) -> Iterator[str]:
    """A pending fact that was ended by a statement that is older than it."""
    if event["event"] not in ACTIONS or event["event"] == "facts_merged" or commit["source_kind"] == "command":
        return
    for target in event["targets"]:
        known = told.log.facts[target]
        is_older = moment(commit["occurred_at"]) < moment(known.commit["occurred_at"])
        was_pending = known.event["event"] == "fact_pending" and known.commit["source_kind"] == "turn"
        if was_pending and is_older and not known.believed:
            yield f"{known.text!r} waited for a confirmation and was ended by {event_text(event)!r}, which is older"


def _lost_human_word(told: Told, event: Json) -> Iterator[str]:
    """A fact on a human's word that was merged into one that is not."""
    merges = event["event"] == "facts_merged" or event.get("action") == "merge"
    if event["event"] == "pending_confirmed" and merges:
        new = told.log.facts[event["target"]]
        for target in event["targets"]:
            if told.log.facts[target].fact.get("authority") == "human" and new.fact.get("authority") != "human":
                yield f"{told.log.facts[target].text!r} was a human's word; {new.text!r}, merged from it, is not"


def _held_correction(told: Told, commit: Json, event: Json) -> Iterator[str]:
    """A change of mind within a turn that waits for somebody to confirm it."""
    said = told.said(commit["source_id"], event_text(event))
    if event["event"] != "fact_pending" or said is None or said.meaning.form != "correction":
        return
    own = {one["fact"]["fact_id"] for one in commit["events"] if one["event"] == "fact_added"}
    if said.certainty == "explicit" and own.issuperset(event["targets"]):
        yield f"{said.text!r} corrects what its turn said before, and waits for a confirmation"
