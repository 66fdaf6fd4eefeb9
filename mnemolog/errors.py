"""Errors that a user of the client or the command line meets; each says what to do."""


class MnemologError(Exception):
    """Base of this package's errors."""


class SettingsError(MnemologError):
    """A setting has a wrong value or does not exist; the message names it."""
