"""Summaries of entities: what a model is asked, what of its reply is grounded in facts, and when one is due."""
