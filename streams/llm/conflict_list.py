"""Numbers the conflicts of one turn and renders them as the lines of a resolution prompt, bounded in length."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import Final
from uuid import UUID

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.llm.ports import KnownAs, NumberedConflict, NumberedConflicts
from mnemolog.streams.llm.reply_parser import one_line, shortened

MAX_CANDIDATES: Final = 8
MAX_CHARACTERS: Final = 48_000
"""Of all facts in one prompt: some 12 000 tokens, which every current model can read."""
_CANDIDATE_LIMITS: Final = (MAX_CANDIDATES, 4, 2, 1)
_MAX_EXCERPT_CHARACTERS: Final = 300  # characters of an excerpt
_MAX_FACT_CHARACTERS: Final = 2_000  # characters of a fact
_MAX_SUBJECT_CHARACTERS: Final = 100  # characters of a subject, or of a name of the user
_MAX_USER_NAMES: Final = 10
_LINE_OVERHEAD: Final = 100  # characters around a fact: its number, times and list


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A conflict without numbers: a fact, since when it holds, and the known facts; as in `NumberedConflict`."""

    fact: ExtractedFact
    valid_from: datetime
    known: tuple[Candidate, ...]
    reconsidered_fact_id: UUID | None = None
    known_as: KnownAs = "unresolved"


def number_conflicts(
    new: Sequence[tuple[ExtractedFact, tuple[Candidate, ...]]],
    *,
    said_at: datetime,
    retries: Sequence[tuple[Candidate, tuple[Candidate, ...]]] = (),
    later_ends: Sequence[tuple[Candidate, Candidate, KnownAs]] = (),
    just_said: frozenset[UUID] = frozenset(),
    user_names: tuple[str, ...] = (),
) -> NumberedConflicts:
    """Number new facts from 1 in their order, then the `retries`, and the known ends with the facts that they may end.

    Known facts are numbered from 1 as they first appear.

    Each has its first candidates, as many as fit; the last conflicts are left out where one each is too much.
    """
    unnumbered = [
        *(_Conflict(fact, fact.event_time or said_at, known) for fact, known in new),
        *(_Conflict(as_extracted_fact(fact), fact.true_from, known, fact.fact_id) for fact, known in retries),
        *(_Conflict(as_extracted_fact(end), end.true_from, (fact,), end.fact_id, why) for end, fact, why in later_ends),
    ]
    labels: dict[UUID, int] = {}
    conflicts = [
        NumberedConflict(
            number=number,
            fact=one.fact,
            valid_from=one.valid_from,
            candidates=tuple((labels.setdefault(known.fact_id, len(labels) + 1), known) for known in one.known),
            reconsidered_fact_id=one.reconsidered_fact_id,
            known_as=one.known_as,
        )
        for number, one in enumerate(_within_budget(unnumbered), start=1)
    ]
    return NumberedConflicts(
        conflicts=tuple(conflicts), said_at=said_at, same_turn_ids=just_said, user_names=user_names
    )


def as_extracted_fact(known: Candidate) -> ExtractedFact:
    """A known fact as if it were said now."""
    return ExtractedFact(
        text=known.text,
        excerpt=known.excerpt or known.text,
        search_text=known.text,
        key=known.key,
        value=known.value,
        category=known.category,
        subject=known.subject,
        event_time=known.true_from,
        valid_until=known.valid_until,
        single_valued=known.single_valued,
        action_hint=known.action_hint,
    )


def _within_budget(unnumbered: Sequence[_Conflict]) -> Sequence[_Conflict]:
    """As many candidates for each as let all of them fit; where none do, as many conflicts as fit with one each."""
    for most in _CANDIDATE_LIMITS:
        bounded = [replace(one, known=one.known[:most]) for one in unnumbered]
        if _characters(bounded) <= MAX_CHARACTERS:
            return bounded
    while _characters(bounded) > MAX_CHARACTERS:
        bounded.pop()
    return bounded


def _characters(unnumbered: Sequence[_Conflict]) -> int:
    """What the facts take in the prompt at the most; a known fact is shown once."""
    facts = [one.fact for one in unnumbered]
    new = sum(_fact_characters(fact) + min(len(fact.excerpt), _MAX_EXCERPT_CHARACTERS) for fact in facts)
    shown = {known.fact_id: _fact_characters(known) for one in unnumbered for known in one.known}
    return new + sum(shown.values()) + _LINE_OVERHEAD * (len(unnumbered) + len(shown))


def _fact_characters(fact: ExtractedFact | Candidate) -> int:
    return min(len(fact.text), _MAX_FACT_CHARACTERS) + min(len(fact.subject or ""), _MAX_SUBJECT_CHARACTERS)


def conflicts_text(subject: NumberedConflicts) -> str:
    """The facts as lines; white space is collapsed, so that no text can forge another line.

    All times are in the zone of the turn, whatever the zones of the facts are.
    """
    known = {label: candidate for conflict in subject.conflicts for label, candidate in conflict.candidates}
    labels = {candidate.fact_id: label for label, candidate in known.items()}
    names = ", ".join(one_line(name)[:_MAX_SUBJECT_CHARACTERS] for name in subject.user_names[:_MAX_USER_NAMES])
    at = subject.said_at
    lines = [f"All times are {_zone(at)}; the new facts were said at {at:%Y-%m-%d %H:%M}."]
    lines += [*([f"The user is: {names}"] if names else []), "Known facts:"]
    lines += [_known_line(label, candidate, subject) for label, candidate in sorted(known.items())]
    lines.append("New facts:")
    for conflict in subject.conflicts:
        lines += _conflict_lines(conflict, labels, at)
    return "\n".join(lines)


def _known_line(label: int, known: Candidate, subject: NumberedConflicts) -> str:
    at = subject.said_at
    notes = [*_about(known), f"since {_day(known.true_from, at)}"]
    if ends := [end for end in (known.true_to, known.valid_until) if end is not None]:
        end = min(ends)
        has_ended = known.status == "ended" or end <= at
        notes.append(f"{'ended' if has_ended else 'until'} {_day(end, at)}")
    notes += ["pending"] * (known.status == "pending_confirmation")
    notes += ["unresolved"] * known.unresolved
    notes += ["said just now"] * (known.fact_id in subject.same_turn_ids)
    return f"K{label} ({', '.join(notes)}): {shortened(one_line(known.text), _MAX_FACT_CHARACTERS)}"


def _conflict_lines(conflict: NumberedConflict, labels: dict[UUID, int], at: datetime) -> list[str]:
    fact = conflict.fact
    notes = [*_about(fact), f"since {_day(conflict.valid_from, at)}"]
    notes += [f"until {_day(end, at)}" for end in (fact.valid_until,) if end]
    if conflict.reconsidered_fact_id is not None:
        shown = labels.get(conflict.reconsidered_fact_id)
        notes.append(f"is K{shown}, {conflict.known_as}" if shown else f"known, {conflict.known_as}")
    return [
        f"N{conflict.number} ({', '.join(notes)}): {shortened(one_line(fact.text), _MAX_FACT_CHARACTERS)}",
        f"  said: {shortened(one_line(fact.excerpt), _MAX_EXCERPT_CHARACTERS)}",
        f"  may concern: {label_list(label for label, _ in conflict.candidates)}",
    ]


def _about(fact: ExtractedFact | Candidate) -> list[str]:
    return [f"about {one_line(fact.subject)[:_MAX_SUBJECT_CHARACTERS]}"] if fact.subject else []


def label_list(labels: Iterable[int]) -> str:
    return ", ".join(f"K{label}" for label in labels)


def _day(moment: datetime, at: datetime) -> str:
    """A date, and the time of day where it is not midnight: two facts of one day have an order."""
    there = moment.astimezone(at.tzinfo)
    return f"{there:%Y-%m-%d}" if there.time() == time.min else f"{there:%Y-%m-%d %H:%M}"


def _zone(at: datetime) -> str:
    offset = at.strftime("%z") if at.utcoffset() else ""
    return f"UTC{offset and f'{offset[:3]}:{offset[3:5]}'}"
