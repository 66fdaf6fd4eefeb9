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
from mnemolog.streams.text import differences, readings
from mnemolog.streams.text.tokens import NUMBERS

_EMPTY: Final = frozenset("a an the do does at all any really very so now again".split())  # noqa: SIM905 -- words
_ORDER: Final[tuple[Verdict, ...]] = ("RETRACT", "KEEP", *OVERWRITE_OF_VERDICT)  # a repeated end ends what began since
_REFERS: Final = re.compile(r', (?:asked|after) "')  # to a message before it
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
            finding = _finding(says, fact, known, at)
            if finding and finding[0] == "REPLACE" and not fact.key and known_since <= at < known.true_from:
                finding = ("CONTRADICT", "what was planned is denied")
            told_at = fact.event_time or max(at, known_since)
            goes_on = fact.event_time is not None and fact.action_hint == "new" and told_at < known.true_from  # "since"
            is_long_over = told_at + timedelta(days=31) < known_since
            refused = {"KEEP": not differences.same_terms(fact, known), "RETRACT": is_long_over, "REPLACE": goes_on}
            is_free = label not in taken and differences.relate_subjects(fact, known, conflicts.user_names) == "same"
            if finding and is_free and not refused.get(finding[0]):
                found[label] = finding
        verdict, reason = min(found.values(), key=lambda one: _ORDER.index(one[0]), default=("ADD", "is new"))
        targets = [label for label, one in found.items() if one[0] == verdict]
        if verdict in OVERWRITE_OF_VERDICT:
            tied = {label: f"{one.value} ".split(" ")[0] for label, one in conflict.candidates if one.key in TIE_TYPES}
            is_shared = len(targets) > 1 or len(tied) > len({*tied.values()})
            if is_shared and not tied.keys().isdisjoint(targets):
                verdict, reason, targets = "ADD", "may end one of several: all are kept", []
            taken.update(targets)
        yield {"number": conflict.number, "verdict": verdict, "targets": targets, "reason": reason}


def _finding(says: Sequence[read.SlotStatement], new: _Fact, old: _Fact, at: datetime) -> _Finding | None:
    if new.key is None and ', after "' in new.text and old.excerpt and old.excerpt in new.text:
        return ("CONTRADICT", "the user took it back")
    for one in says:
        is_its_own = read.same_value(one.value, new.value) if new.key else new.action_hint != "new"
        if is_its_own and old.key in one.keys and (finding := _of_slot(one, new, old)):
            return finding
    if new.key is None:
        return None if old.key else _of_words(new, old)
    if old.key is not None or new.key in TIE_TYPES:
        return None
    ended = read.slot_statements(old.excerpt, at) if old.action_hint == "retract" else ()
    over = (one.value for one in ended if one.act not in read.FILLS and new.key in one.keys)
    says_not, denied = (read.WORDS["negation"].search(one.excerpt) for one in (new, old))
    is_denied = denied and not says_not and {*readings.read(new.text).stems} <= {*readings.read(old.text).stems}
    is_again = is_denied or any(read.same_value(one, new.value) for one in over)
    return ("REPLACE", "what had ended is so again") if is_again else None


def _of_slot(statement: read.SlotStatement, new: _Fact, old: _Fact) -> _Finding | None:
    act, value, known, key = statement.act, statement.value, old.value or "", old.key or ""
    is_same, is_of_key = read.same_value(value, known), new.key == key
    is_part = value in known or known in value  # "London" may be "London, Ontario"
    is_other = is_of_key and not (is_same or is_part) and is_single_valued(key)
    is_end = act == "ends" and (is_same or not value or (key in TIE_TYPES and f"{known} ".startswith(f"{value} ")))
    is_doubt = act == "doubts" and known.rstrip("s").endswith(value.rstrip("s"))  # "nuts" may be walnuts
    is_change = is_other and (act == "changes" or (act, key) == ("states", "home_city"))
    rules: tuple[tuple[bool, Verdict, str], ...] = (
        (act == "denies" and is_same, "CONTRADICT", "the later statement says that this never was so"),
        (is_doubt, "CONTRADICT", "the later statement calls this in question"),
        (is_end, "RETRACT", "the later statement says that this has ended"),
        (act in read.FILLS and is_same and is_of_key, "KEEP", "the same value is known"),
        (act in read.FILLS and is_other and key in ("name", "birthday"), "CONTRADICT", f"nobody has two {key}s"),
        (is_change, "REPLACE", f"the later statement has another {key.replace('_', ' ')}"),
    )
    return next(((verdict, reason) for holds, verdict, reason in rules if holds), None)


def _of_words(new: _Fact, old: _Fact) -> _Finding | None:
    """Two sentences, or answers with their questions: only one that denies the very words of the other ends it."""
    said, known = (read.without_fillers(one.text if _REFERS.search(one.text) else one.excerpt) for one in (new, old))
    if _content(said) == _content(known) != [] and differences.same_negations(said, known):
        return ("KEEP", "the same words")
    is_sure = not (isinstance(new, ExtractedFact) and new.certainty == "weak") and not read.WORDS["doubt"].search(said)
    says, knew = (read.WORDS["likes"].sub("like", read.WORDS["dislikes"].sub("not like", one)) for one in (said, known))
    is_denied = len(read.WORDS["negation"].findall(says)) != len(read.WORDS["negation"].findall(knew))
    if is_sure and is_denied and read.WORDS["subject"].search(says) and _content(says) == _content(knew):
        return ("RETRACT" if read.WORDS["ended"].search(says) else "REPLACE", "the same words, denied")
    return None


def _content(said: str) -> list[str]:
    """The words that tell something, and the commas between them; capitals count behind the first word."""
    found = re.findall(r"[-+]?[^\W_]+[-+]*|,", read.WORDS["negation"].sub(" ", said))
    words = " ".join(NUMBERS.get(word.casefold(), word) for word in found if word.casefold() not in _EMPTY).strip(" ,")
    first, _, rest = words.partition(" ")
    return [first.casefold(), *re.sub(r"\bI\b", "i", rest).split()] if words else []
