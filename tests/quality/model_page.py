"""docs/model.md: what a real model makes of labelled cases and of a conversation, from the results of the commands."""

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Final

from mnemolog.schemas.base import Record
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION
from tests.bench.markdown import filled, table
from tests.quality import cases as conflicts
from tests.quality import report as conflict_report
from tests.quality.first_hits import Found, SearchScore, judge
from tests.quality.known_slots import slot_table
from tests.quality.model_sources import CHAT, ReplyNotRecordedError
from tests.quality.recordings import FOLDER, Outcome, read_outcomes
from tests.quality.rival import read_found
from tests.quality.runs import Cost, Share, load_scores
from tests.quality.scores import Rates, Score, ScoredCase, compute_rates
from tests.quality.understanding import cases as dialogues
from tests.quality.understanding import report as dialogue_report
from tests.quality.understanding.scores import CaseScore
from tests.support.paths import ROOT

RESULTS: Final = Path(__file__).with_name("results")
TRANSCRIPT: Final = RESULTS / "transcript.json"
WORD: Final = RESULTS / "transcript.md"
"""What was wrong in the transcript, by hand."""
BARE: Final = FOLDER / "without_schema.jsonl"
RIVAL_LOCK: Final = ROOT / "tests" / "bench" / "rival" / "requirements.lock"
TEMPLATE: Final = Path(__file__).with_name("model.md.in")
PAGE: Final = ROOT / "docs" / "model.md"
COLUMNS: Final = ("right", "unmet", "wrong_overwrites", "lost_updates", "unfounded", "duplicates")
FIRST_PROMPT: Final = ("the first prompt", "13", "38.5 % (5/13)", "50.0 % (6/12)", "3.2", "4274", "529")
"""Of the English moves of the development split; what a model replied to it was not kept."""
HEAD: Final = ("cases of", "number", *(name.replace("_", " ") for name in COLUMNS), "calls", "tokens in", "out")


class Change(Record):
    """What one event of a turn did; `of` are the texts of the known facts that it is about."""

    event: str
    text: str
    of: tuple[str, ...]


class TranscriptTurn(Record):
    """A turn of the conversation, what became of it, and what that took."""

    speaker: str
    said: str
    status: str
    error: str | None
    changes: tuple[Change, ...]
    seconds: float
    calls: int
    input_tokens: int
    output_tokens: int

    def shown(self) -> str:
        """Lines for a terminal and for the page."""
        cost = f"{self.seconds:.0f} s, {self.calls} calls, {self.input_tokens} + {self.output_tokens} tokens"
        ends = []
        for one in self.changes:
            of = f"  [{'; '.join(one.of)}]" if one.of else ""
            ends.append(f"  {one.event.removeprefix('fact_').replace('_', ' ')}: {one.text}{of}")
        return "\n".join([f"{self.speaker}: {self.said}  ({cost})", *(ends or [f"  {self.error or self.status}"])])


class Transcript(Record):
    """The conversation of the demonstration with a model, as `make model` saw it."""

    at: datetime
    machine: str
    model: str
    seconds: int
    turns: tuple[TranscriptTurn, ...]

    def save(self) -> None:
        TRANSCRIPT.write_text(self.model_dump_json(indent=1) + "\n")


def write_page() -> None:
    PAGE.write_text(model_page())


def model_page() -> str:
    """The whole page, from the files of results."""
    recorded = {split: read_outcomes(FOLDER / split) for split in conflicts.SPLITS}
    every = [one for some in recorded.values() for one in some.values()]
    talk = Transcript.model_validate_json(TRANSCRIPT.read_bytes())
    mem0 = {one.id: one for one in read_found()}
    fields = {
        "model": talk.model,
        "machine": talk.machine,
        "conflicts": conflict_table(recorded),
        "extractions": extraction_table(),
        "slots": slot_table(),
        "bare_refusals": bare_refusals(),
        "families": family_table(recorded),
        "first_prompt": first_prompt_table(recorded["dev"]),
        "dialogues": dialogue_table(every),
        "search": search_table(every, mem0),
        "mem0_cases": len(mem0),
        "mem0_version": rival_version(),
        "transcript": "\n\n".join(narrowed(one.shown()) for one in talk.turns),
        "talk": talk_line(talk),
        "word": WORD.read_text().strip(),
    }
    return filled(TEMPLATE, fields)


def narrowed(shown: str) -> str:
    """Lines of code of at most 100 characters."""
    return "\n".join(textwrap.fill(line, 100, subsequent_indent="    ") for line in shown.splitlines())


def _scored(outcomes: Iterable[Outcome]) -> list[ScoredCase]:
    cases = {case.id: case for case in conflicts.load()}
    return [
        ScoredCase(case=cases[one.id], score=Score.model_validate({"id": one.id, **one.score}))
        for one in outcomes
        if one.kind == "conflict"
    ]


def _with_question(outcomes: Mapping[str, Outcome]) -> list[Outcome]:
    """The conflicts of which each family has equally many."""
    return [one for one in outcomes.values() if one.kind == "conflict" and one.found]


def _offline(ids: Iterable[str]) -> list[ScoredCase]:
    cases = {case.id: case for case in conflicts.load()}
    baseline = load_scores(Score, conflict_report.BASELINE)
    return [ScoredCase(case=cases[one], score=baseline[one]) for one in ids]


def _row(name: str, scored: Sequence[ScoredCase], outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    rates: Rates = compute_rates(scored)
    return (name, str(len(scored)), *(str(getattr(rates, one)) for one in COLUMNS), *_costs(outcomes))


def _costs(outcomes: Sequence[Outcome]) -> tuple[str, str, str]:
    """Calls and tokens a turn; none of no outcome, as of the offline rules."""
    turns = sum(one.turns for one in outcomes) or 1
    calls = sum(one.calls for one in outcomes) / turns
    prompts = sum(one.input_tokens for one in outcomes) / turns
    replies = sum(one.output_tokens for one in outcomes) / turns
    return f"{calls:.2f}", f"{prompts:.0f}", f"{replies:.0f}"


def conflict_table(recorded: Mapping[conflicts.Split, Mapping[str, Outcome]]) -> str:
    """By split: the model, and the offline rules on the same cases."""
    rows = []
    for split, outcomes in recorded.items():
        own = _with_question(outcomes)
        rows.append(_row(f"{split}: the model", _scored(own), own))
        rows.append(_row(f"{split}: offline rules", _offline(one.id for one in own), []))
    return table(HEAD, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionTokens:
    """Of the recorded extractions of a split, most of which show known names and slots: by the usage in the replies.

    `fact` are the tokens of a reply for each fact, `framed` with what stands around the facts; `prompt` are those of
    the longest prompt. A fact's tokens are its share of the characters of the replies.
    """

    replies: int
    facts: int
    fact: float
    framed: float
    prompt: int

    @classmethod
    def of(cls, split: conflicts.Split) -> "ExtractionTokens":
        recorded = [json.loads(line) for line in (FOLDER / split / CHAT).read_bytes().splitlines()]
        asked = [one for one in recorded if one["prompt"] == PROMPT_VERSION]
        said = [one for one in asked if one["text"].rstrip().endswith("}")]
        if not said:
            raise ReplyNotRecordedError(f"{split} has no reply to {PROMPT_VERSION}: make recordings SPLIT={split}")
        facts = [
            json.dumps(fact, ensure_ascii=False, separators=(",", ":"))
            for one in said
            for fact in json.loads(one["text"])["facts"]
        ]
        tokens = sum(one["usage"]["output_tokens"] for one in said)
        return cls(
            replies=len(asked),
            facts=len(facts),
            fact=sum(map(len, facts)) * tokens / sum(len(one["text"]) for one in said) / len(facts),
            framed=tokens / len(facts),
            prompt=max(one["usage"]["input_tokens"] for one in asked),
        )


def extraction_table() -> str:
    rows = []
    for split in conflicts.SPLITS:
        of = ExtractionTokens.of(split)
        rows.append((split, f"{of.replies}", f"{of.facts}", f"{of.fact:.1f}", f"{of.framed:.1f}", f"{of.prompt}"))
    return table(("extractions of", "replies", "facts", "tokens a fact", "with its frame", "longest prompt"), rows)


def family_table(recorded: Mapping[conflicts.Split, Mapping[str, Outcome]]) -> str:
    """By family and split."""
    rows = []
    for family in conflicts.FAMILIES:
        for split, outcomes in recorded.items():
            if some := [one for one in _scored(_with_question(outcomes)) if one.case.family == family]:
                rows.append(_row(f"{family}, {split}", some, [outcomes[one.case.id] for one in some]))
    return table(HEAD, rows)


def first_prompt_table(outcomes: Mapping[str, Outcome]) -> str:
    """The first prompt, and today's on the same cases; what a case takes."""
    some = [one for one in _scored(outcomes.values()) if one.case.family == "move"]
    rates, costs = compute_rates(some), [outcomes[one.case.id] for one in some]
    calls = fmean(one.calls for one in costs)
    tokens = (f"{fmean(getattr(one, what) for one in costs):.0f}" for what in ("input_tokens", "output_tokens"))
    today = ("today's prompt", str(len(some)), str(rates.right), str(rates.lost_updates), f"{calls:.1f}", *tokens)
    head = ("moves, dev", "number", "right", "lost updates", "calls", "tokens in", "out")
    return table(head, [FIRST_PROMPT, today])


def bare_refusals() -> str:
    """How many of the harmful questions the model refuses that have no instructions around them."""
    complaints = [one["complaint"] for one in map(json.loads, BARE.read_text().splitlines()) if "complaint" in one]
    return f"{sum('refuses' in one for one in complaints)} of {len(complaints)}"


def rival_version() -> str:
    """Of mem0, as locked."""
    return next(line for line in RIVAL_LOCK.read_text().split() if line.startswith("mem0ai==")).partition("==")[2]


def dialogue_table(every: Sequence[Outcome]) -> str:
    """The figures of docs/understanding.md, for each split with the model and with the offline rules."""
    cases = {case.id: case for case in dialogues.load()}
    own = [one for one in every if one.kind == "dialogue"]
    offline = load_scores(CaseScore, dialogue_report.BASELINE)
    of_model = {one.id: CaseScore.model_validate({"id": one.id, **one.score}) for one in own}
    rows, head = [], ""
    for split in dialogues.SPLITS:
        ids = [one.id for one in own if cases[one.id].split == split]
        for name, scores in (("the model", of_model), ("offline rules", offline)):
            scored = [dialogue_report.ScoredCase(case=cases[one], score=scores[one], cost=Cost()) for one in ids]
            if scored:
                head, _, *lines = dialogue_report.report(scored).splitlines()
                _, *cells = lines[-1].strip("|").split("|")
                cost = _costs([one for one in own if one.id in ids]) if scores is of_model else ("0", "0", "0")
                rows.append((f"{split}: {name}", *(cell.strip() for cell in cells), *cost))
    return table((*(cell.strip() for cell in head.strip("|").split("|")), "calls", "tokens in", "out"), rows)


SEARCH_COLUMNS: Final[Mapping[str, Callable[[conflicts.Case], bool]]] = {
    "lost_update": lambda case: case.old == "ended" or case.new == "kept",
    "forgotten": lambda case: case.old == "kept",
    "unfounded": lambda case: case.is_no_news,
    "duplicate": lambda case: case.is_repetition,
}
"""What a search shows, with the cases in which it can be."""


def search_table(every: Sequence[Outcome], mem0: Mapping[str, Found]) -> str:
    """The cases that both sides ran, by split: what a search returns, and what a message cost."""
    ours = {one.id: one.found for one in every if one.found}
    cases = {case.id: case for case in conflicts.load()}
    rows = []
    for split in conflicts.SPLITS:
        ids = [one for one in ours if one in mem0 and cases[one].split == split]
        for name, found in (("Mnemolog", ours), ("mem0", mem0)):
            if ids:
                rows.append(_search_row(f"{split}: {name}", [cases[one] for one in ids], [found[one] for one in ids]))
    names = (name.replace("_", " ") for name in SEARCH_COLUMNS)
    return table(("cases of", "number", "right", "unmet", *names, "calls", "tokens in", "out"), rows)


def _search_row(name: str, cases: Sequence[conflicts.Case], found: Sequence[Found]) -> tuple[str, ...]:
    scores: list[SearchScore] = [judge(case, one) for case, one in zip(cases, found, strict=True)]

    def share(flag: str, of: Callable[[conflicts.Case], bool]) -> str:
        some = [score for case, score in zip(cases, scores, strict=True) if of(case)]
        return str(Share(of=len(some), count=sum(getattr(one, flag) for one in some)))

    turns = sum(len(case.known) + 1 for case in cases)
    costs = (sum(getattr(one, what) for one in found) / turns for what in ("calls", "input_tokens", "output_tokens"))
    calls, tokens, replied = costs
    flags = ("right", "unmet")
    shares = (share(flag, lambda _: True) for flag in flags)
    parts = (share(flag, of) for flag, of in SEARCH_COLUMNS.items())
    return (name, str(len(cases)), *shares, *parts, f"{calls:.2f}", f"{tokens:.0f}", f"{replied:.0f}")


def talk_line(talk: Transcript) -> str:
    turns = talk.turns
    facts = sum(len(one.changes) for one in turns)
    means = (fmean(getattr(one, name) for one in turns) for name in ("calls", "input_tokens", "output_tokens"))
    calls, tokens, replied = means
    return (
        f"{len(turns)} turns in {talk.seconds} s, {facts} changes; a turn took {calls:.2f} calls, {tokens:.0f} tokens "
        f"of prompts and {replied:.0f} of replies, and {fmean(one.seconds for one in turns):.0f} s from its "
        f"publication to its end."
    )
