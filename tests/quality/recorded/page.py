"""docs/dialogues.md: the figures of a run, set into a text written by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Final

from tests.bench.machine import Machine
from tests.bench.markdown import wrapped
from tests.quality.recorded.dialogue_run import DialogueFigures
from tests.quality.report import table
from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).with_name("dialogues.md.in")
PAGE: Final = ROOT / "docs" / "dialogues.md"
_COLUMNS: Final = (
    *("dialogue", "turns", "facts", "speaker's", "others'", "wrong", "wrong ties"),
    *("entities", "people", "speakers", "calls", "tokens"),
)


def figures_table(figures: Sequence[DialogueFigures]) -> str:
    """A line a dialogue."""
    return table(_COLUMNS, [_row(one) for one in figures])


def _row(one: DialogueFigures) -> list[str]:
    found = one.speakers
    entities = sum(found.types.values())
    counts = (one.turns, found.facts, found.of_speaker, found.of_others, len(found.wrong), len(found.wrong_ties))
    people = (entities, found.types.get("person", 0), found.speakers)
    costs = (f"{one.llm_calls / one.turns:.2f}", f"{one.input_tokens / one.turns:.0f}")
    return [one.conversation, *map(str, counts), *map(str, people), *costs]


def page(measured: Mapping[str, Sequence[DialogueFigures]], machine: Machine) -> str:
    """The page of a run with each provider, with the machine that it ran on."""
    text = Template(TEMPLATE.read_text()).substitute(
        {f"{provider}_table": figures_table(figures) for provider, figures in measured.items()},
        when=f"{machine.at:%Y-%m-%d}",
        machine=f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB, {machine.system}",
        python=machine.python,
    )
    return wrapped(text)
