"""`python -m tests.quality.search_floor`: measure from which cosine on a fact is worth showing for a question.

Prints, as Markdown, how near questions are to the facts that answer them and to others, and what each floor would lose
and let through. With `--dialogues DIR` the questions of the LoCoMo dialogues are measured too, as a check: no floor was
chosen on them.
"""

import argparse
import asyncio
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from mnemolog.streams.llm.factory import build_embedder
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.settings import StreamsSettings
from tests.bench.markdown import table

QUESTIONS: Final = Path(__file__).with_name("search_questions.toml")
FLOORS: Final = (0.05, 0.10, 0.15, 0.17, 0.20, 0.25, 0.30)
QUANTILES: Final = (0, 0.02, 0.05, 0.5, 0.95, 1)
LOST: Final = 0.02
"""The part of the answers that a floor may lose."""
EMBEDDED_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question, the fact that answers it, and the same in the speaker's own words."""

    language: str
    topic: str
    question: str
    fact: str
    said: str


@dataclass(frozen=True, slots=True)
class Distances:
    """Cosines of questions and facts: `answers` of those that belong together, `others` of questions about others.

    `strange` are those of questions that none of the facts answers.
    """

    answers: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    strange: list[float] = field(default_factory=list)


def load_questions() -> tuple[list[AnsweredQuestion], list[tuple[str, str]]]:
    """The answered questions, and those that nothing answers with their languages."""
    stored = tomllib.loads(QUESTIONS.read_text())
    strange = [(group["language"], question) for group in stored["unanswered"] for question in group["questions"]]
    return [AnsweredQuestion(**one) for one in stored["answered"]], strange


async def measure_pairs(embedder: Embedder) -> dict[str, Distances]:
    """By what is embedded and its language. A question is held against facts of its own language."""
    answered, strange = load_questions()
    questions = await _embedded(embedder, [one.question for one in answered])
    strange_rows = await _embedded(embedder, [question for _, question in strange])
    measured: dict[str, Distances] = {}
    for form in ("sentence", "own words"):
        facts = await _embedded(embedder, [one.fact if form == "sentence" else one.said for one in answered])
        near, far = questions @ facts.T, strange_rows @ facts.T
        for place, one in enumerate(answered):
            found = measured.setdefault(f"{form}, {one.language}", Distances())
            found.answers.append(near[place, place])
            for at, other in enumerate(answered):
                if other.language == one.language and other.topic != one.topic:
                    found.others.append(near[place, at])
            found.strange.extend(far[at, place] for at, (language, _) in enumerate(strange) if language == one.language)
    return measured


async def measure_dialogues(embedder: Embedder, folder: Path) -> Distances:
    """The questions of recorded dialogues against the facts of the same one that rest on the same messages."""
    lines = {
        name: [orjson.loads(line) for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]
        for name in ("questions", "observations")
    }
    asked = [one for one in lines["questions"] if one["evidence"] and one["category"] in (1, 2, 3, 4)]
    known = lines["observations"]
    questions = await _embedded(embedder, [one["question"] for one in asked])
    facts = await _embedded(embedder, [one["fact"] for one in known])
    found = Distances()
    for place, question in enumerate(asked):
        near = questions[place] @ facts.T
        for at, fact in enumerate(known):
            if set(fact["evidence"]) & set(question["evidence"]):
                found.answers.append(near[at])
            elif fact["conversation"] == question["conversation"]:
                found.others.append(near[at])
            elif at % 50 == place % 50:
                found.strange.append(near[at])
    return found


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    vectors = [
        vector.values
        for start in range(0, len(texts), EMBEDDED_AT_ONCE)
        for vector in (await embedder.embed(texts[start : start + EMBEDDED_AT_ONCE])).vectors
    ]
    return np.array(vectors, np.float32)


def highest_floor(measured: Mapping[str, Distances]) -> float:
    """The highest floor, in hundredths, that loses at most 2 % of the answers."""
    answers = [value for found in measured.values() for value in found.answers]
    return max(floor / 100 for floor in range(100) if _below(answers, floor / 100) <= LOST)


def tables(measured: Mapping[str, Distances]) -> str:
    """The distributions, and what each floor does."""
    rows = []
    for name, found in measured.items():
        for pair, values in (("answer", found.answers), ("other", found.others), ("unanswered", found.strange)):
            ordered = sorted(values)
            at = (ordered[round(share * (len(ordered) - 1))] for share in QUANTILES)
            rows.append((name, pair, str(len(ordered)), *(f"{value:.3f}" for value in at)))
    quantiles = ("min" if not q else "max" if q == 1 else f"{q:.0%}" for q in QUANTILES)
    distributions = table(("embedded, language", "pair", "number", *quantiles), rows)

    answers, others, strange = (
        [value for found in measured.values() for value in getattr(found, name)]
        for name in ("answers", "others", "strange")
    )
    rows = [
        (
            f"{floor:.2f}",
            *(
                f"{100 * share:.1f} %"
                for share in (_below(answers, floor), 1 - _below(others, floor), 1 - _below(strange, floor))
            ),
        )
        for floor in FLOORS
    ]
    head = ("floor", "answers lost", "other facts let through", "let through for questions that nothing answers")
    return f"{distributions}\n\n{table(head, rows)}"


def _below(values: Sequence[float], floor: float) -> float:
    return sum(value < floor for value in values) / len(values)


async def report(settings: StreamsSettings, dialogues: Path | None) -> str:
    embedder = build_embedder(settings)
    try:
        measured = await measure_pairs(embedder)
        parts = [
            f"{embedder.model}: at most 2 % of the answers are lost below {highest_floor(measured):.2f}",
            tables(measured),
        ]
        if dialogues:
            parts.append(tables({"LoCoMo": await measure_dialogues(embedder, dialogues)}))
    finally:
        await embedder.close()
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.search_floor", description=__doc__)
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline")
    parser.add_argument("--dialogues", type=Path, metavar="DIR", help="the folder of the LoCoMo dialogues")
    given = parser.parse_args()
    settings = StreamsSettings(embedding_provider=given.provider)
    sys.stdout.write(asyncio.run(report(settings, given.dialogues)) + "\n")


if __name__ == "__main__":
    main()
