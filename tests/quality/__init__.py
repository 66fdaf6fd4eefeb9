"""How well new statements are held against known ones: a labelled set, a harness, and a baseline."""
