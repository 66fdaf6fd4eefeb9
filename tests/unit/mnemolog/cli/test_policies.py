"""How policies are shown: budgets and instructions among their rules."""

from decimal import Decimal
from pathlib import Path

import pytest
import typer

from mnemolog.cli.commands import _read_instructions, _show_policies
from mnemolog.cli.tables import WHOLE_IDS
from mnemolog.schemas.instructions import DescribedCategory, ForbiddenTopic, Instructions
from mnemolog.schemas.policy import Limits, Policy, StoredPolicies


def test_budgets_and_instructions_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = Instructions(
        text="Look for pets.",
        categories=(DescribedCategory(name="pet", description="animals"),),
        never_store=(ForbiddenTopic(name="salary"),),
        languages=("de",),
    )
    policy = Policy(limits=Limits(cost_per_day=Decimal("2.50")), when_spent="raw", instructions=told)
    _show_policies(StoredPolicies(tenant=policy), WHOLE_IDS)
    shown = " ".join(capsys.readouterr().out.split())
    assert "when_spent raw" in shown
    assert "cost_per_day 2.50" in shown
    assert f"instructions {told.version}; 14 characters; 1 category; never stored: salary; in de" in shown


def test_a_file_of_instructions_has_to_be_json(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    file.write_text('{"text": "Look for pets."}')
    assert _read_instructions(file) == {"text": "Look for pets."}
    file.write_text("Look for pets.")
    with pytest.raises(typer.BadParameter, match="is not JSON"):
        _read_instructions(file)
