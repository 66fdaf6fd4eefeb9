"""The entities of the log: their rows, which of their events are applied, and how the rows are written."""
