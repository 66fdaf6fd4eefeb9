"""What a decision of a model asserts beyond the new fact and the known facts that it names, as complaints."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple

from mnemolog.schemas.events import VERDICTS_WITH_END_TIME
from mnemolog.schemas.facts import Candidate, Certainty, ExtractedFact
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ask import MAX_LINE, one_line
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.text.assertions import (
    added_details,
    changed_tense,
    contrary,
    is_denial,
    lost_details,
    lost_words,
    mixed_up,
    moved,
    other_value,
    reordered,
)
from mnemolog.streams.text.differences import SubjectRelation, is_user_word, relate_subjects, same_terms
from mnemolog.streams.text.readings import read

DOUBTFUL: Final[frozenset[Certainty]] = frozenset({"weak", "speculation"})
"""Certainties of statements that may stand beside what they deny."""
LONGEST_UNSAID: Final = timedelta(days=3653)
"""How far ahead an end may lie, unless somebody named its year."""


class Doubt(NamedTuple):
    """What a check has found: its name, and the words that it is about."""

    check: str
    what: str


@dataclass(frozen=True, slots=True)
class DecisionClaim:
    """What a decision says of a conflict: its action, the known facts with their numbers, a merged text and an end."""

    conflict: NumberedConflict
    action: Verdict
    targets: tuple[tuple[int, Candidate], ...]
    merged: str
    ended_at: datetime | None

    @property
    def fact(self) -> ExtractedFact:
        return self.conflict.fact

    @property
    def known(self) -> tuple[Candidate, ...]:
        return tuple(known for _, known in self.targets)


def settled(claim: DecisionClaim, conflicts: NumberedConflicts) -> DecisionClaim:
    """The claim, or its safe reading where it is in doubt; the second call of a store is its last.

    A MERGE or KEEP in doubt is an EXTEND: both facts stay, as they were said. Of two subjects it is an ADD. Where one
    statement denies just what the other says, the new one takes the place of the known one. An end that nobody can mean
    is left out; an EXPIRE without one is an EXTEND.
    """
    names = conflicts.user_names
    if claim.action in VERDICTS_WITH_END_TIME:
        ended_at = claim.ended_at if _is_possible_end(claim, conflicts.said_at) else None
        action: Verdict = "EXTEND" if claim.action == "EXPIRE" and ended_at is None else claim.action
        return replace(claim, action=action, ended_at=ended_at, merged="")
    claim = replace(claim, ended_at=None, merged=claim.merged if claim.action == "MERGE" else "")
    known = claim.known
    if claim.action in ("ADD", "CONTRADICT") or not known:
        return claim
    if claim.action in ("KEEP", "MERGE") and any(is_of_another(claim.fact, one, names) for one in known):
        return replace(claim, action="ADD", targets=(), merged="")
    denied = tuple((label, one) for label, one in claim.targets if is_denial(claim.fact, one, names))
    if denied and claim.fact.certainty not in DOUBTFUL:
        return replace(claim, action="REPLACE", targets=denied, merged="")
    if claim.action == "KEEP":
        targets = tuple(target for target in claim.targets if not any(_keep_doubts(claim, target[1], names)))
        return replace(claim, action="KEEP" if targets else "EXTEND", targets=targets or claim.targets)
    return replace(claim, action="EXTEND", merged="") if any(doubts(claim, names)) else claim


def doubts(claim: DecisionClaim, names: tuple[str, ...]) -> Iterator[Doubt]:
    """What speaks against a KEEP or a MERGE."""
    if claim.action == "MERGE":
        yield from _merge_doubts(claim, names)
    elif claim.action == "KEEP":
        for known in claim.known:
            yield from _keep_doubts(claim, known, names)


def _merge_doubts(claim: DecisionClaim, names: tuple[str, ...]) -> Iterator[Doubt]:
    parents = [claim.fact.text, *(known.text for known in claim.known)]
    if not claim.merged or any(len(one_line(parent)) > MAX_LINE for parent in parents):
        yield Doubt("text", "is missing, or of facts too long to be merged")
        return
    yield from (Doubt("lost", one) for one in lost_details(parents, claim.merged))
    if claim.merged == claim.fact.text:  # which is taken for saying all that the others say
        yield from (Doubt("lost", word) for known in claim.known for word in lost_words(known.text, claim.merged))
    extras = [claim.fact.excerpt, *_values(claim), *names]
    yield from (Doubt("added", one) for one in added_details(parents, claim.merged, extras))
    if mixed_up(parents, claim.merged):
        yield Doubt("mixed", "mixes words of different facts")
    yield from _common_doubts(parents, claim.merged)
    if not all(same_terms(claim.fact, known) for known in claim.known):
        yield Doubt("terms", "holds until another time")


def _keep_doubts(claim: DecisionClaim, known: Candidate, names: tuple[str, ...]) -> Iterator[Doubt]:
    """What a statement says beyond a known fact."""
    fact = claim.fact
    is_of_subject = _subject_relation(fact, known, names) != "other"
    extras = [known.value or "", known.subject or "", *names, *[fact.subject or ""] * is_of_subject]
    yield from (Doubt("added", one) for one in added_details([known.text], fact.text, extras))
    yield from _common_doubts([known.text], fact.text)
    if value := other_value(known.text, fact.text):
        yield Doubt("other value", value)
    if _has_other_value(fact, known):
        yield Doubt("value", fact.value or "")
    if reordered(known.text, fact.text):
        yield Doubt("order", "has the same words in another order")
    if (ending := read(fact.text).ending) and not read(known.text).ending:
        yield Doubt("ending", ending)
    if not same_terms(fact, known):
        yield Doubt("terms", "holds until another time")


def _common_doubts(parents: list[str], text: str) -> Iterator[Doubt]:
    for parent in parents:
        if contrary(read(parent), read(text)):
            yield Doubt("contrary", "denies what was affirmed, or the other way round")
        if changed_tense(parent, text):
            yield Doubt("tense", "is in another tense")
    yield from (Doubt("moved", one) for one in moved(parents, text))


def _subject_relation(fact: ExtractedFact, known: Candidate, names: tuple[str, ...]) -> SubjectRelation:
    """As `relate_subjects`, but a fact without a subject is the user's: in doubt both facts stay."""
    of_user = {"subject": "the user"}
    return relate_subjects(
        fact if fact.subject else fact.model_copy(update=of_user),
        known if known.subject else known.model_copy(update=of_user),
        names,
    )


def is_of_another(fact: ExtractedFact, known: Candidate, names: tuple[str, ...]) -> bool:
    """Whether two facts are about two subjects, and not both texts name one of these.

    "Anna manages Mira" and "Mira has Anna" are about one. Facts of two entities of one name never are: a name that both
    texts have shows nothing.
    """
    if known.subject_relation == "twin":
        return True
    subjects = [one for one in (fact.subject, known.subject) if one and not is_user_word(one)]
    stems = {stem for subject in subjects for stem in read(subject).stems}
    named = stems & {*read(fact.text).stems} & {*read(known.text).stems}
    return not named and _subject_relation(fact, known, names) == "other"


def _is_possible_end(claim: DecisionClaim, said_at: datetime) -> bool:
    """Whether an end is no earlier than the facts' beginning (a date alone is the whole day), and not too far ahead.

    It lies far ahead only in a year that somebody named.
    """
    if claim.ended_at is None:
        return False
    zone, ended_at = said_at.tzinfo, claim.ended_at
    is_date = time() in (ended_at.time(), ended_at.astimezone(zone).time())
    for known in claim.known:
        began = known.true_from.astimezone(zone)
        if began.date() > ended_at.astimezone(zone).date() if is_date else ended_at < began:
            return False
    texts = [claim.fact.text, claim.fact.excerpt, *(known.text for known in claim.known)]
    is_named = any(str(ended_at.astimezone(zone).year) in read(text).details for text in texts)
    return is_named or ended_at <= max(said_at, claim.conflict.valid_from) + LONGEST_UNSAID


def _has_other_value(fact: ExtractedFact, known: Candidate) -> bool:
    if fact.key is None or fact.key != known.key or not fact.value or not known.value:
        return False
    return not {*read(fact.value).stems} & {*read(known.value).stems} if read(fact.value).stems else False


def _values(claim: DecisionClaim) -> list[str]:
    facts: tuple[ExtractedFact | Candidate, ...] = (claim.fact, *claim.known)
    return [text for fact in facts for text in (fact.value, fact.subject) if text]
