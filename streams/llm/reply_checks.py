"""What a decision of a model asserts beyond the new fact and the known facts that it names, as complaints."""

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from mnemolog.schemas.events import VERDICTS_WITH_END_TIME
from mnemolog.schemas.facts import Candidate, Certainty, ExtractedFact
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.entities.names import ties_told
from mnemolog.streams.llm.ask import MAX_LINE, Line, OptionalLine, ReplyModel, ReplyTime, WholeNumber, one_line
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
    unsaid_terms,
)
from mnemolog.streams.text.differences import USER, SubjectRelation, is_user_word, relate_names, same_terms
from mnemolog.streams.text.readings import read

DOUBTFUL: Final[frozenset[Certainty]] = frozenset({"weak", "speculation"})
"""Certainties of statements that may stand beside what they deny."""
_NO_TIE: Final[frozenset[str]] = frozenset()
LONGEST_UNSAID: Final = timedelta(days=3653)
"""How far ahead an end may lie, unless somebody named its year."""


class ParsedDecision(ReplyModel):
    """The decision on new fact `number`; `targets` are numbers of its own known facts.

    For a KEEP each target alone says all of the new fact. A MERGE has a `text`; a REPLACE, RETRACT or EXPIRE may have
    `ended_at`.
    """

    number: WholeNumber
    verdict: Annotated[
        Verdict, BeforeValidator(lambda value: value.strip().upper() if isinstance(value, str) else value)
    ]
    targets: tuple[WholeNumber, ...] = ()
    text: OptionalLine = None
    reason: Annotated[Line, AfterValidator(str.strip)] = ""
    ended_at: ReplyTime = None

    def but(self, verdict: Verdict, **fields: Any) -> "ParsedDecision":
        """The decision with another verdict, and without its text and end."""
        return self.model_copy(update={"verdict": verdict, "text": None, "ended_at": None, **fields})


def targets_of(decision: ParsedDecision, conflict: NumberedConflict) -> list[tuple[int, Candidate]]:
    """The known facts that a decision names, with their numbers; what the conflict does not show is none."""
    return [(label, known) for label, known in conflict.candidates if label in decision.targets]


def settled(decision: ParsedDecision, conflict: NumberedConflict, conflicts: NumberedConflicts) -> ParsedDecision:
    """The decision, or its safe reading where it is in doubt; the second call of a store is its last.

    A MERGE or KEEP in doubt is an EXTEND: both facts stay, as they were said. Of two subjects it is an ADD, and so is
    what names no known fact of its own. Where one statement denies just what the other says, the new one takes the
    place of the known one. An end that nobody can mean is left out; an EXPIRE without one is an EXTEND.
    """
    fact, names, verdict = conflict.fact, conflicts.user_names, decision.verdict
    named = targets_of(decision, conflict)
    text, ended_at = None, None
    if verdict in VERDICTS_WITH_END_TIME:
        ended_at = decision.ended_at if _is_possible_end(decision, conflict, conflicts.said_at) else None
        verdict = "EXTEND" if verdict == "EXPIRE" and ended_at is None else verdict
    elif verdict in ("KEEP", "MERGE") and any(is_of_another(fact, known, names) for _, known in named):
        verdict = "ADD"
    elif (
        verdict not in ("ADD", "CONTRADICT")
        and fact.certainty not in DOUBTFUL
        and (denied := [target for target in named if is_denial(fact, target[1], names)])
    ):
        verdict, named = "REPLACE", denied
    elif verdict == "KEEP":
        told = [target for target in named if not any(_keep_doubts(fact, target[1], names))]
        verdict, named = ("KEEP", told) if told else ("EXTEND", named)
    elif verdict == "MERGE":
        text = None if any(doubts(decision, conflict, names)) else (decision.text or "").strip()
        verdict = "MERGE" if text else "EXTEND"
    if verdict == "ADD" or not named:
        return decision.but("ADD", targets=())
    return decision.but(verdict, targets=tuple(label for label, _ in named), text=text, ended_at=ended_at)


def doubts(decision: ParsedDecision, conflict: NumberedConflict, names: tuple[str, ...]) -> Iterator[str]:
    known = [known for _, known in targets_of(decision, conflict)]
    if decision.verdict == "MERGE":
        yield from _merge_doubts(conflict.fact, known, (decision.text or "").strip(), names)
    elif decision.verdict == "KEEP":
        for one in known:
            yield from _keep_doubts(conflict.fact, one, names)


def _merge_doubts(
    fact: ExtractedFact, known: Sequence[Candidate], merged: str, names: tuple[str, ...]
) -> Iterator[str]:
    parents = [fact.text, *(one.text for one in known)]
    if not merged or any(len(one_line(parent)) > MAX_LINE for parent in parents):
        yield "text"
        return
    yield from ("lost" for _ in lost_details(parents, merged))
    if merged == fact.text:  # which is taken for saying all that the others say
        yield from ("lost" for one in known for _ in lost_words(one.text, merged))
    facts: tuple[ExtractedFact | Candidate, ...] = (fact, *known)
    values = [text for one in facts for text in (one.value, one.subject) if text]
    yield from ("added" for _ in added_details(parents, merged, [fact.excerpt, *values, *names]))
    if mixed_up(parents, merged):
        yield "mixed"
    yield from _common_doubts(parents, merged)
    if not all(same_terms(fact, one) for one in known):
        yield "terms"


def _keep_doubts(fact: ExtractedFact, known: Candidate, names: tuple[str, ...]) -> Iterator[str]:
    is_of_subject = _subject_relation(fact, known, names) != "other"
    extras = [known.value or "", known.subject or "", *names, *[fact.subject or ""] * is_of_subject]
    yield from ("added" for _ in added_details([known.text], fact.text, extras))
    yield from _common_doubts([known.text], fact.text)
    if (
        other_value(known.text, fact.text)
        or len({frozenset(ties_told(one.text)) for one in (fact, known)} - {_NO_TIE}) > 1
    ):
        yield "other value"
    if fact.key is not None and fact.key == known.key and fact.value and known.value:
        stems = {*read(fact.value).stems}
        if stems and stems.isdisjoint(read(known.value).stems):
            yield "value"
    yield from ("lost" for _ in unsaid_terms(known.text, fact.text))
    if reordered(known.text, fact.text):
        yield "order"
    if read(fact.text).ending and not read(known.text).ending:
        yield "ending"
    if not same_terms(fact, known):
        yield "terms"


def _common_doubts(parents: list[str], text: str) -> Iterator[str]:
    for parent in parents:
        if contrary(read(parent), read(text)):
            yield "contrary"
        if changed_tense(parent, text):
            yield "tense"
    yield from ("moved" for _ in moved(map(read, parents), read(text)))


def _subject_relation(fact: ExtractedFact, known: Candidate, names: tuple[str, ...]) -> SubjectRelation:
    """As `relate_subjects`, but a fact without a subject is the user's: in doubt both facts stay."""
    return relate_names(fact.subject or USER, known.subject or USER, known.subject_relation, names)


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


def _is_possible_end(decision: ParsedDecision, conflict: NumberedConflict, said_at: datetime) -> bool:
    """Whether an end is no earlier than the facts' beginning (a date alone is the whole day), and not too far ahead.

    It lies far ahead only in a year that somebody named.
    """
    if decision.ended_at is None:
        return False
    zone, ended_at = said_at.tzinfo, decision.ended_at
    is_date = time() in (ended_at.time(), ended_at.astimezone(zone).time())
    known = [one for _, one in targets_of(decision, conflict)]
    for one in known:
        began = one.true_from.astimezone(zone)
        if began.date() > ended_at.astimezone(zone).date() if is_date else ended_at < began:
            return False
    texts = [conflict.fact.text, conflict.fact.excerpt, *(one.text for one in known)]
    is_named = any(str(ended_at.astimezone(zone).year) in read(text).details for text in texts)
    return is_named or ended_at <= max(said_at, conflict.valid_from) + LONGEST_UNSAID
