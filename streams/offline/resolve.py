"""Decides conflicts: only what is certain ends a known fact. In doubt both stay."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.entities.names import TIE_TYPES
from mnemolog.streams.llm.ports import NumberedConflicts
from mnemolog.streams.offline import sentences as read
from mnemolog.streams.text import readings
from mnemolog.streams.text.differences import differences, relate_subjects, same_terms
from mnemolog.streams.text.tokens import NUMBERS

_EMPTY: Final = frozenset("a an the do does at all any really very so now again".split())  # noqa: SIM905 -- words
_ORDER: Final[tuple[Verdict, ...]] = ("RETRACT", "KEEP", *OVERWRITE_OF_VERDICT)  # a repeated end ends what began since
_Fact = ExtractedFact | Candidate
_Finding = tuple[Verdict, str]  # what a new fact means for a known one, and why


def judge(conflicts: NumberedConflicts) -> Iterator[dict[str, Any]]:
    """One decision for each new fact, as a reply has it. A known fact that one decision ends is ended by no other."""
    taken: set[int] = set()
    for conflict in conflicts.conflicts:
        fact, at = conflict.fact, conflict.valid_from if conflict.reconsidered_fact_id else conflicts.said_at
        says, found = read.slot_statements(fact.excerpt, at) or read.doubts(fact.excerpt, at), dict[int, _Finding]()
        for label, known in conflict.candidates:
            known_since = known.said_at or at
            # What is true from a later time is judged as if it were said later: a new fact that it ends is history.
            tells_change = fact.action_hint != "new" and known.event_time is None and known_since <= at
            finding = _finding(says, fact, known, at)
            if finding and finding[0] == "REPLACE" and known_since <= at < known.true_from and not fact.key:
                finding = ("CONTRADICT", "what was planned is denied")
            elif conflict.valid_from < known.true_from and not tells_change:
                finding = _finding(read.slot_statements(known.excerpt, at), known, fact, at)
                if finding and finding[0] in OVERWRITE_OF_VERDICT:  # history, unless it is so until today: "since 2010"
                    finding = (
                        None if fact.event_time and fact.action_hint == "new" and fact.key else ("REPLACE", finding[1])
                    )
            is_free = label not in taken and relate_subjects(fact, known, conflicts.user_names) == "same"
            told_since = fact.event_time is not None and fact.event_time + timedelta(days=31) < known_since
            refused = {"KEEP": not same_terms(fact, known), "RETRACT": told_since}
            if finding and is_free and not refused.get(finding[0]):
                found[label] = finding
        verdict, reason = min(found.values(), key=lambda one: _ORDER.index(one[0]), default=("ADD", "is new"))
        targets = [label for label, one in found.items() if one[0] == verdict]
        # Somebody or something ends while another one is known by the same name: a cat and a dog called Max.
        ties = {
            label: (one.value or "").partition(" ")[0] for label, one in conflict.candidates if one.key in TIE_TYPES
        }
        is_of_tie, is_shared = not ties.keys().isdisjoint(targets), len(ties) > len({*ties.values()})
        if verdict in OVERWRITE_OF_VERDICT and is_of_tie and (len(targets) > 1 or is_shared):
            verdict, reason, targets = "ADD", "may end one of several: all are kept", []
        taken.update(targets if verdict in OVERWRITE_OF_VERDICT else ())
        yield {"number": conflict.number, "verdict": verdict, "targets": targets, "reason": reason}


def _finding(says: Sequence[read.SlotStatement], new: _Fact, old: _Fact, at: datetime) -> _Finding | None:
    for one in says:
        is_its_own = read.same_value(one.value, new.value) if new.key else new.action_hint != "new"
        if is_its_own and old.key in one.keys and (finding := _of_slot(one, new, old)):
            return finding
    if new.key is None:
        words = (read.without_fillers(one.text if ', asked "' in one.text else one.excerpt) for one in (new, old))
        is_sure = not (isinstance(new, ExtractedFact) and new.certainty == "weak")
        return None if old.key else _of_words(*words, is_sure=is_sure)
    may_return = old.key is None and old.action_hint == "retract" and new.key not in TIE_TYPES
    ended = read.slot_statements(old.excerpt, at) if may_return else ()
    over = [one for one in ended if one.act not in read.FILLS and new.key in one.keys]
    is_again = any(read.same_value(one.value, new.value) for one in over)
    says_not, denied = (read.WORDS["negation"].search(one.excerpt) for one in (new, old))
    is_denied = old.key is None and new.key not in TIE_TYPES and denied and not says_not
    is_again |= bool(is_denied) and {*readings.read(new.text).stems} <= {*readings.read(old.text).stems}
    return ("REPLACE", "what had ended is so again") if is_again else None


def _of_slot(statement: read.SlotStatement, new: _Fact, old: _Fact) -> _Finding | None:
    is_same = read.same_value(statement.value, old.value)
    is_first_name = old.key in TIE_TYPES and f"{old.value} ".startswith(f"{statement.value} ")
    match statement.act:
        case "denies" if is_same:
            return ("CONTRADICT", "the later statement says that this never was so")
        case "ends" if is_same or is_first_name or not statement.value:
            return ("RETRACT", "the later statement says that this has ended")
        case "states" | "changes" if new.key == old.key:
            return ("KEEP", "the same value is known") if is_same else _of_value(statement, old)
    return None


def _of_value(statement: read.SlotStatement, old: _Fact) -> _Finding | None:
    """Another value of a key. A home may be a part of the known one unless it has changed: then a guard holds it."""
    is_part = statement.value in (old.value or "") or (old.value or "") in statement.value
    is_third = statement.old is not None and not read.same_value(statement.old, old.value)
    if old.key is None or not is_single_valued(old.key) or is_third or is_part:
        return None
    if old.key in ("name", "birthday"):
        return ("CONTRADICT", f"nobody has two {old.key}s")
    is_other = statement.act == "changes" or old.key == "home_city"
    return ("REPLACE", f"the later statement has another {old.key.replace('_', ' ')}") if is_other else None


def _of_words(said: str, known: str, *, is_sure: bool) -> _Finding | None:
    """Two sentences, or answers with their questions: only one that denies the very words of the other ends it."""
    if _content(said) == _content(known) != [] and not differences(said, known):
        return ("KEEP", "the same words")
    new, old = (read.WORDS["likes"].sub("like", read.WORDS["dislikes"].sub("not like", one)) for one in (said, known))
    is_denied = len(read.WORDS["negation"].findall(new)) != len(read.WORDS["negation"].findall(old))
    is_sure = is_sure and not read.WORDS["doubt"].search(said)
    if is_denied and is_sure and read.WORDS["subject"].search(new) and _content(new) == _content(old):
        return ("RETRACT" if read.WORDS["ended"].search(new) else "REPLACE", "the same words, denied")
    return None


def _content(said: str) -> list[str]:
    """The words that tell something, and the commas between them; capitals count behind the first word."""
    found = re.findall(r"[^\W_]+|,", read.WORDS["negation"].sub(" ", said))
    words = " ".join(NUMBERS.get(word.casefold(), word) for word in found if word.casefold() not in _EMPTY).strip(" ,")
    first, _, rest = words.partition(" ")
    return [first.casefold(), *re.sub(r"\bI\b", "i", rest).split()] if words else []
