"""What stands in the place of the language model: a reader that is always right, or ends facts of other people too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflict, NumberedConflicts, Prompt, SummaryTask, TaskPrompt
from tests.properties.oracle import OVERWRITES, PRIORITY, JsonObject, Targets, meaning_of, merged_text, verdict_on
from tests.properties.sentences import person_of
from tests.support.builders.model_replies import decision_json, decisions_reply, facts_reply, name_json, summary_reply


@dataclass
class PerfectReader:
    """Extracts what it was told that a turn says; decides as somebody would who understands every word.

    A `greedy` one takes what is known of others for what is known of the subject where something ends, and a
    stay for a change; a `careless` one at first says that what tells more was known.
    """

    greedy: bool = False
    careless: bool = False
    lets_ends_stand: bool = False
    extractions: dict[str, Sequence[JsonObject]] = field(default_factory=dict)

    def reply(self, source_id: str, prompt: Prompt, attempt: int) -> str:
        assert isinstance(prompt, TaskPrompt)
        match prompt.task:
            case ExtractionTask(turn=turn):
                return facts_reply(*self.extractions[turn.turn_id])
            case NumberedConflicts(doubtful_names=names) as task:
                texts = {fact["text"] for fact in self.extractions.get(source_id, ())}
                said = list(self._decisions(task, texts, attempt))
                nobody = [name_json(number, 0) for number, _ in enumerate(names, 1)]
                return decisions_reply(*said, names=nobody or None)
            case SummaryTask(facts=facts):
                return summary_reply(*((fact.text, [number]) for number, fact in enumerate(facts, 1)))
        raise AssertionError(source_id)

    def _decisions(self, task: NumberedConflicts, said: set[str], attempt: int) -> Iterable[JsonObject]:
        used, ended = set[int](), set[int]()
        for conflict in task.conflicts:
            verdict, targets = best_verdict(conflict, used, ended, greedy=self.greedy)
            if self.greedy and (conflict.fact.text not in said or (attempt and verdict == "KEEP")):
                verdict, targets = "ADD", ()  # people who are one now, or may be two
            if self.lets_ends_stand and verdict == "REPLACE" and not any(map(_holds, targets)):
                verdict, targets = "ADD", ()
            if self.careless and not attempt and verdict in ("MERGE", "REPLACE", "RETRACT", "CONTRADICT"):
                verdict, targets = "KEEP", targets[:1]
            labels = {label for label, _ in targets}
            used |= labels
            ended |= labels if verdict in OVERWRITES else set()
            yield decision_on(conflict, verdict, targets)


def _holds(target: tuple[int, Candidate]) -> bool:
    known = meaning_of(target[1])
    return known is not None and known.holds


def best_verdict(
    conflict: NumberedConflict, used: set[int], ended: set[int], *, greedy: bool
) -> tuple[Verdict, Targets]:
    """The right verdict. What a reply has `used` is not ended by it, and what it has `ended` is not used again."""
    new = meaning_of(conflict.fact)
    if new is None:
        return "ADD", ()
    for label, candidate in conflict.candidates:
        known = meaning_of(candidate)
        if candidate.status == "pending_confirmation" and known and known.claim == new.claim:
            return "KEEP", ((label, candidate),)
    found: dict[Verdict, list[tuple[int, Candidate]]] = {}
    for label, candidate in conflict.candidates:
        known = meaning_of(candidate)
        verdict = verdict_on(new, known) if known and label not in ended else None
        is_stay = bool(new.until) and new.holds and verdict == "SIMILAR"
        if (verdict is None or is_stay) and greedy and known and label not in ended:
            of_other = verdict_on(replace(new, until=None), replace(known, person=new.person, until=None))
            verdict = of_other if of_other in ("REPLACE", "RETRACT", "CONTRADICT", "EXPIRE") else verdict
        if verdict is not None and not (verdict in OVERWRITES and label in used):
            found.setdefault(verdict, []).append((label, candidate))
    if "KEEP" in found or "MERGE" in found:  # what only waits does not count beside what is known
        active = {verdict: [one for one in targets if one[1].status == "active"] for verdict, targets in found.items()}
        found = {verdict: targets for verdict, targets in active.items() if targets} or found
    best = next((verdict for verdict in PRIORITY if verdict in found), None)
    if best is None:
        return "ADD", ()
    return best, found[best][:1] if best == "KEEP" else found[best]


def decision_on(conflict: NumberedConflict, verdict: Verdict, targets: Targets) -> JsonObject:
    labels, fields = [label for label, _ in targets], dict[str, Any]()
    new = meaning_of(conflict.fact)
    if verdict == "MERGE":
        text = merged_text(conflict, targets)
        fields = {"text": text, "search_text": f"near {new.key if new else 'other'}: {text}"}
    if verdict in ("REPLACE", "RETRACT") and new and _began_that_day(conflict, targets, new.person):
        fields = {"ended_at": f"{conflict.valid_from:%Y-%m-%d}"}
    if verdict == "EXPIRE":
        end = new.until if new and new.until else conflict.valid_from
        fields = {"ended_at": max([end, *(known.true_from for _, known in targets)])}
    return decision_json(conflict.number, verdict, *labels, **fields)


def _began_that_day(conflict: NumberedConflict, targets: Targets, person: str) -> bool:
    """Whether the last of them began on the day of the statement, and before it: a date is enough for its end."""
    of_person = [known.true_from for _, known in targets if person_of(known.subject) == person]
    begun, since = max(of_person, default=conflict.valid_from), conflict.valid_from
    return begun.date() == since.date() and begun <= since
