"""What a decision of a model asserts beyond the new fact and the known facts that it names, as complaints."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import chain
from typing import Final

from mnemolog.schemas.events import VERDICTS_WITH_END_TIME
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ask import MAX_LINE, one_line
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.text.assertions import (
    DOUBTFUL,
    added_details,
    added_words,
    is_denial,
    lost_details,
    lost_negation,
    mispaired,
    other_matter,
    other_value,
    turned_negations,
)
from mnemolog.streams.text.differences import SubjectRelation, is_user_word, relate_subjects, same_terms
from mnemolog.streams.text.readings import read

LONGEST_UNSAID: Final = timedelta(days=3653)
"""How far ahead an end may lie, unless somebody named its year."""


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


def settled(claim: DecisionClaim, names: tuple[str, ...]) -> DecisionClaim:
    """The claim, as an EXTEND where its merged text is in doubt: both facts stay, as they were said."""
    is_doubtful = claim.action == "MERGE" and any(_merge_faults(claim, names))
    return replace(claim, action="EXTEND", merged="") if is_doubtful else claim


def claim_faults(claim: DecisionClaim, conflicts: NumberedConflicts) -> Iterator[str]:
    """What is wrong with a decision on facts that it may name, each as a sentence that says what to do instead."""
    names = conflicts.user_names
    found = [*_end_faults(claim, conflicts.said_at)]
    match claim.action:
        case _ if not claim.targets:
            pass
        case "MERGE":
            found += [*_denial_faults(claim, names), *_term_faults(claim), *_subject_faults(claim, names)]
        case "KEEP":
            faults = [[*_keep_faults(claim, *target, names)] for target in claim.targets]
            found += chain(*faults) if all(faults) else ()
        case "EXTEND" | "SIMILAR" if claim.fact.certainty not in DOUBTFUL:
            found += _denial_faults(claim, names)
    yield from (f"N{claim.conflict.number}: {fault}" for fault in found)


def repeated(claim: DecisionClaim, names: tuple[str, ...]) -> tuple[int, ...]:
    """The numbers of the known facts that each alone say all that the new fact says: what a KEEP is about."""
    return tuple(label for label, known in claim.targets if not any(_keep_faults(claim, label, known, names)))


def _merge_faults(claim: DecisionClaim, names: tuple[str, ...]) -> Iterator[str]:
    if not claim.merged:
        yield "MERGE needs the merged sentence as text"
        return
    parents = [claim.fact.text, *(known.text for known in claim.known)]
    if any(len(one_line(parent)) > MAX_LINE for parent in parents):
        yield "a text ends in … because it is too long to be merged: choose EXTEND or SIMILAR"
        return
    ignored, extras = _subject_stems(claim, names), [claim.fact.excerpt, *_values(claim), *names]
    gone = [*lost_details(parents, claim.merged), *["its negation"] * lost_negation(parents, claim.merged)]
    if gone:
        lost = ", ".join(dict.fromkeys(gone))
        yield f"the merged text loses {lost}: keep what each fact says, or do not merge"
    added = [*added_details(parents, claim.merged, extras), *added_words([*parents, *extras], claim.merged)]
    if added:
        yield f"the merged text adds {', '.join(dict.fromkeys(added))}, which no fact says: leave it out"
    if turned := [*turned_negations(parents, claim.merged, ignored)]:
        yield f"the merged text turns a negation ({'; '.join(turned)}): keep it as it was said, or do not merge"
    if moved := [*mispaired(parents, claim.merged, ignored)]:
        yield f"the merged text changes {', '.join(moved)}: keep each with what it belongs to, or do not merge"


def _keep_faults(claim: DecisionClaim, label: int, known: Candidate, names: tuple[str, ...]) -> Iterator[str]:
    one = replace(claim, targets=((label, known),))
    if news := [*_news(one, known, names)]:
        yield (
            f"KEEP drops what K{label} does not say ({'; '.join(dict.fromkeys(news))}): "
            "choose EXTEND, MERGE or SIMILAR if both are true, REPLACE or CONTRADICT if not"
        )
    yield from _term_faults(one)
    yield from _subject_faults(one, names)


def _news(claim: DecisionClaim, known: Candidate, names: tuple[str, ...]) -> Iterator[str]:
    """What the statement says beyond its one known fact."""
    fact, ignored = claim.fact, _subject_stems(claim, names)
    is_of_subject = _subject_relation(fact, known, names) != "other"
    extras = [known.value or "", known.subject or "", *names, *[fact.subject or ""] * is_of_subject]
    yield from added_details([known.text], fact.text, extras)
    yield from turned_negations([known.text], fact.text, ignored)
    yield from mispaired([known.text], fact.text, ignored)
    yield from other_matter(known.text, fact.text, ignored)
    if value := other_value(known.text, fact.text):
        yield f'"{value}"'
    if _has_other_value(fact, known):
        yield f'the value "{fact.value}"'


def _denial_faults(claim: DecisionClaim, names: tuple[str, ...]) -> Iterator[str]:
    for label, known in claim.targets:
        if is_denial(claim.fact, known, names):
            yield (
                f"one of it and K{label} denies what the other says, so {claim.action} is wrong: choose REPLACE, "
                "CONTRADICT or RETRACT, or ADD if both are true"
            )


def _term_faults(claim: DecisionClaim) -> Iterator[str]:
    """A statement and a known fact of different ends are not one fact; an end announced later is not the fact's own."""
    for label, known in claim.targets:
        if not same_terms(claim.fact, known):
            yield (
                f"it and K{label} hold until different times: choose REPLACE if the new end counts, "
                "SIMILAR if both stand"
            )


def _subject_relation(fact: ExtractedFact, known: Candidate, names: tuple[str, ...]) -> SubjectRelation:
    """As `relate_subjects`, but a fact without a subject is the user's: in doubt both facts stay."""
    of_user = {"subject": "the user"}
    return relate_subjects(
        fact if fact.subject else fact.model_copy(update=of_user),
        known if known.subject else known.model_copy(update=of_user),
        names,
    )


def _subject_faults(claim: DecisionClaim, names: tuple[str, ...]) -> Iterator[str]:
    for label, known in claim.targets:
        if known.subject_relation == "twin":
            yield f"it and K{label} may be about two of one name: choose ADD or SIMILAR"
        elif is_of_another(claim.fact, known, names):
            yield f"it and K{label} are about different people or things: choose ADD or SIMILAR"


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


def _end_faults(claim: DecisionClaim, said_at: datetime) -> Iterator[str]:
    """An end is no earlier than the fact's beginning (a date alone is the whole day).

    It lies far ahead only in a year that somebody named.
    """
    if claim.action == "EXPIRE" and claim.ended_at is None:
        yield "EXPIRE needs ended_at, the time of the end: give it, or choose RETRACT"
    if claim.action not in VERDICTS_WITH_END_TIME or claim.ended_at is None:
        return
    zone, ended_at = said_at.tzinfo, claim.ended_at
    is_date = time() in (ended_at.time(), ended_at.astimezone(zone).time())
    for label, known in claim.targets:
        began = known.true_from.astimezone(zone)
        if began.date() > ended_at.astimezone(zone).date() if is_date else ended_at < began:
            yield f"ended_at lies before K{label} began: a fact ends after its beginning"
    texts = [claim.fact.text, claim.fact.excerpt, *(known.text for known in claim.known)]
    is_named = any(str(claim.ended_at.astimezone(zone).year) in read(text).details for text in texts)
    if not is_named and claim.ended_at > max(said_at, claim.conflict.valid_from) + LONGEST_UNSAID:
        yield f"ended_at {claim.ended_at:%Y-%m-%d} is more than ten years ahead, and nobody said so: give the end told"


def _has_other_value(fact: ExtractedFact, known: Candidate) -> bool:
    if fact.key is None or fact.key != known.key or not fact.value or not known.value:
        return False
    return not {*read(fact.value).stems} & {*read(known.value).stems} if read(fact.value).stems else False


def _values(claim: DecisionClaim) -> list[str]:
    facts: tuple[ExtractedFact | Candidate, ...] = (claim.fact, *claim.known)
    return [text for fact in facts for text in (fact.value, fact.subject) if text]


def _subject_stems(claim: DecisionClaim, names: tuple[str, ...]) -> frozenset[str]:
    subjects = [claim.fact.subject or "", *(known.subject or "" for known in claim.known)]
    return frozenset(stem for name in (*subjects, *names) for stem in read(name).stems)
