"""docs/entities.md names every event, type and step of entities, and their limits as they are."""

import re
from typing import get_args

from mnemolog.schemas import entities as model
from mnemolog.schemas.entities import ENTITY_TYPES, MAX_RELATIONS, STRENGTHS, Comparison, ResolutionStep, Role
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/entities.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def subjects(title: str) -> list[str]:
    """What each point of a list is about: the text before its first sentence ends."""
    return re.findall(r"^\* (`[^.]+?)\.\s", section(title), re.MULTILINE)


def test_it_has_every_event_once() -> None:
    events = [name for cell in subjects("What is kept") for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(events) == sorted(ENTITY_EVENT_CLASSES)


def test_it_has_the_types_and_roles() -> None:
    named = set(re.findall(r"`(\w+)`", section("What is kept")))
    assert named >= {*ENTITY_TYPES, *get_args(Role)}
    assert set(re.findall(r"`(\w+)`", section("Relations"))) >= set(STRENGTHS)


def test_it_has_every_step_in_its_order() -> None:
    steps = [cell.strip("`") for cell in subjects("How a name finds its entity")]
    assert set(steps) == {*get_args(ResolutionStep), *get_args(Comparison)}
    assert [step for step in steps if step not in get_args(Comparison)] == list(get_args(ResolutionStep))


def test_its_limits_are_those_of_the_code() -> None:
    limits = [int(number) for number in re.findall(r"\| (\d+)\b[^|]*\|$", section("Limits"), re.MULTILINE)]
    assert limits == [
        model.MAX_NAME,
        model.MAX_ENTITIES,
        MAX_RELATIONS,
        MAX_NEW_ENTITIES,
        model.MAX_MERGED,
        model.MAX_MOVED,
    ]
