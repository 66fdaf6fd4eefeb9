"""Readers in the place of the language model: one that is always right, and one that answers anything at all."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflict, NumberedConflicts, Prompt, TaskPrompt
from tests.properties.sentences import NAME, Form, Meaning, form_of, merged, person_of, read, words_of, write
from tests.support.builders.model_replies import decision_json, decisions_reply, facts_reply

JsonObject = Mapping[str, Any]
OVERWRITES: Final = ("MERGE", "REPLACE", "CONTRADICT", "RETRACT", "EXPIRE")
PRIORITY: Final[tuple[Verdict, ...]] = (
    "CONTRADICT",
    "RETRACT",
    "EXPIRE",
    "MERGE",
    "KEEP",
    "REPLACE",
    "SIMILAR",
)
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


@dataclass(frozen=True)
class Shown:
    """One decision of a reply: which known facts were shown for a new text, and what was said of which of them."""

    source_id: str
    text: str
    shown: tuple[UUID, ...]
    shown_texts: tuple[str, ...]
    verdict: str
    named: tuple[UUID, ...]
    named_texts: tuple[str, ...]
    attempt: int


@dataclass
class OracleReader:
    """Extracts what it was told that a turn says; decides as somebody would who understands every word.

    `invalid` are the sources whose conflicts it never answers validly.
    """

    extractions: dict[str, Sequence[JsonObject]] = field(default_factory=dict)
    invalid: set[str] = field(default_factory=set)
    decided: list[Shown] = field(default_factory=list)

    def reply(self, source_id: str, prompt: Prompt, attempt: int) -> str:
        assert isinstance(prompt, TaskPrompt)
        match prompt.task:
            case ExtractionTask(turn=turn):
                return facts_reply(*self.extractions[turn.turn_id])
            case NumberedConflicts() as task:
                decisions = list(self.decisions(source_id, task, attempt))
                self._record(source_id, task, decisions, attempt)
                return "this is no JSON" if source_id in self.invalid else decisions_reply(*decisions)
        raise AssertionError(f"no story asks for a summary: {source_id}")

    def decisions(self, _source_id: str, task: NumberedConflicts, _attempt: int) -> Iterable[JsonObject]:
        used, ended = set[int](), set[int]()
        for conflict in task.conflicts:
            verdict, targets = best_verdict(conflict, used, ended)
            labels = {label for label, _ in targets}
            used |= labels
            ended |= labels if verdict in OVERWRITES else set()
            yield decision_on(conflict, verdict, targets)

    def _record(self, source_id: str, task: NumberedConflicts, decisions: Sequence[JsonObject], attempt: int) -> None:
        for conflict, decision in zip(task.conflicts, decisions, strict=False):
            known = dict(conflict.candidates)
            named = [known[label] for label in decision["known"] if label in known]
            self.decided.append(
                Shown(
                    source_id=source_id,
                    text=conflict.fact.text,
                    shown=tuple(one.fact_id for one in known.values()),
                    shown_texts=tuple(one.text for one in known.values()),
                    verdict=decision["action"],
                    named=tuple(one.fact_id for one in named),
                    named_texts=tuple(one.text for one in named),
                    attempt=attempt,
                )
            )


Targets = Sequence[tuple[int, Candidate]]


def best_verdict(conflict: NumberedConflict, used: set[int], ended: set[int]) -> tuple[Verdict, Targets]:
    """The right verdict. What a reply has `used` is not ended by it, and what it has `ended` is not used again."""
    new = meaning_of(conflict.fact)
    if new is None:
        return "ADD", ()
    found: dict[Verdict, list[tuple[int, Candidate]]] = {}
    for label, candidate in conflict.candidates:
        known = meaning_of(candidate)
        verdict = verdict_on(new, known) if known and label not in ended else None
        if verdict is not None and not (verdict in OVERWRITES and label in used):
            found.setdefault(verdict, []).append((label, candidate))
    best = next((verdict for verdict in PRIORITY if verdict in found), None)
    if best is None:
        return "ADD", ()
    return best, found[best][:1] if best == "KEEP" else found[best]


def meaning_of(fact: Candidate | ExtractedFact) -> Meaning | None:
    """What a fact says; its end may be told beside its words."""
    meaning = read(fact.text, fact.subject)
    return replace(meaning, until=fact.valid_until) if meaning else None


def decision_on(conflict: NumberedConflict, verdict: Verdict, targets: Targets) -> JsonObject:
    labels, fields = [label for label, _ in targets], dict[str, Any]()
    new = meaning_of(conflict.fact)
    if verdict == "MERGE":
        text = merged_text(conflict, targets)
        fields = {"text": text, "search_text": f"near {conflict.fact.key or 'other'}: {text}"}
    if verdict in ("REPLACE", "RETRACT") and _began_that_day(conflict, targets):
        fields = {"ended_at": f"{conflict.valid_from:%Y-%m-%d}"}
    if verdict == "EXPIRE":
        end = new.until if new and new.until else conflict.valid_from
        fields = {"ended_at": max([end, *(known.true_from for _, known in targets)])}
    return decision_json(conflict.number, verdict, *labels, **fields)


def _began_that_day(conflict: NumberedConflict, targets: Targets) -> bool:
    """Whether the last of them began on the day of the statement, and before it: a date is enough for its end."""
    begun, since = max(known.true_from for _, known in targets), conflict.valid_from
    return begun.date() == since.date() and begun <= since


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
        whole = merged(whole, one)
    assert whole is not None
    subjects = [conflict.fact.subject, *(subject for _, subject in texts)]
    named = [one for one in subjects if one and person_of(one) == whole.person]
    plain = [text for text, meaning in zip(all_texts, meanings, strict=True) if meaning and not meaning.details]
    said = tuple(dict.fromkeys(chain(*map(words_of, (*plain, *all_texts)))))
    is_named = NAME in named or any(NAME in text for text in all_texts)
    return write(replace(whole, form=form_of(said[0])), NAME if is_named else next(iter(named), None), said=said)


class RandomReader(OracleReader):
    """Understands nothing: any verdict on any of the facts that it is shown, in valid form; now and then the right one.

    The same seed and source give the same replies.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def decisions(self, source_id: str, task: NumberedConflicts, attempt: int) -> Iterable[JsonObject]:
        chance = random.Random(f"{self._seed}/{source_id}/{attempt}")
        used: set[int] = set()
        for conflict in task.conflicts:
            free = sorted((one for one in conflict.candidates if one[0] not in used), key=lambda one: one[1].text)
            decision = self._decision(chance, conflict, free)
            used.update(decision["known"])
            yield decision

    def _decision(self, chance: random.Random, conflict: NumberedConflict, free: Targets) -> JsonObject:
        if not free:
            return decision_json(conflict.number, "ADD")
        if chance.random() < 0.4:
            taken = {label for label, _ in conflict.candidates} - {label for label, _ in free}
            verdict, targets = best_verdict(conflict, taken, taken)
            return decision_on(conflict, verdict, targets)
        verdicts: tuple[Verdict, ...] = (
            "ADD", "KEEP", "MERGE", "REPLACE", "CONTRADICT", "EXTEND", "SIMILAR", "RETRACT", "EXPIRE",
        )  # fmt: skip
        verdict = chance.choice(verdicts)
        most = {"ADD": 0, "KEEP": 1}.get(verdict, len(free))  # several that say it together are left to the model
        targets = chance.sample(list(free), chance.randint(min(1, most), most))
        decision = decision_on(conflict, verdict, targets)
        if verdict in ("REPLACE", "RETRACT", "EXPIRE") and chance.random() < 0.4:
            first = max(known.true_from for _, known in targets)
            return {**decision, "ended_at": first + timedelta(days=chance.randint(0, 40))}
        return decision
