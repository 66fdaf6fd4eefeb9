"""`mnemolog settings`: all settings with their values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mnemolog.cli import options
from mnemolog.cli.output import print_result, print_table
from mnemolog.cli.runtime import cli_settings

if TYPE_CHECKING:
    from mnemolog.settings import Settings

HIDDEN = "********"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting; secrets are hidden."""

    variable: str
    value: str | None
    default: str | None
    is_set: bool
    meaning: str


def settings(*, as_json: options.AsJson = False) -> None:
    """List every setting with its value, its default and its meaning. A wrong one is named (exit code 2)."""
    print_result(list(rows_of(cli_settings())), _show_rows, as_json=as_json)


def _show_rows(rows: list[Row]) -> None:
    cells = [(row.variable, row.value, row.default, row.meaning) for row in rows]
    print_table(f"{len(rows)} settings", ("variable", "value", "default", "meaning"), cells)


def rows_of(known: "Settings") -> Iterator[Row]:
    """Every setting in the order of the documentation."""
    from mnemolog.settings import PREFIX  # noqa: PLC0415 - loads pydantic

    for name, field in type(known).model_fields.items():
        yield Row(
            variable=PREFIX + name.upper(),
            value=_shown(getattr(known, name)),
            default=_shown(field.default),
            is_set=name in known.model_fields_set,
            meaning=field.description or "",
        )


def _shown(value: Any) -> str | None:
    match value:
        case None | "":
            return None
        case str() if "://" in value and (password := urlsplit(value).password):
            return value.replace(f":{password}@", f":{HIDDEN}@")
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)  # a SecretStr shows asterisks
