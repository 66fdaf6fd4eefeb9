"""The question about the conflicts of several turns, and the part of each turn in the reply to it.

Numbers go on from turn to turn, so that a decision that stands under another turn is seen. A part has the numbers of
the question that its turn asks alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mnemolog.projections.context.tokens import estimate_tokens
from mnemolog.streams.llm.conflict_list import conflicts_text
from mnemolog.streams.llm.ports import ChatMessage, NumberedConflicts, Reply, SharedPrompt
from mnemolog.streams.llm.resolve_prompt import SHARED_PROMPT_VERSION, TURNS_SCHEMA, system_text
from mnemolog.streams.shared_calls.divided_reply import Part, parts_of, replies_of

_OPENING: Final = """\
You keep a long-term memory consistent. Below are several turns, each under its number: its known facts (K) and its \
new facts (N). Each new fact names the known facts of its own turn that it may concern. Judge each turn by itself, as \
if there were no other. Answer with one JSON object {"turns": [{"turn": 1, "decisions": [...]}, ...]}: each turn \
once, by its number and in order, with exactly one decision for each of its new facts.
"""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers that one turn has in the shared question: what is added to its own, and how many it has."""

    new_before: int
    new: int
    known_before: int
    known: int


def conflicts_prompt(tasks: Sequence[NumberedConflicts]) -> SharedPrompt:
    """Ask about the conflicts of several turns of one scope."""
    lines = []
    for number, (task, numbers) in enumerate(zip(tasks, _numbers(tasks), strict=True), 1):
        lines += [f"turn {number}", conflicts_text(_renumbered(task, numbers))]
    return SharedPrompt(
        purpose="resolve",
        version=SHARED_PROMPT_VERSION,
        messages=(
            ChatMessage(role="system", content=system_text(_OPENING)),
            ChatMessage(role="user", content="\n".join(lines)),
        ),
        schema=TURNS_SCHEMA,
        tasks=tuple(tasks),
    )


def question_tokens(task: NumberedConflicts) -> int:
    """The estimated tokens of what a prompt shows of the conflicts of a turn."""
    return estimate_tokens(conflicts_text(task))


def divide_decisions(reply: Reply, tasks: Sequence[NumberedConflicts]) -> list[Reply | None]:
    """The part of each turn as the reply that it would get alone; None where the reply has none for it.

    A part with a number of another turn is none.
    """
    parts = parts_of(reply, len(tasks), holds="decisions")
    own = [
        None if part is None else _with_own_numbers(part, numbers)
        for part, numbers in zip(parts, _numbers(tasks), strict=True)
    ]
    return replies_of(reply, own, list(map(question_tokens, tasks)))


def _numbers(tasks: Sequence[NumberedConflicts]) -> Iterator[_Numbers]:
    new_before = known_before = 0
    for task in tasks:
        known = len({label for conflict in task.conflicts for label, _ in conflict.candidates})
        yield _Numbers(new_before, len(task.conflicts), known_before, known)
        new_before += len(task.conflicts)
        known_before += known


def _renumbered(task: NumberedConflicts, numbers: _Numbers) -> NumberedConflicts:
    conflicts = (
        replace(
            conflict,
            number=conflict.number + numbers.new_before,
            candidates=tuple((label + numbers.known_before, known) for label, known in conflict.candidates),
        )
        for conflict in task.conflicts
    )
    return replace(task, conflicts=tuple(conflicts))


def _with_own_numbers(part: Part, numbers: _Numbers) -> Part | None:
    """A part with the numbers of its turn alone; None where it names another turn's. What is no number stays."""
    try:
        return {**part, "decisions": [_with_own(decision, numbers) for decision in part["decisions"]]}
    except LookupError:
        return None


def _with_own(decision: Any, numbers: _Numbers) -> Any:
    if not isinstance(decision, dict):
        return decision
    named = decision.get("known")
    known = [_own(label, numbers.known_before, numbers.known) for label in named] if isinstance(named, list) else named
    return {**decision, "new": _own(decision.get("new"), numbers.new_before, numbers.new), "known": known}


def _own(number: Any, before: int, count: int) -> Any:
    """A number of the shared question as the turn's own. Raises LookupError for another turn's."""
    if type(number) is not int:  # a bool is an int, too
        return number
    if not 1 <= number - before <= count:
        raise LookupError(f"{number} is another turn's")
    return number - before
