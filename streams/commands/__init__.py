"""Carries out commands: from what a command names to its events, or to a refusal; free of Kafka and of database code.

`handler` looks up what a command names and calls the pure function of its kind: in `status_changes`, `edits` or `undo`.
They build on `refusals` and `context`; `ports` say what is asked of the tables. `expiry` makes the timer's commands.
"""
