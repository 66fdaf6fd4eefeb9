"""Errors in records, each of which says what to do; and the faults of a record in words for its author."""

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

MAX_FAULTS: Final = 5
MAX_FAULT_CHARACTERS: Final = 300
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_OF_A_BOUND: Final = {
    "too_short": "must have at least {min_length} items, not {actual_length}",
    "too_long": "must have at most {max_length} items, not {actual_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "has the unknown {discriminator} {tag!r:.60}: choose one of {expected_tags}",
    "union_tag_not_found": "has no {discriminator}",
}
_OF_A_KIND: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field: check its name",
    "finite_number": "must be a finite number",
    "string_unicode": "must be text in UTF-8, without half characters",
    "timezone_aware": "needs a zone, for example 2026-01-31T09:30:00+01:00",
}
_OF_A_PATTERN: Final = {
    r"\S": "has no text",
    r"^[a-z][a-z0-9_]{0,63}$": "must be a name of small letters, digits and underscores, such as home_city",
}
_WANTED: Final = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "dict": "an object of names and values",
    "model": "an object of names and values",
    "tuple": "a list",
    "list": "a list",
    "uuid": "an id such as 0b5f2a44-9a4c-5d27-8c1e-6f1f3a1b7c55",
    "datetime": "a date and time with a zone, such as 2026-01-31T09:30:00+01:00",
}
_WRITTEN_AS_TEXT: Final = frozenset({"uuid", "datetime"})
_NAMES_OF_TYPES: Final = {
    "str": "text",
    "NoneType": "nothing",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "dict": "an object",
    "list": "a list",
    "tuple": "a list",
}
_SHOWN_CHARACTERS: Final = 40
_VALUES_SHOWN: Final = frozenset(
    {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "literal_error", "enum"}
)
"""Of other faults the value may be what a user said, which no log repeats."""


class MnemologError(Exception):
    """Base of all errors of Mnemolog that a caller meets; each message says what to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message as it is: the parameters that it was made from are not kept."""
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[MnemologError], args: tuple[Any, ...], fields: dict[str, Any]) -> MnemologError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class SettingsError(MnemologError):
    """A setting has a wrong value or does not exist; the message names it."""


class InvalidArgumentError(MnemologError, ValueError):
    """An argument of a method is not valid; the message names it and what it should be. Nothing was done."""


class InvalidRecordError(MnemologError, ValueError):
    """The bytes are not a valid record of the expected kind; `detail` names field and fault."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"not a valid {kind}: {detail}")
        self.kind = kind
        self.detail = detail


class UnsupportedVersionError(MnemologError, ValueError):
    """The record was written by a newer version of Mnemolog than this one."""

    def __init__(self, kind: str, found: object, known: int) -> None:
        super().__init__(
            f"{kind} has schema_version {found!r}, this program reads up to {known}: "
            "upgrade it before records of the new version are written"
        )
        self.kind = kind
        self.found = found
        self.known = known


def describe_faults(error: ValidationError | Sequence[ErrorDetails]) -> str:
    """The first faults, each with its place. A field's name comes from the publisher: control characters are shown."""
    faults = true_faults(error) if isinstance(error, ValidationError) else error
    described = (
        f"{'.'.join(map(str, fault['loc'])) or 'the record'}{_sentence(fault)}"[:MAX_FAULT_CHARACTERS]
        for fault in faults[:MAX_FAULTS]
    )
    return "; ".join(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", one) for one in described)


def true_faults(error: ValidationError) -> Sequence[ErrorDetails]:
    """All faults but those that follow from another: a list whose items are wrong is not too short besides."""
    faults = error.errors(include_url=False)
    inside = {fault["loc"][:depth] for fault in faults for depth in range(len(fault["loc"]))}
    return [fault for fault in faults if fault["type"] != "too_short" or fault["loc"] not in inside]


def _sentence(fault: ErrorDetails) -> str:
    """What is wrong, as it follows the place."""
    kind, context, given = fault["type"], fault.get("ctx", {}), fault["input"]
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return f" {_OF_A_PATTERN.get(pattern, f'must match {pattern}')}"
    if words := _OF_A_KIND.get(kind):
        return f" {words}"
    if words := _OF_A_BOUND.get(f"string_{kind}" if isinstance(given, str) else kind) or _OF_A_BOUND.get(kind):
        said = re.sub(r"\b1 (item|character)s", r"1 \1", words.format(**context))
        is_shown = kind in _VALUES_SHOWN and len(ascii(given)) <= _SHOWN_CHARACTERS
        return f" {said}, not {given!a}" if is_shown else f" {said}"
    what = kind.partition("_")[0]
    if wanted := _WANTED.get(what):
        is_other_text = isinstance(given, str) and what in _WRITTEN_AS_TEXT
        shown = "" if is_other_text else f", not {_NAMES_OF_TYPES.get(type(given).__name__, type(given).__name__)}"
        return f" must be {wanted}{shown}"
    return f": {fault['msg'].removeprefix('Value error, ')}"
