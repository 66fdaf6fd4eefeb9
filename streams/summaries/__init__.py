"""Summaries of entities: what a command for one does, and when one is due."""
