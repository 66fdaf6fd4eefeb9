"""The records that docs/records.md shows are valid."""

import re

from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/records.md").read_text()


def test_its_records_decode() -> None:
    turn, command = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert Turn.model_validate_json(turn).turn_id == "t1"
    assert Command.model_validate_json(command).command_id == "c1"


def test_it_explains_every_field_of_a_turn() -> None:
    assert [
        name for name in Turn.model_fields if f"`{name}`" not in PAGE and name not in ("kind", "schema_version")
    ] == []
