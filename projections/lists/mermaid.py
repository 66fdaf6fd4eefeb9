"""Entities and their relations as a Mermaid flowchart, in which names are labels and nothing else."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

MAX_LABEL: Final = 60
"""Characters of a name that are shown; a longer one is cut."""
_PLAIN: Final = frozenset(" ,'")  # ".", "-" and "_" make lists and emphasis: a label is read as Markdown


def mermaid(names: Mapping[UUID, str], edges: Iterable[tuple[UUID, str, UUID, bool]]) -> str:
    """A flowchart of entities and edges; an edge that does not hold is dotted. One to what has no name is left out."""
    return "\n".join(["flowchart LR", *_lines(names, edges)]) + "\n"


def _lines(names: Mapping[UUID, str], edges: Iterable[tuple[UUID, str, UUID, bool]]) -> Iterator[str]:
    places = {entity_id: f"e{place}" for place, entity_id in enumerate(names)}
    for entity_id, name in names.items():
        yield f'    {places[entity_id]}["{label(name)}"]'
    for subject_id, predicate, object_id, holds in edges:
        if subject_id in places and object_id in places:
            arrow = "-->" if holds else "-.->"
            yield f'    {places[subject_id]} {arrow}|"{label(predicate)}"| {places[object_id]}'


def label(text: str) -> str:
    """A text that stands for itself in a quoted label: signs are codes, controls are spaces, and it has an end."""
    shown = " ".join("".join(map(_shown, text)).split())
    cut = shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL - 1]}…"
    return "".join(sign if sign.isalnum() or sign in _PLAIN else f"#{ord(sign)};" for sign in cut) or "#63;"


def _shown(sign: str) -> str:
    """Controls, and signs that turn the direction of text round, are no part of a name."""
    return " " if unicodedata.category(sign)[0] in "CZ" else sign
