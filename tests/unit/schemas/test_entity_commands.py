"""Commands about entities, and edits, with more than they may have are refused before they are carried out."""

from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from mnemolog.schemas.command import AliasEntity, Edit, RenameEntity, SplitEntity
from mnemolog.schemas.entities import MAX_MOVED

LONG = "x" * 10_000


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (RenameEntity, {"name": LONG}),
        (AliasEntity, {"name": LONG}),
        (SplitEntity, {"name": "Eve", "names": (LONG,)}),
        (SplitEntity, {"name": "Eve", "names": ("x",) * (MAX_MOVED + 1)}),
        (SplitEntity, {"name": "Eve"}),
        (Edit, {"text": " \n\t"}),
    ],
)
def test_a_command_with_too_much_or_nothing_is_refused(command: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        command(**{"fact_id" if command is Edit else "entity_id": uuid4()}, **fields)
