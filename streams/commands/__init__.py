"""Carries out commands: from what a command names to its events, or to a refusal; free of Kafka and of database code.

`handler` looks up what a command names and calls the pure function of its kind: in `status_changes`, `edits`, `undo`,
or for entities in `entities`; `identity` has what follows for facts where entities change. `context` has what they
share: the context of a command, its refusals, and what commands ask of the tables. `expiry` makes the timer's commands.
"""
