"""The stages as they are without entities and relations: nothing is asked of them, looked up, decided or stored."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from unittest.mock import patch

from mnemolog.streams.entities.linker import EntityLinker
from mnemolog.streams.llm import extract_prompt
from mnemolog.streams.offline import extract
from mnemolog.streams.stages import embed

_ASKED: Final = re.compile(r"\nentities: .*?(?=\n\n)", re.DOTALL)
_READERS: Final = (
    *("sentence_entities", "value_entities", "names_heard", "value_relations", "relations_of_others"),
    *("stated_in_text", "ended_relations", "ended_values"),
)


@contextmanager
def without_entities() -> Iterator[None]:
    """Nothing can switch them off: this takes their functions out of this process, for a comparison."""
    rules, asked = _ASKED.subn("", extract_prompt._RULES)
    assert asked == 1
    with ExitStack() as patches:
        patches.enter_context(patch.object(extract_prompt, "_RULES", rules))
        patches.enter_context(patch.object(EntityLinker, "find", _find_none))
        patches.enter_context(patch.object(embed, "names_to_embed", _no_names))
        patches.enter_context(patch.object(extract, "name_given", _no_name))
        for name in _READERS:
            patches.enter_context(patch.object(extract, name, _read_none))
        yield


async def _find_none(*_: object) -> None:
    return None


def _no_names(*_: object) -> dict[str, str]:
    return {}


def _no_name(_sentence: str) -> None:
    return None


def _read_none(*_: object, **__: object) -> tuple[()]:
    return ()
