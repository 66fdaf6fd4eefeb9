"""Errors in records; each says what to do."""


class MnemologError(Exception):
    """Base of all errors of Mnemolog that a caller meets; each message says what to do."""


class InvalidArgumentError(MnemologError, ValueError):
    """An argument of a method is not valid; the message names it and what it should be. Nothing was done."""


class SchemaError(MnemologError, ValueError):
    """Base of every error of this package."""


class InvalidRecordError(SchemaError):
    """The bytes are not a valid record of the expected kind; `detail` names field and fault."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"not a valid {kind}: {detail}")
        self.kind = kind
        self.detail = detail


class UnsupportedVersionError(SchemaError):
    """The record was written by a newer version of Mnemolog than this one."""

    def __init__(self, kind: str, found: object, known: int) -> None:
        super().__init__(
            f"{kind} has schema_version {found!r}, this program reads up to {known}: "
            "upgrade it before records of the new version are written"
        )
        self.kind = kind
        self.found = found
        self.known = known
