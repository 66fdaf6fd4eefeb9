"""The question whom the doubtful names of a turn mean: how it is shown, and which answers are valid."""
