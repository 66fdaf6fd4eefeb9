"""Decides what the facts of one turn mean for the known facts of its scope; free of Kafka and of database code.

From top to bottom, each module imports only later ones: `turn`, `decide`, `verdicts`, `events`, `classify`, `guards`.
Beside them, `limits` counts a turn.
"""
