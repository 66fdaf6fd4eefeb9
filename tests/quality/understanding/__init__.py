"""Labelled dialogues: what a conversation has to leave in memory, of facts, of entities and of relations."""
