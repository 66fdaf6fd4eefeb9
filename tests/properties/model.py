"""What stands in the place of the language model: a reader that is always right, or ends facts of other people too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import (
    ExtractionTask,
    NumberedConflict,
    NumberedConflicts,
    Prompt,
    SummaryTask,
    TaskPrompt,
)
from tests.properties.sentences import CALLED, NAME, Form, Meaning, form_of, person_of, read, words_of, write
from tests.support.builders.model_replies import decision_json, decisions_reply, facts_reply, summary_reply

JsonObject = Mapping[str, Any]
Targets = Sequence[tuple[int, Candidate]]
OVERWRITES: Final = ("MERGE", "REPLACE", "CONTRADICT", "RETRACT", "EXPIRE")
PRIORITY: Final[tuple[Verdict, ...]] = ("CONTRADICT", "RETRACT", "EXPIRE", "MERGE", "KEEP", "REPLACE", "SIMILAR")
"""What a sentence does that does several things to the known ones: only one verdict can be given."""


def verdict_on(new: Meaning, known: Meaning) -> Verdict | None:  # noqa: PLR0911 -- one way out a case
    """What a new sentence means for a known one, in whatever order they were said; None where it has nothing to do."""
    if (new.person, new.key) != (known.person, known.key):
        return None
    if new.value != known.value:
        return _verdict_on_other_value(new, known)
    if new.holds and known.holds:
        if (new.until, new.begins) != (known.until, known.begins):
            return "SIMILAR"
        return "KEEP" if new.details <= known.details else "MERGE"
    if new.holds:
        return _VERDICTS_ON_OTHER_FORM[known.form] if known.form != "call_off" or new.begins else None
    if known.holds:
        return _VERDICTS_OF_FORM[new.form] if new.form != "call_off" or known.begins else None
    return "KEEP" if new.form == known.form else None


_VERDICTS_ON_OTHER_FORM: Final[Mapping[Form, Verdict | None]] = {
    "end": "REPLACE", "call_off": "REPLACE", "denial": "CONTRADICT", "announcement": None,
}  # fmt: skip
"""What it means for these that the value holds."""
_VERDICTS_OF_FORM: Final[Mapping[Form, Verdict]] = {
    "end": "RETRACT", "call_off": "RETRACT", "denial": "CONTRADICT", "announcement": "EXPIRE",
}  # fmt: skip
"""What these mean for a value that holds."""


def _verdict_on_other_value(new: Meaning, known: Meaning) -> Verdict | None:
    if not (new.holds and known.holds and new.slot.single_valued):
        return None
    if new.until or known.until:  # what holds for a while ends nothing
        return "SIMILAR"
    return "CONTRADICT" if new.form == "correction" else "REPLACE"


@dataclass
class PerfectReader:
    """Extracts what it was told that a turn says; decides as somebody would who understands every word.

    A `greedy` one takes what is known of others for what is known of the subject where something ends, and a
    stay for a change; `greedy_late` also where it judges ends that were said after a statement, and came before it.
    A `careless` one at first answers with nothing that can be read, and then takes for known what says more.
    """

    greedy: bool = False
    greedy_late: bool = False
    careless: bool = False
    lets_ends_stand: bool = False
    extractions: dict[str, Sequence[JsonObject]] = field(default_factory=dict)

    def reply(self, source_id: str, prompt: Prompt, attempt: int) -> str:
        assert isinstance(prompt, TaskPrompt)
        match prompt.task:
            case ExtractionTask(turn=turn):
                return facts_reply(*self.extractions[turn.turn_id])
            case NumberedConflicts() if self.careless and not attempt:
                return "It is known."
            case NumberedConflicts(doubtful_names=names) as task:
                stated = self.extractions.get(source_id) or chain(*self.extractions.values())  # or it promotes these
                texts = {fact["text"] for fact in stated}
                said = list(self._decisions(task, texts, attempt))
                return decisions_reply(*said, names={number: 0 for number, _ in enumerate(names, 1)})
            case SummaryTask(facts=facts):
                return summary_reply(*((fact.text, [number]) for number, fact in enumerate(facts, 1)))
        raise AssertionError(source_id)

    def _decisions(self, task: NumberedConflicts, said: set[str], attempt: int) -> Iterable[JsonObject]:
        used, ended = set[int](), set[int]()
        for conflict in task.conflicts:
            is_last = conflict is task.conflicts[-1]  # what it takes for another's it uses up
            verdict, targets = best_verdict(conflict, used, ended, greedy=self.greedy and is_last)
            may_be_two = attempt and verdict == "KEEP" and conflict.fact.subject in CALLED
            is_known = conflict.fact.text not in said and not self.greedy_late
            if self.greedy and (is_known or may_be_two):  # or people who are one now
                verdict, targets = "ADD", ()
            if self.careless and verdict == "MERGE":
                verdict, targets = "KEEP", targets[:1]
            is_of_end = not any((known := meaning_of(one)) and known.holds for _, one in targets)
            if self.lets_ends_stand and verdict == "REPLACE" and is_of_end:
                verdict, targets = "ADD", ()
            labels = {label for label, _ in targets}
            used |= labels
            ended |= labels if verdict in OVERWRITES else set()
            yield decision_on(conflict, verdict, targets)


def best_verdict(  # noqa: C901 -- the rules one below the other
    conflict: NumberedConflict, used: set[int], ended: set[int], *, greedy: bool
) -> tuple[Verdict, Targets]:
    """The right verdict. What a reply has `used` is not ended by it, and what it has `ended` is not used again."""
    new = meaning_of(conflict.fact)
    if new is None:
        return "ADD", ()
    for label, candidate in conflict.candidates:
        known = meaning_of(candidate, new)
        if candidate.status == "pending_confirmation" and known and known.claim == new.claim:
            return "KEEP", ((label, candidate),)
    found: dict[Verdict, list[tuple[int, Candidate]]] = {}
    for label, candidate in conflict.candidates:
        known = meaning_of(candidate, new)
        verdict = verdict_on(new, known) if known and label not in ended else None
        if candidate.is_of_other_entity and verdict in ("KEEP", "MERGE"):
            verdict = None
        is_stay = bool(new.until) and new.holds and verdict == "SIMILAR"
        if (verdict is None or is_stay) and greedy and known and label not in ended:
            of_other = verdict_on(replace(new, until=None), replace(known, person=new.person, until=None))
            verdict = of_other if of_other in ("REPLACE", "RETRACT", "CONTRADICT", "EXPIRE") else verdict
        if verdict is not None and not (verdict in OVERWRITES and label in used):
            found.setdefault(verdict, []).append((label, candidate))
    if "KEEP" in found or "MERGE" in found:  # what only waits does not count beside what is known
        active = {verdict: [one for one in targets if one[1].status == "active"] for verdict, targets in found.items()}
        found = {verdict: targets for verdict, targets in active.items() if targets} or found
    denials = found.get("CONTRADICT", [])
    if "REPLACE" in found and not any((known := meaning_of(one)) and known.holds for _, one in denials):
        found["REPLACE"] += found.pop("CONTRADICT", [])  # it ends the value before it, and what denied its own
    best = next((verdict for verdict in PRIORITY if verdict in found), None)
    if best is None:
        return "ADD", ()
    return best, found[best][:1] if best == "KEEP" else found[best]


def decision_on(conflict: NumberedConflict, verdict: Verdict, targets: Targets) -> JsonObject:
    labels, fields = [label for label, _ in targets], dict[str, Any]()
    new = meaning_of(conflict.fact)
    if verdict == "MERGE":
        fields = {"text": merged_text(conflict, targets)}
    if verdict in ("REPLACE", "RETRACT") and new and _began_that_day(conflict, targets, new.person):
        fields = {"ended_at": f"{conflict.valid_from:%Y-%m-%d}"}
    if verdict == "EXPIRE":
        said = read(conflict.fact.text)
        end = said.until if said and said.until else conflict.valid_from
        begun = max(known.true_from for _, known in targets)
        fields = {"ended_at": f"{end:%Y-%m-%d}" if end.date() == begun.date() else max(end, begun)}
    return decision_json(conflict.number, verdict, *labels, **fields)


def _began_that_day(conflict: NumberedConflict, targets: Targets, person: str) -> bool:
    """Whether the last of them began on the day of the statement, and before it: a date is enough for its end."""
    of_person = [known.true_from for _, known in targets if person_of(known.subject) == person]
    begun, since = max(of_person, default=conflict.valid_from), conflict.valid_from
    return begun.date() == since.date() and begun <= since


def meaning_of(fact: Candidate | ExtractedFact, new: Meaning | None = None) -> Meaning | None:
    """What a fact says; its end may be told beside its words, and that it is about whom a `new` one is about."""
    meaning = read(fact.text, fact.subject)
    if meaning and new and isinstance(fact, Candidate) and fact.subject_relation == "same":
        meaning = replace(meaning, person=new.person)
    return replace(meaning, until=fact.valid_until) if meaning else None


def merged_text(conflict: NumberedConflict, targets: Targets) -> str:
    """One sentence with the details of all of them; of what cannot be read as one, the sentences side by side."""
    texts = [(known.text, known.subject) for _, known in targets]
    all_texts = [*(text for text, _ in texts), conflict.fact.text]
    meanings = [*(read(*one) for one in texts), read(conflict.fact.text, conflict.fact.subject)]
    whole = meanings[0]
    for one in meanings[1:]:
        if (
            whole is None
            or one is None
            or (one.topic, one.until, one.begins) != (whole.topic, whole.until, whole.begins)
        ):
            return " ".join(dict.fromkeys(all_texts))
        whole = replace(whole, details=whole.details | one.details)
    assert whole is not None
    subjects = [conflict.fact.subject, *(subject for _, subject in texts)]
    named = [one for one in subjects if one and person_of(one) == whole.person]
    plain = [text for text, meaning in zip(all_texts, meanings, strict=True) if meaning and not meaning.details]
    said = tuple(dict.fromkeys(chain(*map(words_of, (*plain, *all_texts)))))
    is_named = NAME in named or any(NAME in text for text in all_texts)
    return write(replace(whole, form=form_of(said[0])), NAME if is_named else next(iter(named), None), said=said)
