"""Which ends move with the facts that had ended them; resolution and commands call it on the events that they made.

`moved_ends` reads what the events of a commit need, `commit_ends` moves the ends, by what `end_rules` holds.
`undone_values` finds what an undo brings back beside a newer value.
"""
