"""How turns ended, and what became of each of their statements."""
